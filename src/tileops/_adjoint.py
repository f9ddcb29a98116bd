"""The transposes of tile and expand: each element is the sum of its repeats."""

from typing import Any

from tileops._counts import read_counts, read_shape
from tileops._rules import (
    EXPAND,
    TILE,
    Aligned,
    Argument,
    Operator,
    check_size,
    is_equal,
    pad,
    shape_argument,
)
from tileops._texts import show
from tileops.errors import DTypeError, ShapeError
from tileops.execute import executor_of
from tileops.execute.compiling import prepare_to_trace

_NUMBERS = ("int", "uint", "float", "bfloat", "complex", "bcomplex")


def _repeats_of_result(
    argument: Argument, shape: tuple[int, ...], result: tuple[int, ...]
) -> Aligned:
    """Align an Expand's input shape with its result: each axis keeps its size, or repeats a 1."""
    if len(shape) > len(result):
        axes = "axis" if len(shape) == 1 else "axes"
        raise argument.error(
            f"{argument.operator_name}: {argument.name}={show(shape)} has {len(shape)} {axes} and "
            f"g has {len(result)} (shape {show(result)}); expand drops no axis; pass the input's "
            f"shape"
        )
    padded, _ = pad(shape, result)
    repeats = []
    for axis, (size, found) in enumerate(zip(padded, result, strict=True)):
        if is_equal(size, 1):
            repeats.append(found)
        elif size == found:
            repeats.append(1)
        elif size == 1:
            repeats.append(found)
        else:
            remedy = "" if is_equal(found, 1) else f" or {show(found)}"
            raise argument.error(
                f"{argument.operator_name}: axis {axis}: {argument.name} asks for {show(size)} and "
                f"g has size {show(found)} ({argument.name}={show(shape)}, g of shape "
                f"{show(result)}); expand gives the size of the input, or repeats a 1; pass 1"
                f"{remedy}"
            )
    return padded, tuple(repeats)


_TILE_ADJOINT = TILE.derive("tile_adjoint")
_EXPAND_ADJOINT = EXPAND.derive("expand_adjoint", align=_repeats_of_result)


def tile_adjoint(g: Any, shape: Any, repeats: Any) -> Any:
    """Sum the repeats of a tile: the transpose of `tile`, and its gradient.

    For every `x` of `shape`, ``sum(tile(x, repeats) * g)`` is
    ``sum(x * tile_adjoint(g, shape, repeats))``.

    Parameters
    ----------
    g : array, shape as `tile` gives it
        The gradient of a result of `tile`: an array of numbers, of any library. Complex
        numbers are summed as they are, not conjugated. Masked elements are left out of a sum,
        and a sum of masked elements only is masked, unless the array's class has a sum of its
        own.
    shape : int, sequence of int, or array of int, rank 0 or 1
        The shape of the input of `tile`.
    repeats : int, sequence of int, or array of int, rank 0 or 1
        The repeats of `tile`. The sum of an element that was repeated 0 times is 0.

    Returns
    -------
    array, shape `shape`
        A new array of the same library, dtype and device as `g`. Floats of 16 bits and
        less are summed in float32; integers wrap around.

    Raises
    ------
    RepeatsError
        If `tile` would refuse `repeats`.
    ShapeError
        If `shape` is not a valid shape, or `g` has another shape than the result of `tile`
        or a size that is not known. For a size in `shape` that is not a known integer, the
        error is also a TypeError.
    DTypeError
        If `g` is not an array of numbers, or is one that its library cannot sum.
    OutputTooLargeError
        If the sizes of `shape`, or of the result of `tile`, zeros left out, multiply to more
        than 2**63-1 elements or bytes. In Dask also if the sum has more than 2**20 chunks.

    See Also
    --------
    expand_adjoint : The transpose of `expand`.
    tile : The operator.

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.tile_adjoint(np.array([1.0, 2.0, 3.0, 4.0]), 2, 2)
    array([4., 6.])
    """
    return _sum(_TILE_ADJOINT, g, shape, repeats)


def expand_adjoint(g: Any, shape: Any) -> Any:
    """Sum an array down to a shape: the transpose of `expand`, and its gradient.

    For every `x` of `shape`, ``sum(expand(x, g.shape) * g)`` is
    ``sum(x * expand_adjoint(g, shape))``.

    Parameters
    ----------
    g : array, shape (m0, m1, ...)
        The gradient of a result of `expand`: an array of numbers, of any library. Complex
        numbers are summed as they are, not conjugated. Masked elements are left out of a sum,
        and a sum of masked elements only is masked, unless the array's class has a sum of its
        own.
    shape : int, sequence of int, or array of int, rank 0 or 1
        The shape of the input of `expand`. Aligned on the right, each size must be that of
        `g` or 1. Axes of `g` that `shape` lacks are summed and left out.

    Returns
    -------
    array, shape `shape`
        A new array of the same library, dtype and device as `g`. Floats of 16 bits and
        less are summed in float32; integers wrap around.

    Raises
    ------
    ShapeError
        If `shape` is not a valid shape, or does not expand to the shape of `g`, or if a size
        of `g` is not known. For a size in `shape` that is not a known integer, the error is
        also a TypeError.
    DTypeError
        If `g` is not an array of numbers, or is one that its library cannot sum.
    OutputTooLargeError
        If the sizes of `shape`, or those of `g`, zeros left out, multiply to more than
        2**63-1 elements or bytes. In Dask also if the sum has more than 2**20 chunks.

    See Also
    --------
    tile_adjoint : The transpose of `tile`.
    expand : The operator.

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.expand_adjoint(np.ones((3, 2, 4)), (2, 1))
    array([[12.],
           [12.]])
    """
    return _sum(_EXPAND_ADJOINT, g, shape)


def _sum(operator: Operator, g: Any, shape: Any, *counts: Any) -> Any:
    """Sum by an operator's rules; for Expand, the shape of `g` takes the place of `counts`."""
    prepare_to_trace()
    name = operator.name
    executor = executor_of(name, g, "g")
    g = executor.array(g)
    found = executor.shape(name, g, "g")
    if not executor.dtype(g).startswith(_NUMBERS):
        raise DTypeError(
            f"{name}: g has dtype {g.dtype}, and only numbers can be summed; pass an array of "
            f"numbers"
        )
    described = shape_argument(name, "shape")
    shape = read_shape(described, shape, executor)
    itemsize = executor.itemsize(g)
    check_size(described, shape, itemsize)
    read = read_counts(operator.argument, counts[0], executor) if counts else found
    plan = executor.plan_shape(operator, shape, read, itemsize)
    if plan.shape != found:
        raise ShapeError(
            f"{name}: g has shape {show(found)}, but shape={show(shape)} with "
            f"{operator.argument.name}={show(read)} gives {show(plan.shape)}; they must be equal; "
            f"pass both as in the call whose result has the shape of g"
        )
    return executor.sum(name, g, plan, shape)

"""The public functions that mean the same for every library: tile, expand and their shapes."""

from typing import Any

from tileops._counts import read_counts, read_shape
from tileops._rules import EXPAND, TILE, Operator, result_shape, shape_argument
from tileops._run import run
from tileops.execute.compiling import prepare_to_trace

_TILE_SHAPE = TILE.derive("tile_shape")
_EXPAND_SHAPE = EXPAND.derive("expand_shape", name="target")


def tile(
    x: Any,
    repeats: Any,
    /,
    *,
    copy: bool | None = True,
    out: Any = None,
    max_bytes: int | None = None,
) -> Any:
    """Repeat an array as a whole along each of its axes.

    Element ``i`` of an axis of the result is element ``i % n`` of the input's
    axis of size ``n``. Values are moved, never computed: every bit survives, except that
    JAX's compiler may change narrow floats under ``jax.jit``, ``jax.vmap`` and the like, and
    that PyTorch may write 1 for a bool whose byte is neither 0 nor 1.

    Parameters
    ----------
    x : array, shape (n0, n1, ...)
        The array: of NumPy, PyTorch, JAX, CuPy, Dask, or of any library with the
        Array API standard; of any dtype.
    repeats : int, sequence of int, or array of int, rank 0 or 1
        How many times each axis is repeated; 0 makes it empty. Repeats and axes are
        aligned on the right, and the shorter of the two is padded with ones on
        the left, so one integer repeats the last axis. An array is read during the call:
        one of Dask is computed, and one on a GPU is waited for.
    copy : bool or None, default True
        True: the result has its own memory. False: the result is a view of `x`. None: a
        view where one exists, otherwise a copy. In NumPy, PyTorch, CuPy and Dask a view
        exists if every repeated axis has size 1 or the result is empty; in other libraries
        only where the result is `x` itself, unchanged. NumPy's views are read-only, and it has
        none of masked records; writing to a view in PyTorch or CuPy changes `x`. In Dask, a
        result that is computed as a whole has its own memory; a chunk of it may be a chunk of
        `x`, because nobody writes to chunks.
    out : array, optional
        The array to write the result into, in NumPy, PyTorch and CuPy: of the same library
        as `x`, with the shape of the result and the dtype and device of `x`. It may be
        sliced or transposed in any way, but must share no element with `x`. In NumPy, `x`
        and `out` may be of no subclass except ``numpy.memmap``.
    max_bytes : int, optional
        The most bytes that a written result may take, for counts from a source
        that you do not trust. A view takes no bytes.

    Returns
    -------
    array, shape (r0 * n0, r1 * n1, ...)
        An array of the same library, dtype and device as `x`; a copy is C-contiguous in
        NumPy, PyTorch and CuPy. `out` itself if it was given.

    Raises
    ------
    RepeatsError
        If a count is negative or `repeats` has more than one axis. For a count that is
        not a known integer (bool, float, traced), the error is also a TypeError.
    DTypeError
        If `x` is not an array or cannot be repeated, if `out` has another dtype or the
        library cannot write into arrays of its class, or if `copy` or `max_bytes` is of a
        wrong type.
    ShapeError
        If `out` has another shape than the result, if a size of `x` is not known, or if the
        result has more axes than the library's arrays can have (64 in NumPy).
    OutputError
        If ``copy=False`` and no view exists, or `out` is also given. If `out` overlaps `x`,
        has elements that share memory, is read-only, or is on another device. In PyTorch
        also if a gradient would have to be recorded, or if `x` or `out` has no address
        (fake, traced, a DTensor, or inside ``torch.func``); in CuPy also if records of `out`
        have gaps between their fields.
    OutputTooLargeError
        If the result is written and exceeds `max_bytes`, or if `max_bytes` is given and the
        size is not known while tracing. If the sizes of the result, zeros left out, multiply
        to more than 2**63-1 elements or bytes. In Dask also if the result has more than 2**20
        chunks.

    See Also
    --------
    expand : Repeat axes of size 1 up to a shape.
    tile_shape : The shape of the result, without an array.

    Notes
    -----
    As in NumPy [1]_ and in OpenVINO's Tile-1 [2]_, `repeats` may have fewer or more
    entries than `x` has axes. A negative count is also refused for an empty array.

    References
    ----------
    .. [1] https://numpy.org/doc/stable/reference/generated/numpy.tile.html
    .. [2] https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.tile(np.array([[1, 2], [3, 4]]), (1, 2))
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    >>> tileops.tile(np.array([1, 2]), (2, 2))
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    return run(TILE, x, repeats, copy, out, max_bytes)


def expand(
    x: Any,
    shape: Any,
    /,
    *,
    copy: bool | None = None,
    out: Any = None,
    max_bytes: int | None = None,
) -> Any:
    """Broadcast an array and a shape against each other.

    Sizes are aligned on the right. Where two sizes differ, one of them must be 1, and
    the result has the other one. So a 1 in `shape` keeps the size that `x` has, and
    `shape` may have fewer entries than `x` has axes.

    Parameters
    ----------
    x : array, shape (n0, n1, ...)
        The array: of NumPy, PyTorch, JAX, CuPy, Dask, or of any library with the
        Array API standard; of any dtype.
    shape : int, sequence of int, or array of int, rank 0 or 1
        The sizes to broadcast with. An array is read during the call: one of Dask is
        computed, and one on a GPU is waited for.
    copy : bool or None, default None
        None: a view in NumPy, PyTorch, CuPy and Dask; in other libraries `x` itself where
        nothing changes, and otherwise a copy, or whatever the library's `broadcast_to`
        returns. True: the result has its own memory. False: the result is a view of `x`.
        NumPy's views are read-only, and it has none of masked records; writing to a view in
        PyTorch or CuPy changes `x`. In Dask, a result that is computed as a whole has its own
        memory; a chunk of it may be a chunk of `x`, because nobody writes to chunks.
    out : array, optional
        The array to write the result into, in NumPy, PyTorch and CuPy: of the same library
        as `x`, with the shape of the result and the dtype and device of `x`. It may be
        sliced or transposed in any way, but must share no element with `x`. In NumPy, `x`
        and `out` may be of no subclass except ``numpy.memmap``.
    max_bytes : int, optional
        The most bytes that a written result may take, for shapes from a source
        that you do not trust. A view takes no bytes.

    Returns
    -------
    array, shape ``expand_shape(x.shape, shape)``
        An array of the same library, dtype and device as `x`; a copy is C-contiguous in
        NumPy, PyTorch and CuPy. `out` itself if it was given.

    Raises
    ------
    ShapeError
        If two sizes differ and neither is 1, if a size is negative, if `shape` has more
        than one axis, if `out` has another shape than the result, if a size of `x` is not
        known, or if the result has more axes than the library's arrays can have (64 in
        NumPy). For a size that is not a known integer (bool, float, traced), the error is
        also a TypeError.
    DTypeError
        If `x` is not an array or cannot be expanded, if `out` has another dtype or the
        library cannot write into arrays of its class, or if `copy` or `max_bytes` is of a
        wrong type.
    OutputError
        If ``copy=False`` and the library promises no view, or `out` is also given. If `out`
        overlaps `x`, has elements that share memory, is read-only, or is on another
        device. In PyTorch also if a gradient would have to be recorded, or if `x` or `out`
        has no address (fake, traced, a DTensor, or inside ``torch.func``); in CuPy also if
        records of `out` have gaps between their fields.
    OutputTooLargeError
        If the result is written and exceeds `max_bytes`, or if `max_bytes` is given and the
        size is not known while tracing. If the sizes of the result, zeros left out, multiply
        to more than 2**63-1 elements or bytes. In Dask also if the result has more than 2**20
        chunks.

    See Also
    --------
    tile : Repeat axes of any size.
    expand_shape : The shape of the result, without an array.

    Notes
    -----
    Broadcasting in both directions is the rule of ONNX Expand [1]_. ``numpy.broadcast_to``
    only broadcasts `x`: it refuses a 1 in `shape` where `x` has a larger size, and a
    `shape` with fewer entries than `x` has axes.

    References
    ----------
    .. [1] https://onnx.ai/onnx/operators/onnx__Expand.html

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.expand(np.array([[1], [2]]), (3, 1, 4)).shape
    (3, 2, 4)
    >>> tileops.expand(np.array([[1], [2]]), 3)
    array([[1, 1, 1],
           [2, 2, 2]])
    """
    return run(EXPAND, x, shape, copy, out, max_bytes)


def tile_shape(shape: Any, repeats: Any) -> tuple[int, ...]:
    """Compute the shape that `tile` gives.

    Parameters
    ----------
    shape : int, sequence of int, or array of int, rank 0 or 1
        The shape of the input.
    repeats : int, sequence of int, or array of int, rank 0 or 1
        As for `tile`.

    Returns
    -------
    tuple of int
        The shape of the result.

    Raises
    ------
    RepeatsError
        If `tile` would refuse `repeats`.
    ShapeError
        If `shape` is not a valid shape. For a size that is not a known integer, the error
        is also a TypeError.
    OutputTooLargeError
        If the sizes of the result, zeros left out, multiply to more than 2**63-1.

    See Also
    --------
    tile : The operator.

    Examples
    --------
    >>> import tileops
    >>> tileops.tile_shape((2, 3), (4, 1, 2))
    (4, 2, 6)
    """
    return _shape(_TILE_SHAPE, shape, repeats)


def expand_shape(shape: Any, target: Any) -> tuple[int, ...]:
    """Compute the shape that `expand` gives.

    Parameters
    ----------
    shape : int, sequence of int, or array of int, rank 0 or 1
        The shape of the input.
    target : int, sequence of int, or array of int, rank 0 or 1
        The sizes to broadcast with, as for `expand`.

    Returns
    -------
    tuple of int
        The shape of the result.

    Raises
    ------
    ShapeError
        If `shape` or `target` is not a valid shape, or two sizes differ and neither is 1.
        For a size that is not a known integer, the error is also a TypeError.
    OutputTooLargeError
        If the sizes of the result, zeros left out, multiply to more than 2**63-1.

    See Also
    --------
    expand : The operator.

    Examples
    --------
    >>> import tileops
    >>> tileops.expand_shape((2, 1), (3, 1, 4))
    (3, 2, 4)
    """
    return _shape(_EXPAND_SHAPE, shape, target)


def _shape(operator: Operator, shape: Any, counts: Any) -> tuple[int, ...]:
    prepare_to_trace()
    shape = read_shape(shape_argument(operator.name), shape)
    return result_shape(operator, shape, read_counts(operator.argument, counts))

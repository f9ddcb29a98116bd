"""Shape inference as ONNX does it: sizes may be numbers, symbols or unknown.

For a valid model it gives exactly what ``onnx.shape_inference`` gives, neither more nor
less precise, so that a compiler may use either, if it passes the counts that ONNX uses: for a Tile
those of a constant, for an Expand also those that data propagation finds. It does not need the
package ``onnx``.
"""

from typing import Any

from tileops._counts import entries, is_sequence, read_counts
from tileops._rules import (
    LIMIT,
    Argument,
    check_counts,
    differ,
    known,
    no_broadcast,
    pad,
    shape_argument,
)
from tileops._texts import show
from tileops.errors import OutputTooLargeError
from tileops.onnx._schemas import EXPAND_13, TILE_13

Dim = int | str | None
"""A size: a number, a symbol, or None if unknown."""


def infer_tile_shape(input_shape: Any, repeats: Any) -> tuple[int | None, ...] | None:
    """Infer the shape of ONNX Tile-13, as far as it is known.

    Where every count is known, each known size is multiplied by its count. A symbol
    becomes unknown, even where its count is 1. Where any count is unknown, only the
    rank is inferred, because ONNX then ignores all counts. ONNX also ignores counts that
    are not a constant, such as the known sizes of another tensor: pass None for these to
    infer no more than ONNX does.

    Parameters
    ----------
    input_shape : sequence of int, str or None; or None
        The input's sizes, each a number, a symbol's name, or None if unknown. None for
        an input of unknown rank.
    repeats : sequence of int, str or None; array of int64, rank 1; or None
        The counts, as far as they are known.

    Returns
    -------
    tuple of int or None; or None
        The sizes of the result; None if its rank is unknown.

    Raises
    ------
    RepeatsError
        If `repeats` is not a sequence of counts; if the rank and all counts are known, and
        there is not one count for each axis, or a count is negative or exceeds 2**63-1. The
        error is also a TypeError if counts have another dtype than int64.
    ShapeError
        If a size is negative or exceeds 2**63-1, or `input_shape` is not a shape. For a size
        that is not an int, a str or None, the error is also a TypeError.
    OutputTooLargeError
        If a size of the result exceeds 2**63-1.

    See Also
    --------
    tile_13 : The operator.

    References
    ----------
    .. [1] https://onnx.ai/onnx/repo-docs/ShapeInference.html

    Examples
    --------
    >>> import tileops
    >>> tileops.onnx.infer_tile_shape(("batch", 3), (2, 4))
    (None, 12)
    >>> tileops.onnx.infer_tile_shape(("batch", 3), None)
    (None, None)
    """
    argument = TILE_13.argument
    sizes = _read_sizes(argument.operator_name, input_shape)
    counts = _read_dims(argument, repeats)
    if sizes is None:
        return None
    if counts is None or not all(map(known, counts)):
        return (None,) * len(sizes)
    sizes, counts = TILE_13.align(argument, sizes, counts)
    return tuple(
        _multiply(axis, n, r) if known(n) else None
        for axis, (n, r) in enumerate(zip(sizes, counts, strict=True))
    )


def infer_expand_shape(input_shape: Any, shape: Any) -> tuple[Dim, ...] | None:
    """Infer the shape of ONNX Expand-13, as far as it is known.

    A number other than 1 determines the size of its axis, whatever the other size is. A
    symbol is kept if the other size is 1 or the same symbol.

    Parameters
    ----------
    input_shape : sequence of int, str or None; or None
        The input's sizes, each a number, a symbol's name, or None if unknown. None for
        an input of unknown rank.
    shape : sequence of int, str or None; array of int64, rank 1; or None
        The sizes to broadcast with, as far as they are known. None if not even their
        number is known.

    Returns
    -------
    tuple of int, str or None; or None
        The sizes of the result; None if its rank is unknown.

    Raises
    ------
    ShapeError
        If an argument is not a shape, or a size of the input is negative or exceeds 2**63-1.
        If both ranks are known: if two known sizes differ and neither is 1, or if a size of
        `shape` is negative or exceeds 2**63-1. For a size that is not an int, a str or None
        (an array of another dtype than int64), the error is also a TypeError.

    See Also
    --------
    expand_13 : The operator.

    Notes
    -----
    ONNX's own inference accepts a negative entry of `shape` as a size; this function
    refuses it, as the operator does.

    References
    ----------
    .. [1] https://onnx.ai/onnx/repo-docs/ShapeInference.html

    Examples
    --------
    >>> import tileops
    >>> tileops.onnx.infer_expand_shape(("batch", 1, None), (1, "width", 3))
    ('batch', 'width', 3)
    """
    argument = EXPAND_13.argument
    sizes = _read_sizes(argument.operator_name, input_shape)
    wanted = _read_dims(argument, shape)
    if sizes is None or wanted is None:
        return None
    check_counts(argument, wanted, len(sizes))
    pairs = zip(*pad(sizes, wanted), strict=True)
    return tuple(_broadcast(axis, n, m, sizes, wanted) for axis, (n, m) in enumerate(pairs))


def _multiply(axis: int, size: int, count: int) -> int:
    product = size * count
    if product > LIMIT:
        raise OutputTooLargeError(
            f"{TILE_13.name}: axis {axis}: size {show(size)} repeated {show(count)} times is past "
            f"2**63-1; reduce the repeats"
        )
    return product


def _broadcast(axis: int, n: Any, m: Any, sizes: Any, wanted: Any) -> Dim:
    if differ(n, m):
        raise no_broadcast(EXPAND_13.argument, axis, n, m, sizes, wanted)
    for size in (n, m):
        if known(size) and size != 1:
            return size  # type: ignore[no-any-return]
    if n == 1:
        return m  # type: ignore[no-any-return]
    return n if m in {1, n} else None


def _read_sizes(operator_name: str, value: Any) -> Any:
    argument = shape_argument(operator_name)._replace(is_vector=True, greatest=LIMIT)
    sizes = _read_dims(argument, value)
    if sizes is not None:
        check_counts(argument, sizes)
    return sizes


def _read_dims(argument: Argument, value: Any) -> Any:
    """Read counts that may be symbols or unknown; an empty symbol is unknown, as in ONNX."""
    if value is None:
        return None
    if not is_sequence(value):
        return read_counts(argument, value)
    value = entries(argument, value)
    try:
        numbers = read_counts(argument, [1 if _is_unknown(dim) else dim for dim in value])
    except argument.type_error as error:
        raise argument.type_error(f"{error}; a str is a symbol, None is unknown") from error
    pairs = zip(value, numbers, strict=True)
    return tuple((dim or None) if _is_unknown(dim) else number for dim, number in pairs)


def _is_unknown(dim: Any) -> bool:
    return dim is None or isinstance(dim, str)

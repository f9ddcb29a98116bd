"""OpenVINO Tile-1: repeats of any integer type; either the repeats or the shape is padded."""

from typing import Any

from tileops._rules import TILE, Aligned, Argument, is_less, tile_repeats
from tileops._run import run

__all__ = ["tile"]


def _count_negatives_as_zero(
    argument: Argument, shape: tuple[int, ...], repeats: tuple[int, ...]
) -> Aligned:
    repeats = tuple(0 if is_less(count, 0) else count for count in repeats)
    return tile_repeats(argument, shape, repeats)


_DTYPES = {
    "bool": "boolean",
    "string": "string",
    **{f"int{bits}": f"i{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (1, 2, 3, 4, 6, 8, 16, 32, 64)},
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
    "float4_e2m1fn": "f4e2m1",
}
"""The element types of OpenVINO 2026.4, without nf4, which no array library has."""

_TILE = TILE.derive(
    "OpenVINO Tile-1", align=_count_negatives_as_zero, dtypes=_DTYPES, is_vector=True
)


def tile(data: Any, repeats: Any) -> Any:
    """Repeat a tensor along each of its axes, as OpenVINO's Tile-1 does.

    Parameters
    ----------
    data : array, shape (n0, n1, ...)
        An array of any library and of a dtype that OpenVINO has: no complex numbers,
        dates or records.
    repeats : sequence of int, or array of any int dtype, rank 1
        How often each axis is repeated; 0 or a negative count makes the axis empty.
        Repeats and axes are aligned on the right, and the shorter of the two is padded
        with ones on the left.

    Returns
    -------
    array, shape (r0 * n0, r1 * n1, ...)
        The result, of the library, dtype and device of `data`, with memory of its own.

    Raises
    ------
    RepeatsError
        If `repeats` is not one-dimensional, or if a count is not a known integer (bool,
        float, traced); for such a count, the error is also a TypeError.
    ShapeError
        If a size of `data` is not known, or if the result has more axes than the
        library's arrays can have (64 in NumPy).
    DTypeError
        If `data` is not an array, or is of a dtype that OpenVINO lacks.
    OutputTooLargeError
        If the product of the result's sizes, leaving out zeros, exceeds 2**63-1 elements
        or bytes. In Dask also if the result has more than 2**20 chunks.

    See Also
    --------
    tileops.tile : The same for every dtype, without negative counts.

    Notes
    -----
    The specification [1]_ says nothing about negative counts. OpenVINO 2026.4 infers a
    size of 0 for them, and so does this function. In compiled and exported programs of PyTorch,
    a count that is read from data must not be negative; nor, in exported programs of PyTorch
    and JAX, one that is computed from sizes.

    References
    ----------
    .. [1] https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.openvino.tile(np.zeros((2, 3)), [2, 2, 2]).shape
    (2, 4, 6)
    >>> tileops.openvino.tile(np.zeros((2, 3)), np.array([-1], np.int8)).shape
    (2, 0)
    """
    return run(_TILE, data, repeats)

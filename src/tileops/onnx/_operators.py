"""ONNX Tile and Expand: the published versions, each with its rules, on any array."""

from typing import Any

from tileops import execute
from tileops._rules import Operator
from tileops._run import run
from tileops.onnx._schemas import EXPAND_8, EXPAND_13, TILE_1, TILE_6, TILE_13
from tileops.onnx._tile_1 import ARGUMENTS, count_dtypes, read_whole


def tile_1(input: Any, tiles: Any, axis: Any) -> Any:
    """Repeat a tensor along one axis, as ONNX Tile of opsets 1 to 5 does.

    The published schema contradicts itself: it gives `tiles` and `axis` the type T
    of the input, a float, and declares T1 = int64 "to constrain tiles and axis's type"
    without using it. This function takes both types: T by the letter of the schema,
    int64 by its intent. The schema also says that the output has the shape of the
    input, which is true only for ``tiles = 1``; here the output has the repeated shape.

    Parameters
    ----------
    input : array, shape (n0, n1, ...), dtype T
        An array of any library; T is float16, float32 or float64.
    tiles : int, float, or array of one element, dtype T or int64
        How often the axis is repeated, a whole number; 0 makes the axis empty.
    axis : int, float, or array of one element, dtype T or int64
        The axis, a whole number. A negative axis counts from the end, as in later
        operators; the schema says nothing about it.

    Returns
    -------
    array, shape of `input` with ``n_axis * tiles`` on the axis, dtype T
        The result, of the library and device of `input`, with memory of its own.

    Raises
    ------
    RepeatsError
        If `tiles` is negative, NaN or not whole, exceeds 2**63-1, or is not one element. The
        error is also a TypeError if `tiles` is neither of T nor int64 (bool, int32, another
        float, traced).
    ShapeError
        If `axis` is out of range, NaN or not whole, or not one element. The error is also
        a TypeError if `axis` is neither of T nor int64. If a size of `input` is not known.
    DTypeError
        If `input` is not an array, or is of another dtype than T.
    OutputTooLargeError
        If the product of the result's sizes, leaving out zeros, exceeds 2**63-1 elements
        or bytes. In Dask also if the result has more than 2**20 chunks.

    See Also
    --------
    tile_6 : The next version, with a count for each axis.
    tileops.onnx.upgrade.upgrade : Rewrite a model's Tile-1 as Tile-13.

    References
    ----------
    .. [1] https://onnx.ai/onnx/operators/onnx__Tile.html#tile-1

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> x = np.array([[1, 2]], np.float32)
    >>> tileops.onnx.tile_1(x, np.float32(2), np.int64(-1))
    array([[1., 2., 1., 2.]], dtype=float32)
    """
    return apply(TILE_1, input, tiles, axis)


def tile_6(input: Any, repeats: Any) -> Any:
    """Repeat a tensor along each axis, as ONNX Tile of opsets 6 to 12 does.

    It is the same as `tile_13` without bfloat16.

    Parameters
    ----------
    input : array, shape (n0, n1, ...), dtype T
        An array of any library; T is bool, any integer of 8 to 64 bits, float16,
        float32, float64, complex64, complex128 or string.
    repeats : sequence of int, or array of int64, shape (rank of `input`,)
        How often each axis is repeated; 0 makes the axis empty.

    Returns
    -------
    array, shape (r0 * n0, r1 * n1, ...), dtype T
        The result, of the library and device of `input`, with memory of its own.

    Raises
    ------
    RepeatsError
        If `repeats` does not have one count for each axis or is not one-dimensional, or
        if a count is negative or exceeds 2**63-1. The error is also a TypeError if counts
        have another dtype than int64 (bool, int32, float) or are traced.
    ShapeError
        If a size of `input` is not known.
    DTypeError
        If `input` is not an array, or is of a dtype that T does not include.
    OutputTooLargeError
        If the product of the result's sizes, leaving out zeros, exceeds 2**63-1 elements
        or bytes. In Dask also if the result has more than 2**20 chunks.

    See Also
    --------
    tile_13 : The current version.
    tileops.tile : The same without these limits; it pads shapes and takes every dtype.

    References
    ----------
    .. [1] https://onnx.ai/onnx/operators/onnx__Tile.html#tile-6

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.onnx.tile_6(np.array(["a", "b"]), np.array([2]))
    array(['a', 'b', 'a', 'b'], dtype='<U1')
    """
    return run(TILE_6, input, repeats)


def tile_13(input: Any, repeats: Any) -> Any:
    """Repeat a tensor along each axis, as ONNX Tile of opset 13 and later does.

    Parameters
    ----------
    input : array, shape (n0, n1, ...), dtype T
        An array of any library; T is bool, any integer of 8 to 64 bits, bfloat16,
        float16, float32, float64, complex64, complex128 or string. A string tensor is
        an array of NumPy's str or StringDType or, without Dask, of objects that are all str.
    repeats : sequence of int, or array of int64, shape (rank of `input`,)
        How often each axis is repeated; 0 makes the axis empty.

    Returns
    -------
    array, shape (r0 * n0, r1 * n1, ...), dtype T
        The result, of the library and device of `input`, with memory of its own.

    Raises
    ------
    RepeatsError
        If `repeats` does not have one count for each axis or is not one-dimensional, or
        if a count is negative or exceeds 2**63-1. The error is also a TypeError if counts
        have another dtype than int64 (bool, int32, float) or are traced.
    ShapeError
        If a size of `input` is not known.
    DTypeError
        If `input` is not an array, or is of a dtype that T does not include.
    OutputTooLargeError
        If the product of the result's sizes, leaving out zeros, exceeds 2**63-1 elements
        or bytes. In Dask also if the result has more than 2**20 chunks.

    See Also
    --------
    infer_tile_shape : The shape of the result where sizes are only partly known.
    tileops.tile : The same without these limits; it pads shapes and takes every dtype.

    References
    ----------
    .. [1] https://onnx.ai/onnx/operators/onnx__Tile.html#tile-13

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.onnx.tile_13(np.array([[1, 2], [3, 4]]), (1, 2))
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    """
    return run(TILE_13, input, repeats)


def expand_8(input: Any, shape: Any) -> Any:
    """Broadcast a tensor and a shape, as ONNX Expand of opsets 8 to 12 does.

    It is the same as `expand_13` without bfloat16.

    Parameters
    ----------
    input : array, shape (n0, n1, ...), dtype T
        An array of any library; T is bool, any integer of 8 to 64 bits, float16,
        float32, float64, complex64, complex128 or string.
    shape : sequence of int, or array of int64, rank 1
        The sizes to broadcast with, aligned on the right. Of two sizes that differ, one
        must be 1.

    Returns
    -------
    array, shape ``expand_shape(input.shape, shape)``, dtype T
        The result, of the library and device of `input`, with memory of its own.

    Raises
    ------
    ShapeError
        If two sizes differ and neither is 1, if a size is negative or exceeds 2**63-1, if
        `shape` is not one-dimensional, if a size of `input` is not known, or if the result
        has more axes than the library's arrays can have (64 in NumPy). The error is also a
        TypeError if sizes have another dtype than int64 (bool, int32, float) or are traced.
    DTypeError
        If `input` is not an array, or is of a dtype that T does not include.
    OutputTooLargeError
        If the product of the result's sizes, leaving out zeros, exceeds 2**63-1 elements
        or bytes. In Dask also if the result has more than 2**20 chunks.

    See Also
    --------
    expand_13 : The current version.
    tileops.expand : The same without these limits, and without a copy where possible.

    References
    ----------
    .. [1] https://onnx.ai/onnx/operators/onnx__Expand.html#expand-8

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.onnx.expand_8(np.array([[1], [2]]), np.array([3, 1, 2])).shape
    (3, 2, 2)
    """
    return run(EXPAND_8, input, shape)


def expand_13(input: Any, shape: Any) -> Any:
    """Broadcast a tensor and a shape, as ONNX Expand of opset 13 and later does.

    Parameters
    ----------
    input : array, shape (n0, n1, ...), dtype T
        An array of any library; T is bool, any integer of 8 to 64 bits, bfloat16,
        float16, float32, float64, complex64, complex128 or string. A string tensor is
        an array of NumPy's str or StringDType or, without Dask, of objects that are all str.
    shape : sequence of int, or array of int64, rank 1
        The sizes to broadcast with, aligned on the right. Of two sizes that differ, one
        must be 1. It may be shorter than the rank of `input`.

    Returns
    -------
    array, shape ``expand_shape(input.shape, shape)``, dtype T
        The result, of the library and device of `input`, with memory of its own.

    Raises
    ------
    ShapeError
        If two sizes differ and neither is 1, if a size is negative or exceeds 2**63-1, if
        `shape` is not one-dimensional, if a size of `input` is not known, or if the result
        has more axes than the library's arrays can have (64 in NumPy). The error is also a
        TypeError if sizes have another dtype than int64 (bool, int32, float) or are traced.
    DTypeError
        If `input` is not an array, or is of a dtype that T does not include.
    OutputTooLargeError
        If the product of the result's sizes, leaving out zeros, exceeds 2**63-1 elements
        or bytes. In Dask also if the result has more than 2**20 chunks.

    See Also
    --------
    infer_expand_shape : The shape of the result where sizes are only partly known.
    tileops.expand : The same without these limits, and without a copy where possible.

    References
    ----------
    .. [1] https://onnx.ai/onnx/operators/onnx__Expand.html#expand-13

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> tileops.onnx.expand_13(np.array([[1], [2]]), np.array([3]))
    array([[1, 1, 1],
           [2, 2, 2]])
    """
    return run(EXPAND_13, input, shape)


def apply(operator: Operator, input: Any, *counts: Any, max_bytes: int | None = None) -> Any:
    """Apply a version of an operator to the inputs of its node."""
    if operator is TILE_1:
        executor = execute.executor_of(TILE_1.name, input)
        dtypes = count_dtypes(executor.dtype(executor.array(input)))
        given: Any = tuple(read_whole(a, n, dtypes) for a, n in zip(ARGUMENTS, counts, strict=True))
    else:
        (given,) = counts
    return run(operator, input, given, max_bytes=max_bytes)

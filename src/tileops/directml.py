"""DirectML Tile: the rules of DML_TILE_OPERATOR_DESC at each feature level."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tileops._counts import read_counts
from tileops._rules import (
    TILE,
    Aligned,
    Argument,
    Operator,
    check_counts,
    exceeds,
    result_shape,
    shape_argument,
    tile_repeats_unpadded,
)
from tileops._run import run
from tileops._texts import describe, show
from tileops.errors import (
    DTypeError,
    OutputTooLargeError,
    ShapeError,
    TileOpsError,
    UnsupportedError,
)

__all__ = ["TensorDesc", "TileOperatorDesc", "tile"]

_UINT_MAX = 2**32 - 1

_DTYPES_1_0 = ("float32", "float16")
_DTYPES_2_1 = (*_DTYPES_1_0, "int32", "int16", "int8", "uint32", "uint16", "uint8")
_DTYPES_4_1 = (*_DTYPES_2_1, "int64", "uint64")

_CHANGES = {
    "1.0": (4, 4, _DTYPES_1_0),
    "2.1": (4, 4, _DTYPES_2_1),
    "3.1": (1, 8, _DTYPES_2_1),
    "4.1": (1, 8, _DTYPES_4_1),
}
"""The feature levels that changed the operator, each with the fewest and the most dimensions, and
the data types. DirectML's names of data types are those of dtypes in capitals."""

_LEVELS = (
    *("1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1"),
    *("5.0", "5.1", "5.2", "6.0", "6.1", "6.2", "6.3", "6.4"),
)
"""All feature levels: DML_FEATURE_LEVEL in DirectML.h."""


@dataclass(frozen=True)
class TensorDesc:
    """What the operator knows about a tensor, as DML_BUFFER_TENSOR_DESC describes it.

    Attributes
    ----------
    data_type : str
        DirectML's name, such as "FLOAT32", with or without the prefix DML_TENSOR_DATA_TYPE.
    sizes : sequence of int
        The number of elements along each dimension.

    See Also
    --------
    TileOperatorDesc : The operator on two such tensors.

    Notes
    -----
    Flags, strides, the total size in bytes and the guaranteed alignment are left out: they
    say where a tensor lies in a buffer, and the operator's rules do not depend on them.
    Tensors are assumed to be packed.

    References
    ----------
    .. [1] https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_buffer_tensor_desc

    Examples
    --------
    >>> import tileops
    >>> tileops.directml.TensorDesc("FLOAT32", (1, 1, 2, 3)).dimension_count
    4
    """

    data_type: str
    sizes: Sequence[int]

    def __post_init__(self) -> None:
        """Store a tuple of sizes and a name without prefix, so that equal tensors compare equal."""
        given: Any = self.data_type  # `check` refuses anything that is not a name
        if isinstance(given, str):
            object.__setattr__(self, "data_type", given.removeprefix("DML_TENSOR_DATA_TYPE_"))
        object.__setattr__(self, "sizes", _read(_SIZES, self.sizes))

    @property
    def dimension_count(self) -> int:
        """The number of sizes; ShapeError if `sizes` is not a list of sizes."""
        return len(read_counts(_SIZES, self.sizes))


@dataclass(frozen=True)
class TileOperatorDesc:
    """The operator, as DML_TILE_OPERATOR_DESC describes it.

    Attributes
    ----------
    input_tensor : TensorDesc
        The tensor to read from.
    output_tensor : TensorDesc
        The tensor to write to, of the same data type and dimension count. Each size is
        that of the input times its repeat.
    repeats : sequence of int
        How often each dimension is repeated, at least once.

    See Also
    --------
    tile : The operator on arrays.

    References
    ----------
    .. [1] https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_tile_operator_desc

    Examples
    --------
    >>> import tileops
    >>> from tileops.directml import TensorDesc
    >>> desc = tileops.directml.TileOperatorDesc(
    ...     input_tensor=TensorDesc("FLOAT32", (1, 1, 2, 3)),
    ...     output_tensor=TensorDesc("FLOAT32", (1, 1, 6, 9)),
    ...     repeats=(1, 1, 3, 3),
    ... )
    >>> desc.check("1.0")
    """

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    repeats: Sequence[int]

    def __post_init__(self) -> None:
        """Store the repeats as a tuple, so that a list of the same repeats makes no difference."""
        object.__setattr__(self, "repeats", _read(_TILE.argument, self.repeats))

    @property
    def repeats_count(self) -> int:
        """The number of repeats; RepeatsError if `repeats` is not a list of counts."""
        return len(read_counts(_TILE.argument, self.repeats))

    def check(self, feature_level: str = "4.1") -> None:
        """Refuse a description that DirectML does not accept at a feature level.

        Parameters
        ----------
        feature_level : str, default "4.1"
            From "1.0" to "6.4". The operator changed at 2.1, 3.1 and 4.1; any other level
            has the rules of the last change before it.

        Raises
        ------
        RepeatsError
            If there is not one repeat for each dimension, or if a repeat is 0, negative or
            does not fit in 32 bits. For one that is not an integer, the error is also a
            TypeError.
        ShapeError
            If the level does not allow the dimension count; if a size is 0 or does not
            fit in 32 bits; if the output's sizes are not those of the input times the
            repeats. For a size that is not an integer, the error is also a TypeError.
        DTypeError
            If a tensor is not a TensorDesc; if the level does not have the data type, or if
            the data types of the two tensors differ.
        OutputTooLargeError
            If a size of the output would not fit in 32 bits, or if the output would have
            more than 2**32-1 elements.
        UnsupportedError
            If there is no such feature level.
        """
        operator = _operator(feature_level)
        for name, tensor in (("input", self.input_tensor), ("output", self.output_tensor)):
            if not isinstance(tensor, TensorDesc):
                raise DTypeError(
                    f"{operator.name}: the {name} is {describe(tensor)}; pass a TensorDesc"
                )
        _check_data_type(operator, "input", self.input_tensor)
        sizes = read_counts(_sizes(operator.name, "input"), self.input_tensor.sizes)
        repeats = read_counts(operator.argument, self.repeats)
        expected = result_shape(operator, sizes, repeats)
        _check_data_type(operator, "output", self.output_tensor)
        if self.output_tensor.data_type != self.input_tensor.data_type:
            raise DTypeError(
                f"{operator.name}: the output has data type {self.output_tensor.data_type} and "
                f"the input {self.input_tensor.data_type}; they must be the same; "
                f"give the output the type of the input"
            )
        found = read_counts(_sizes(operator.name, "output"), self.output_tensor.sizes)
        if found != expected:
            raise ShapeError(
                f"{operator.name}: the output has sizes {show(found)}, but input sizes "
                f"{show(sizes)} times repeats {show(repeats)} are {show(expected)}; "
                f"pass those as the output's sizes"
            )


def tile(input: Any, repeats: Any, *, feature_level: str = "4.1", out: Any = None) -> Any:
    """Repeat a tensor along each of its dimensions, as DirectML's Tile does.

    Parameters
    ----------
    input : array, 4 dimensions; from level 3.1 on 1 to 8
        An array of any library. Its dtype is float32 or float16; from level 2.1 on
        also int32, int16, int8, uint32, uint16 or uint8; from level 4.1 on also int64
        or uint64. No size may be 0.
    repeats : sequence of int, or array of any int dtype, rank 1
        How often each dimension is repeated: one count for each dimension, at least 1.
    feature_level : str, default "4.1"
        From "1.0" to "6.4". The operator changed at 2.1, 3.1 and 4.1; any other level has
        the rules of the last change before it.
    out : array, optional
        Where to write: an array of the same library, with the shape of the result
        and the dtype and device of `input`, that shares no element with `input`.

    Returns
    -------
    array, shape (r0 * n0, r1 * n1, ...)
        The result, of the library, dtype and device of `input`, with memory of its own; or
        `out` if that was given.

    Raises
    ------
    RepeatsError
        If there is not one repeat for each dimension, or if a repeat is 0, negative or does
        not fit in 32 bits. For one that is not a known integer (bool, float, traced), the
        error is also a TypeError.
    ShapeError
        If the level does not allow the dimension count; if a size is 0, does not fit in
        32 bits or is not known; if `out` has another shape.
    DTypeError
        If `input` is not an array; if the level does not have its dtype; if `out` has
        another dtype, or its library cannot write into arrays.
    OutputError
        If `out` overlaps `input`, has elements that share memory, is read-only or is on
        another device. In PyTorch also if a gradient would have to be recorded, or if `input`
        or `out` has no address (fake, traced, a DTensor, or inside ``torch.func``).
    OutputTooLargeError
        If a size of the result would not fit in 32 bits, or if the result would have more
        than 2**32-1 elements. In Dask also if the result has more than 2**20 chunks.
    UnsupportedError
        If there is no such feature level.

    See Also
    --------
    TileOperatorDesc : The same rules without an array.
    tileops.tile : The same without these limits.

    Notes
    -----
    That no size may be 0 and that no tensor may have more than 2**32-1 elements are rules
    of DirectML's tensors [2]_, not of the operator.

    References
    ----------
    .. [1] https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_tile_operator_desc
    .. [2] https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_buffer_tensor_desc

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> x = np.array([[[[1, 2, 3], [4, 5, 6]]]], np.float32)
    >>> tileops.directml.tile(x, (1, 1, 1, 2), feature_level="1.0")
    array([[[[1., 2., 3., 1., 2., 3.],
             [4., 5., 6., 4., 5., 6.]]]], dtype=float32)
    """
    return run(_operator(feature_level), input, repeats, out=out)


def _operator(feature_level: Any) -> Operator:
    """Return the rules of a feature level; UnsupportedError if there is no such level."""
    found = _OPERATORS.get(feature_level) if isinstance(feature_level, str) else None
    if found is None:
        raise UnsupportedError(
            f"DirectML Tile: feature_level is {describe(feature_level)}; pass one of these as str: "
            f"{', '.join(_LEVELS)}"
        )
    return found


def _align(
    fewest: int,
    most: int,
    argument: Argument,
    sizes: tuple[int, ...],
    repeats: tuple[int, ...],
) -> Aligned:
    name = argument.operator_name
    if not fewest <= len(sizes) <= most:
        wanted = f"exactly {most}" if fewest == most else f"{fewest} to {most}"
        dimensions = "dimension" if len(sizes) == 1 else "dimensions"
        raise ShapeError(
            f"{name}: the input has {len(sizes)} {dimensions} (sizes {show(sizes)}); this level "
            f"takes {wanted}; reshape it, or use tileops.tile"
        )
    check_counts(_sizes(name, "input"), sizes)
    sizes, repeats = tile_repeats_unpadded(argument, sizes, repeats)
    elements = 1
    for axis, (n, r) in enumerate(zip(sizes, repeats, strict=True)):
        if exceeds(n * r, _UINT_MAX):
            raise OutputTooLargeError(
                f"{name}: axis {axis}: size {n} repeated {r} times is {n * r}; no size may exceed "
                f"{_UINT_MAX}; reduce the repeats"
            )
        elements *= n * r
    if exceeds(elements, _UINT_MAX):
        raise OutputTooLargeError(
            f"{name}: input sizes {show(sizes)} times repeats {show(repeats)} are "
            f"{show(elements)} elements; no tensor may have more than {_UINT_MAX}; reduce the "
            f"repeats or the input"
        )
    return sizes, repeats


_TILE = TILE.derive(
    "DirectML Tile",
    remedy="1 keeps a dimension as it is",
    least=1,
    greatest=_UINT_MAX,
    is_vector=True,
)
"""The rules for repeats, which are the same at all feature levels."""


def _at(level: str) -> Operator:
    """Make the rules of a level: those of the last change of the operator up to this level."""
    fewest, most, dtypes = _CHANGES[max(since for since in _CHANGES if since <= level)]
    return _TILE.derive(
        f"DirectML Tile at feature level {level}",
        align=partial(_align, fewest, most),
        dtypes={dtype: dtype.upper() for dtype in dtypes},
    )


_OPERATORS = {level: _at(level) for level in _LEVELS}


def _read(argument: Argument, value: Any) -> Any:
    """Return counts as a tuple of ints; leave what is not that to `check`, which refuses it."""
    try:
        return read_counts(argument, value)
    except TileOpsError:
        return tuple(value) if type(value) is list else value


def _sizes(operator_name: str, tensor: str) -> Argument:
    return shape_argument(operator_name, f"{tensor} sizes")._replace(
        remedy="DirectML has no empty tensors; leave the operator out",
        least=1,
        greatest=_UINT_MAX,
        is_vector=True,
    )


_SIZES = _sizes("DirectML TensorDesc", "tensor")
"""The rules for a tensor's sizes before an operator gives them its name."""


def _check_data_type(operator: Operator, name: str, tensor: TensorDesc) -> None:
    """Refuse a data type that the feature level does not have."""
    given: Any = tensor.data_type
    names = (operator.dtypes or {}).values()
    if not isinstance(given, str) or given not in names:
        raise DTypeError(
            f"{operator.name}: the {name} has data type {describe(given).removeprefix('str ')}; "
            f"this level takes {', '.join(names)}; pass one of these"
        )

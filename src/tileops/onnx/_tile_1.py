"""How `tiles` and `axis` of ONNX Tile-1 are read.

Both are numbers of the input's own float type T, as the schema says, or of int64, as it intends.
"""

from contextlib import suppress
from operator import index
from typing import Any

from tileops import execute
from tileops._counts import is_array, values_of
from tileops._rules import Argument, check_dtype
from tileops._texts import describe, type_name
from tileops.errors import ShapeError
from tileops.onnx._schemas import FLOATS, INT64, TILE_1

ARGUMENTS = (TILE_1.argument, Argument("Tile-1", "axis", ShapeError, ""))
"""`tiles` and `axis`."""


def count_dtypes(dtype: str | None) -> tuple[str, ...]:
    """Name the dtypes that `tiles` and `axis` may have; refuse an input's dtype that T lacks.

    If the input's dtype is not known (None), name all dtypes that they may have.
    """
    if dtype is None:
        return (*FLOATS, INT64)
    check_dtype(TILE_1, dtype)
    return dtype, INT64


def check_count_dtype(argument: Argument, dtype: str, dtypes: tuple[str, ...]) -> None:
    """Refuse a count whose dtype is neither the input's type T nor int64."""
    if dtype not in dtypes:
        raise argument.type_error(
            f"{argument.operator_name}: {argument.name} is of {dtype}; {argument.operator_name} "
            f"takes {' or '.join(dtypes)} (the input's type T, or int64); convert it, or pass an "
            f"int"
        )


def read_whole(argument: Argument, value: Any, dtypes: tuple[str, ...]) -> int:
    """Turn `tiles` or `axis`, a number or an array of one element of `dtypes`, into an int."""
    if is_array(value):
        value = _read_element(argument, value, dtypes)
    if type(value) is int or execute.is_symbolic(value):
        return value  # type: ignore[no-any-return]
    if type(value) is float:
        if not value.is_integer():
            raise argument.error(
                f"{argument.operator_name}: {argument.name} is {value}; it must be a whole number, "
                f"such as 2 or 2.0"
            )
        return int(value)
    with suppress(Exception):  # `__index__` is anybody's code
        if not isinstance(value, bool):
            return index(value)
    raise _no_number(argument, describe(value), dtypes)


def _no_number(argument: Argument, found: str, dtypes: tuple[str, ...]) -> Exception:
    return argument.type_error(
        f"{argument.operator_name}: {argument.name} is {found}; it must be one whole number; pass "
        f"an int, or one element of {' or '.join(dtypes)}"
    )


def _read_element(argument: Argument, array: Any, dtypes: tuple[str, ...]) -> Any:
    executor = execute.find_executor(array)
    if executor is None:
        found = f"{type_name(type(array))}, an array of no known library"
        raise _no_number(argument, found, dtypes)
    check_count_dtype(argument, executor.dtype(array), dtypes)
    shape = tuple(array.shape)
    if any(size != 1 for size in shape):
        raise argument.error(
            f"{argument.operator_name}: {argument.name} has shape {shape}; it must have one "
            f"element; pass a single number"
        )
    return values_of(argument, "", executor, array[(0,) * len(shape)])[0]

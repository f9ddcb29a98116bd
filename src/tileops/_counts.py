"""Reading of counts: what people pass as repeats or shape becomes a tuple of ints."""

from collections.abc import Sequence
from operator import index
from typing import Any

from tileops import execute
from tileops._rules import Argument, show


def read_counts(argument: Argument, value: Any) -> tuple[int, ...]:
    """Turn an int, a sequence of ints or an integer array into a tuple of ints.

    Every fixed-width count becomes a Python int, so that no arithmetic on
    counts can overflow. Symbolic integers stay as they are.
    """
    if isinstance(value, tuple | list):
        if all(type(count) is int for count in value):
            return tuple(value)
        return tuple(_read_one(argument, f"[{i}]", count) for i, count in enumerate(value))
    if _is_array(value):
        return _read_array(argument, "", value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return read_counts(argument, tuple(value))
    count = _read_one(argument, "", value)
    if argument.is_vector:
        raise argument.error(
            f"{argument.operator}: {argument.name} is {show(count)}, a single count; "
            f"{argument.operator} takes a one-dimensional {argument.name}; pass ({show(count)},)"
        )
    return (count,)


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple)


def _read_one(argument: Argument, where: str, count: Any) -> int:
    if type(count) is int or execute.is_symbolic(count):
        return count  # type: ignore[no-any-return]
    if _is_array(count):
        if len(count.shape) == 0:
            return _read_array(argument, where, count)[0]
    elif not isinstance(count, bool):
        try:
            return index(count)
        except TypeError:
            pass
    raise _not_an_integer(argument, where, f"{type(count).__name__} {count!r}")


def _read_array(argument: Argument, where: str, array: Any) -> tuple[int, ...]:
    executor = execute.find(array)
    if executor is None:
        kind = f"{type(array).__module__}.{type(array).__name__}"
        raise _not_an_integer(argument, where, f"{kind}, an array of no known library")
    is_vector = argument.is_vector and not where
    if len(array.shape) > 1 or (is_vector and len(array.shape) == 0):
        raise argument.error(
            f"{argument.operator}: {argument.name}{where} has shape {tuple(array.shape)}; "
            f"it must be {'' if is_vector else 'an int or '}one-dimensional; flatten it"
        )
    if not executor.is_integer(array):
        raise _not_an_integer(argument, where, f"an array of {array.dtype}")
    if argument.dtype is not None and executor.dtype(array) != argument.dtype:
        raise argument.type_error(
            f"{argument.operator}: {argument.name}{where} has dtype {executor.dtype(array)}; "
            f"{argument.operator} takes {argument.dtype}; convert it, or pass a tuple of int"
        )
    try:
        values = executor.integers(array)
    except Exception as error:
        raise argument.type_error(
            f"{argument.operator}: {argument.name}{where} is traced or lazy, so its values are "
            f"not known now; {argument.name} must be static: {executor.how_to_be_static}"
        ) from error
    return tuple(_read_one(argument, where, value) for value in values)


def _not_an_integer(argument: Argument, where: str, found: str) -> Exception:
    return argument.type_error(
        f"{argument.operator}: {argument.name}{where} is {found}; counts must be integers "
        f"(no bool, no float, whole or not); pass int, a sequence of int or an integer array"
    )

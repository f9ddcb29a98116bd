"""Read counts: whatever callers pass as repeats or shape becomes a tuple of ints."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice
from operator import index
from typing import Any

from tileops import execute
from tileops._rules import Argument, check_counts, exceeds
from tileops._texts import describe, show, type_name
from tileops.execute import compiling
from tileops.execute.array_api import Executor

_MOST_COUNTS = 2**20
"""The most counts read from anything but a tuple or list, and the most sizes in shape inference: no
array has so many axes."""


def read_counts(
    argument: Argument, value: Any, input_executor: Executor | None = None
) -> tuple[int, ...]:
    """Turn an int, a sequence of ints or an integer array into a tuple of ints.

    Integers of a fixed width become Python ints, so that arithmetic on counts cannot
    overflow. Symbols stay as they are. `input_executor` is the executor of the array to be
    repeated, if there is one; symbols of any other library are then refused.
    """
    if type(value) is not tuple:
        if not isinstance(value, (tuple, list)):
            return _read_other(argument, value, input_executor)
        value = _as_tuple(argument, value)
    for count in value:  # for a few counts, a loop takes half as long as a set of their types
        if type(count) is not int:
            return tuple(
                _read_one(argument, f"[{i}]", n, input_executor) for i, n in enumerate(value)
            )
    return value  # type: ignore[no-any-return]


def read_shape(
    argument: Argument, value: Any, input_executor: Executor | None = None
) -> tuple[int, ...]:
    """Read an input shape that the caller passes, and refuse sizes out of range."""
    shape = read_counts(argument, value, input_executor)
    check_counts(argument, shape)
    return shape


def _read_other(argument: Argument, value: Any, input_executor: Executor | None) -> tuple[int, ...]:
    executor = execute.executors.get(type(value))
    if executor is not None and not compiling.is_compiling():
        counts = _read_int64(executor, value)
        if counts is not None:
            return counts
    if is_array(value):
        return _read_array(argument, "", value, input_executor)
    if is_sequence(value):
        return read_counts(argument, entries(argument, value), input_executor)
    count = _read_one(argument, "", value, input_executor)
    if argument.is_vector:
        raise argument.error(
            f"{argument.operator_name}: {argument.name} is {show(count)}, a single "
            f"{argument.noun}; it must be one-dimensional; pass a sequence, such as "
            f"{show((count,))}"
        )
    return (count,)


def _read_int64(executor: Executor, array: Any) -> tuple[int, ...] | None:
    """Read a plain array of int64 in one dimension, which every operator takes, in few steps.

    None for any other array, and for one whose values are not known.
    """
    try:
        shape = array.shape
        is_vector = array.dtype == executor.int64 and len(shape) == 1
        if is_vector and not exceeds(shape[0], _MOST_COUNTS):
            return tuple(array.tolist())
    except RuntimeError:  # a tensor without a shape or without data; `_read_array` says so
        pass
    return None


def is_sequence(value: Any) -> bool:
    """Whether a value is a sequence, but not one of characters or bytes.

    Some sequences are not registered as such, for example OpenVINO's shapes.
    """
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping):
        return False
    is_sized = isinstance(value, Sized) and isinstance(value, Iterable)
    return is_sized and hasattr(value, "__getitem__")


def entries(argument: Argument, value: Sequence[Any]) -> tuple[Any, ...]:
    """Return the items of a sequence; refuse more counts than any array has axes."""
    try:
        number = len(value)
    except OverflowError as error:
        raise _too_many(argument, "at least 2**63") from error
    except Exception as error:
        raise _unreadable(argument, value) from error
    if number > _MOST_COUNTS:
        raise _too_many(argument, number)
    return _as_tuple(argument, value, number)


def _as_tuple(argument: Argument, value: Sequence[Any], most: int | None = None) -> tuple[Any, ...]:
    """Return the items of a sequence, `most` of them at most: it may go on without an end."""
    try:
        return tuple(value) if most is None else tuple(islice(value, most))
    except MemoryError:
        raise
    except Exception as error:
        raise _unreadable(argument, value) from error


def _unreadable(argument: Argument, value: Any) -> Exception:
    return argument.type_error(
        f"{argument.operator_name}: {argument.name} is {describe(value)}, whose items cannot be "
        f"read; {argument.noun}s must be integers; pass a tuple of int"
    )


def is_array(value: Any) -> bool:
    """Whether a value looks like an array of any library."""
    # torch.compile takes a symbol for an int, and can answer no other question about it.
    if isinstance(value, int):
        return False
    try:
        return hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple)
    except Exception:  # noqa: BLE001 (foreign code; a nested tensor of PyTorch has no shape)
        return False


def _read_one(argument: Argument, where: str, count: Any, input_executor: Executor | None) -> int:
    if type(count) is int:
        return count
    if is_array(count) and len(count.shape) == 0:
        return _read_array(argument, where, count, input_executor)[0]
    if is_array(count) or is_sequence(count):
        raise argument.type_error(
            f"{argument.operator_name}: {argument.name}{where} is {describe(count)}; "
            f"{argument.noun}s must be integers in one dimension; flatten {argument.name}"
        )
    if execute.is_symbolic(count):
        if input_executor is not None and not input_executor.is_symbolic(count):
            raise argument.type_error(
                f"{argument.operator_name}: {argument.name}{where} is the symbolic size {count}, "
                f"which {input_executor.library} arrays cannot have; pass integers, or an array of "
                f"the library that traces"
            )
        return count  # type: ignore[no-any-return]
    if not isinstance(count, bool):
        try:
            # torch.compile cannot take `index` of a member of an enum.
            return int(count) if isinstance(count, int) else index(count)
        except Exception as error:
            raise _not_an_integer(argument, where, describe(count), type(count)) from error
    raise _not_an_integer(argument, where, describe(count))


def _read_array(
    argument: Argument, where: str, array: Any, input_executor: Executor | None
) -> tuple[int, ...]:
    array = compiling.traceable(array)
    executor = execute.find_executor(array)
    if executor is None:
        found = f"{type_name(type(array))}, an array of no known library"
        raise _not_an_integer(argument, where, found, type(array))
    shape = array.shape
    rank = len(shape)
    if rank > 1:
        remedy = "flatten it, or pass it first if it is the array to repeat"
        if argument.noun == "size":
            remedy = "pass its .shape, or flatten it"
        raise _not_a_vector(argument, tuple(shape), remedy)
    if argument.dtype is None or executor.dtype(array) != argument.dtype:
        _check_dtype(argument, where, executor, array)
    if rank == 1 and exceeds(shape[0], _MOST_COUNTS):
        raise _too_many(argument, shape[0])
    if rank == 0 and argument.is_vector and not where:
        raise _not_a_vector(argument, (), "reshape it to (1,)")
    if rank == 0 and executor is input_executor and executor.is_symbolic(array):
        return (array,)
    return read_counts(argument, tuple(values_of(argument, where, executor, array)), input_executor)


def _not_a_vector(argument: Argument, shape: tuple[int, ...], remedy: str) -> Exception:
    single = "" if argument.is_vector else "an int or "
    return argument.error(
        f"{argument.operator_name}: {argument.name} has shape {shape}; it must be "
        f"{single}one-dimensional; {remedy}"
    )


def _too_many(argument: Argument, number: int | str) -> Exception:
    return argument.error(
        f"{argument.operator_name}: {argument.name} has {number} {argument.noun}s; no array has "
        f"so many axes; pass one for each axis"
    )


def _check_dtype(argument: Argument, where: str, executor: Executor, array: Any) -> None:
    if not executor.is_integer(array):
        raise _not_an_integer(argument, where, f"an array of {array.dtype}")
    if argument.dtype is not None:
        values_of(argument, where, executor, array)  # must be known, whatever their dtype
        raise argument.type_error(
            f"{argument.operator_name}: {argument.name}{where} has dtype {executor.dtype(array)}; "
            f"{argument.operator_name} takes {argument.dtype}; pass a tuple of int, or an array of "
            f"{argument.dtype} of any library"
        )


def values_of(argument: Argument, where: str, executor: Executor, array: Any) -> list[Any]:
    """Return the values of an array of counts; refuse an array whose values are not known now."""
    try:
        values = executor.numbers(array)
    except Exception as error:
        raise _not_known(argument, where, executor, array) from error
    if any(map(is_array, values)):  # a class with a unit may give its arrays again, without an end
        raise _not_known(argument, where, executor, array)
    return values


def _not_known(argument: Argument, where: str, executor: Executor, array: Any) -> Exception:
    return argument.type_error(
        f"{argument.operator_name}: {argument.name}{where} is {type(array).__name__}, whose "
        f"values cannot be read here (traced, masked, sparse, with a unit, or without data); "
        f"{argument.name} must be static: {executor.how_to_be_static}"
    )


def _not_an_integer(
    argument: Argument, where: str, found: str, cls: type | None = None
) -> Exception:
    ways = "a sequence of int" if argument.is_vector else "int, a sequence of int"
    array = "an integer array" if argument.dtype is None else f"an array of {argument.dtype}"
    if hasattr(cls, "__array__"):
        array += ", such as numpy.asarray makes of it"
    return argument.type_error(
        f"{argument.operator_name}: {argument.name}{where} is {found}; {argument.noun}s must be "
        f"integers, not bool or float, even if whole; pass {ways} or {array}"
    )

"""Arrays carried into a library of a given name, and back to NumPy, as models need it."""

from typing import Any

import numpy as np

from tileops import execute
from tileops._texts import describe, type_name
from tileops.errors import DTypeError, UnsupportedError
from tileops.execute.array_api import Executor
from tileops.execute.numpy import PLAIN


def executor_for(library: str) -> Executor:
    """Import a library and return its executor; UnsupportedError if that is not possible."""
    if not isinstance(library, str):
        raise UnsupportedError(
            f"the library is {describe(library)}; pass its name, such as 'numpy'"
        )
    try:
        executor = execute.executor_named(library)
        if library not in execute.LIBRARIES:
            _check_makes_arrays(executor)
    except Exception as error:  # a missing driver raises errors of many types
        others = ", ".join(repr(name) for name in execute.LIBRARIES if name != library)
        raise UnsupportedError(
            f"the library {library!r} is not installed, or does not follow the Array API "
            f"standard ({error}); install it, or pass one of {others}, or the name of another "
            f"library that does, such as 'array_api_strict'"
        ) from error
    return executor


def _check_makes_arrays(executor: Executor) -> None:
    made = executor.from_numpy(np.zeros(1), None)
    found = execute.find_executor(made)
    if found is not executor:
        owner = "no array" if found is None else f"an array of the library {found.library!r}"
        raise TypeError(f"its asarray makes a {type_name(type(made))}, which is {owner}")


def check_gives_values(executor: Executor) -> None:
    """Refuse a library whose arrays NumPy cannot read; those with a module here give values."""
    if executor.library in execute.LIBRARIES:
        return
    try:
        executor.to_numpy(executor.from_numpy(np.zeros(1), None))
    except Exception as error:  # each library raises errors of its own
        raise UnsupportedError(
            f"the library {executor.library!r} does not give values to NumPy, in which all other "
            f"nodes run ({error}); pass another library, such as 'numpy'"
        ) from error


def to_library(owner: str, value: Any, executor: Executor, device: str | None) -> Any:
    """Copy a NumPy array into a library; an array of the library stays as it is."""
    found = execute.executor_of(owner, value)
    if found is executor:
        return value
    check_plain(f"{owner}: its array is", value)
    try:
        return executor.from_numpy(value, device)
    except MemoryError:
        raise
    except Exception as error:
        raise DTypeError(
            f"{owner}: {executor.library} cannot hold {found.dtype(value)} on its "
            f"{'default device' if device is None else f'device {device}'}: {error}"
        ) from error


def to_host(owner: str, value: Any) -> Any:
    """Return an array's values in NumPy: a NumPy array as it is, otherwise a writable array."""
    executor = execute.executor_of(owner, value)
    try:
        host = executor.to_numpy(value)
    except MemoryError:
        raise
    except Exception as error:
        raise DTypeError(f"{owner}: {executor.library} cannot give its values: {error}") from error
    check_plain(f"{owner}: its array is", host)
    return host if host is value or host.flags.writeable else host.copy()


def check_plain(subject: str, array: Any) -> None:
    """Refuse an array of NumPy whose class adds to its values: a tensor has no masks."""
    if isinstance(array, np.ndarray) and type(array) not in PLAIN:
        raise DTypeError(
            f"{subject} {type_name(type(array))}; a tensor must be a plain array; pass "
            f"numpy.asarray(x), which keeps only its values"
        )

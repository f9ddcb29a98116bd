"""The choice of an executor: by the type of the array, remembered for each type.

A library is looked for in ``sys.modules`` only, because its arrays cannot exist before it was
imported. Only `executor_named` imports a library: the one that its caller names.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import array_api_compat
import numpy as np

from tileops._texts import type_name
from tileops.errors import DTypeError
from tileops.execute.array_api import Executor, Standard
from tileops.execute.compiling import is_compiling


def _is_numpy(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def _is_torch(x: Any) -> bool:
    # The class is missing while another thread imports PyTorch, and where the import is blocked.
    cls = getattr(sys.modules.get("torch"), "Tensor", None)
    return cls is not None and isinstance(x, cls)


def _is_jax(x: Any) -> bool:
    return array_api_compat.is_jax_array(x) or ("jax" in sys.modules and _is_like_jax(x))


def _is_like_jax(x: Any) -> bool:
    """Whether an object stands for a JAX array, and is not itself an array of another library."""
    return hasattr(type(x), "__jax_array__") and not hasattr(type(x), "__array_namespace__")


_TESTS: dict[str, Callable[[Any], bool]] = {
    "numpy": _is_numpy,
    "torch": _is_torch,
    "jax": _is_jax,
    "cupy": array_api_compat.is_cupy_array,
    "dask": array_api_compat.is_dask_array,
}
"""How the arrays of each library with a module here are recognised."""

LIBRARIES = tuple(_TESTS)
"""The libraries with a module here."""

executors: dict[type, Executor] = {}
"""The executors of the most common classes: NumPy's array, and PyTorch's once PyTorch is in use.

No other class is added: compiled programs guard this table, and each change of it would make
torch.compile compile them again.
"""

_others: dict[type, Executor] = {}
"""The executors of the other classes that were seen, `_MOST_CLASSES` of them at most."""

_MOST_CLASSES = 1024
"""The most classes that are remembered, because a remembered class is never freed."""


@cache
def executor_named(name: str) -> Executor:
    """Import the library of this name, and return its executor.

    A library without a module here is taken to follow the Array API standard.
    """
    if name in LIBRARIES:
        return import_module(f"tileops.execute.{name}").executor  # type: ignore[no-any-return]
    import_module(name)
    return _standard(name)


_standard = cache(Standard)


def executor_of(name: str, x: Any, which: str = "the input") -> Executor:
    """Return the executor of an array's library; DTypeError if `x` is not an array."""
    executor = find_executor(x)
    if executor is None:
        example = ""
        if type(x) in (list, tuple) and x and find_executor(x[0]) is not None:
            example = "; stack its arrays first"
        elif isinstance(x, (list, tuple, int, float, complex)):
            example = ", for example numpy.asarray(x)"
        elif hasattr(type(x), "__array__") or hasattr(type(x), "__array_interface__"):
            # NumPy would wrap most other objects as an object.
            example = ", for example numpy.asarray(x), which keeps only its values"
        raise DTypeError(
            f"{name}: {which} is {type_name(type(x))}, not an array; pass an array of NumPy, "
            f"PyTorch, JAX, CuPy, Dask or any Array API library{example}"
        )
    return executor


def find_executor(x: Any) -> Executor | None:
    """Return the executor of an array's library, or None if `x` is not an array."""
    executor = executors.get(type(x))
    if executor is not None:
        return executor
    if _is_torch(x):
        # torch.compile traces this import, and would break the graph at `import_module`.
        from tileops.execute import torch, torch_bytes  # noqa: PLC0415

        if type(x) in torch_bytes.PLAIN and not is_compiling():
            executors.update(dict.fromkeys(torch_bytes.PLAIN, torch.executor))
        return torch.executor
    executor = _others.get(type(x))
    if executor is not None:
        return executor
    try:
        # torch.compile cannot trace the tests below, so a value that is no array goes no further.
        if not (hasattr(x, "dtype") or _is_like_jax(x)):
            return None
    except Exception:  # noqa: BLE001 (foreign code may raise anything)
        return None
    name = next((name for name, test in _TESTS.items() if _holds(test, x)), None)
    if name is not None:
        executor = executor_named(name)
    elif callable(getattr(x, "__array_namespace__", None)) and not isinstance(x, type):
        # Nothing is imported, because an array's class may exist here without its package.
        executor = _standard(_package(x.__class__))
    # All proxies, such as those of `weakref`, have the same type, whatever they stand for.
    is_proxy = x.__class__ is not type(x)
    if executor is not None and not is_proxy and len(_others) < _MOST_CLASSES:
        _others[type(x)] = executor
    return executor


def _holds(test: Callable[[Any], bool], x: Any) -> bool:
    try:
        return test(x)
    except Exception:  # noqa: BLE001 (the library is blocked, a stub, or half imported)
        return False


def _package(cls: type) -> str:
    """Name the package that a class comes from."""
    return str(cls.__module__).partition(".")[0]


def is_symbolic(count: Any) -> bool:
    """Whether a count is a symbolic integer of a library in use."""
    name = _package(type(count))
    return name in LIBRARIES and name in sys.modules and executor_named(name).is_symbolic(count)


# NumPy's executor is imported here and not by the first call. If the process forked while another
# thread made that call, the child would wait for an import that nobody finishes.
executors[np.ndarray] = executor_named("numpy")

# If PyTorch is imported already, its classes are added now: programs compiled before a later change
# of the table would have to be compiled again.
if "torch" in sys.modules:
    with suppress(ImportError, AttributeError):  # it may be blocked, broken, or half imported
        from tileops.execute import torch, torch_bytes

        executors.update(dict.fromkeys(torch_bytes.PLAIN, torch.executor))

"""The choice of a library: by the type of an array, remembered.

A library is looked for in ``sys.modules`` only: an array of it cannot exist
before it was imported, so nothing here imports one that its user did not.
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


def _is_numpy(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def _is_torch(x: Any) -> bool:
    # There is no such class while another thread imports the library, or where it is blocked.
    cls = getattr(sys.modules.get("torch"), "Tensor", None)
    return cls is not None and isinstance(x, cls)


def _is_jax(x: Any) -> bool:
    return array_api_compat.is_jax_array(x) or ("jax" in sys.modules and _is_like_jax(x))


def _is_like_jax(x: Any) -> bool:
    """Whether an object stands for an array of JAX, and is none of another library itself."""
    return hasattr(type(x), "__jax_array__") and not hasattr(type(x), "__array_namespace__")


_TESTS: dict[str, Callable[[Any], bool]] = {
    "numpy": _is_numpy,
    "torch": _is_torch,
    "jax": _is_jax,
    "cupy": array_api_compat.is_cupy_array,
    "dask": array_api_compat.is_dask_array,
}
"""How an array of each library with a module of its own is recognised."""

LIBRARIES = tuple(_TESTS)
"""The libraries with a module of their own."""

executors: dict[type, Executor] = {}
"""The executors of the classes that most arrays are of: NumPy's, and PyTorch's once it is in use.

No other is added: torch.compile guards what stands here, and would compile its programs anew.
"""

_others: dict[type, Executor] = {}
"""The executor for each other class that was seen, the first of them if they are very many."""

_MOST_CLASSES = 1024
"""The most classes that are remembered, since none of them is ever freed."""


@cache
def executor_named(name: str) -> Executor:
    """Return the executor of the library of this name, which is imported.

    A library without a module here is taken for one of the Array API standard.
    """
    if name in LIBRARIES:
        return import_module(f"tileops.execute.{name}").executor  # type: ignore[no-any-return]
    import_module(name)
    return _standard(name)


_standard = cache(Standard)


def executor_of(name: str, x: Any, which: str = "the input") -> Executor:
    """Return the executor of an array's library; DTypeError if this is not an array."""
    executor = find_executor(x)
    if executor is None:
        example = ""
        if type(x) in (list, tuple) and x and find_executor(x[0]) is not None:
            example = "; stack its arrays first"
        elif isinstance(x, (list, tuple, int, float, complex)):
            example = ", for example numpy.asarray(x)"
        elif hasattr(type(x), "__array__"):  # of all else NumPy makes an object
            example = ", for example numpy.asarray(x), which has its values alone"
        raise DTypeError(
            f"{name}: {which} is {type_name(type(x))}, not an array; pass an array of NumPy, "
            f"PyTorch, JAX, CuPy, Dask or any Array API library{example}"
        )
    return executor


def find_executor(x: Any) -> Executor | None:
    """Return the executor of an array's library, or None."""
    executor = executors.get(type(x))
    if executor is not None:
        return executor
    if _is_torch(x):
        # torch.compile traces this; it would break the graph at an import by name.
        from tileops.execute import torch  # noqa: PLC0415

        if not torch.is_dynamo_compiling() and type(x) in torch.PLAIN:
            executors.update(dict.fromkeys(torch.PLAIN, torch.executor))
        return torch.executor
    executor = _others.get(type(x))
    if executor is not None:
        return executor
    try:
        # torch.compile cannot trace the tests below: it sees here already that this is no array.
        if not (hasattr(x, "dtype") or _is_like_jax(x)):
            return None
    except Exception:  # noqa: BLE001 (it is anybody's code)
        return None
    name = next((name for name, test in _TESTS.items() if _holds(test, x)), None)
    if name is not None:
        executor = executor_named(name)
    elif hasattr(x, "__array_namespace__") and not isinstance(x, type):
        # Not imported: its class may have come here without its module.
        executor = _standard(_package(x.__class__))
    # All proxies, such as those of `weakref`, are of one class, whatever they stand for.
    is_proxy = x.__class__ is not type(x)
    if executor is not None and not is_proxy and len(_others) < _MOST_CLASSES:
        _others[type(x)] = executor
    return executor


def _holds(test: Callable[[Any], bool], x: Any) -> bool:
    try:
        return test(x)
    except AttributeError:  # the library is blocked, or another thread imports it
        return False


def _package(cls: type) -> str:
    """Name the package that a class is of."""
    return str(cls.__module__).partition(".")[0]


def is_symbolic(count: Any) -> bool:
    """Whether a count is a symbolic integer of a library in use."""
    name = _package(type(count))
    return name in LIBRARIES and name in sys.modules and executor_named(name).is_symbolic(count)


def prepare_to_trace() -> None:
    """Tell torch.compile how to trace the rules, if it traces the caller.

    It looks for that when it first meets one of them, and never again.
    """
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    if compiler is not None and compiler.is_dynamo_compiling():
        from tileops.execute import torch_compile  # noqa: F401, PLC0415 (it loads TorchDynamo)


def traceable(counts: Any) -> Any:
    """Return an array of counts as one that torch.compile can trace, if it traces the caller."""
    # The condition is written twice: a function for it would be one more guard.
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    if compiler is not None and compiler.is_dynamo_compiling():
        from tileops.execute import torch_compile  # noqa: PLC0415 (it loads TorchDynamo)

        return torch_compile.traceable(counts)
    return counts


# Imported here and not by the first call: if the process forked while another thread made that
# call, the child would wait for an import that nobody finishes.
executors[np.ndarray] = executor_named("numpy")


# Known from the start: programs that torch.compile made before would have to be compiled anew.
if "torch" in sys.modules:
    with suppress(ImportError, AttributeError):  # it may be blocked, broken, or half imported
        from tileops.execute import torch

        executors.update(dict.fromkeys(torch.PLAIN, torch.executor))

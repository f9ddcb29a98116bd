"""A Tile or Expand node of a model: its version's rules, on arrays carried into a library."""

from typing import Any

import numpy as np

from tileops import execute
from tileops.errors import DTypeError, UnsupportedError
from tileops.execute.array_api import Executor
from tileops.onnx._operators import apply
from tileops.onnx._schemas import VERSIONS, in_opset


def library(name: str) -> Executor:
    """Give the executor of a library; UnsupportedError if it is neither known nor a standard one.

    Importing it is what the caller asks for by its name.
    """
    executor = execute.library(name)
    if name not in execute.LIBRARIES and not _makes_arrays(executor):
        raise UnsupportedError(
            f"the library is {name!r}; pass one of {', '.join(map(repr, execute.LIBRARIES))}, or "
            f"the name of a library of the Array API standard, such as 'array_api_strict'"
        )
    return executor


def _makes_arrays(executor: Executor) -> bool:
    try:
        return execute.find(executor.from_numpy(np.zeros(1), None)) is executor
    except (AttributeError, TypeError, ValueError):
        return False


def run_node(
    op_type: str,
    opset: int,
    inputs: list[Any],
    executor: Executor,
    device: str | None = None,
    max_bytes: int | None = None,
) -> Any:
    """Run a Tile or Expand on a library's array; counts may stay where they are."""
    operator = in_opset(op_type, opset)
    if operator is None:
        raise UnsupportedError(
            f"{op_type} in opset {opset}: its first version is {min(VERSIONS[op_type])}; import "
            f"a newer opset"
        )
    data, *counts = inputs
    return apply(operator, carry(data, executor, device), *counts, max_bytes=max_bytes)


def carry(value: Any, executor: Executor, device: str | None) -> Any:
    """Copy a NumPy array into a library; an array of the library stays as it is."""
    if execute.find(value) is executor:
        return value
    try:
        return executor.from_numpy(value, device)
    except Exception as error:
        raise DTypeError(
            f"the library cannot hold {value.dtype} on device {device or 'default'}: {error}"
        ) from error


def to_host(value: Any) -> Any:
    """Give an array's values as a NumPy array."""
    executor = execute.find(value)
    return value if executor is None else executor.to_numpy(value)

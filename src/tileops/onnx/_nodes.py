"""Running a node of a model: Tile and Expand on a library, what feeds them on NumPy."""

from math import prod
from typing import Any

import numpy as np

from tileops import execute
from tileops._texts import describe, type_name
from tileops.errors import (
    DTypeError,
    OutputTooLargeError,
    ShapeError,
    TileOpsError,
    UnsupportedError,
)
from tileops.execute.array_api import Executor
from tileops.onnx._models import CONSTANTS, DEFAULT_DOMAIN, constant_of, name_of, read_tensor
from tileops.onnx._operators import apply
from tileops.onnx._schemas import TILE_1, VERSIONS, in_opset

_FEEDING = ("Constant", "Identity", "Shape", "Concat")
"""Nodes that feed counts to Tile and Expand. They run on NumPy, where counts are read."""


def executor_for(library: str) -> Executor:
    """Return the executor of a library, which this imports; UnsupportedError if there is none."""
    if not isinstance(library, str):
        raise UnsupportedError(
            f"the library is {describe(library)}; pass its name, such as 'numpy'"
        )
    try:
        executor = execute.library(library)
        if library not in execute.LIBRARIES:
            _check_makes_arrays(executor)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"the library {library!r} is not installed, or none of the Array API standard "
            f"({error}); pass one of {', '.join(map(repr, execute.LIBRARIES))}, or the name of "
            f"another that is, such as 'array_api_strict'"
        ) from error
    return executor


def _check_makes_arrays(executor: Executor) -> None:
    made = executor.from_numpy(np.zeros(1), None)
    if execute.find(made) is not executor:
        raise TypeError(f"its asarray makes a {type_name(type(made))}, which is not its own")


def check_node(node: Any, opset: int) -> None:
    """Refuse a node that is not run here; its tensors are checked with the graph's."""
    supported = (*VERSIONS, *_FEEDING)
    if node.domain not in DEFAULT_DOMAIN or node.op_type not in supported:
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        raise UnsupportedError(
            f"{name_of(node)}: {operator} in opset {opset} is not run here; this backend runs "
            f"{', '.join(supported)}; tileops.onnx.reference runs whole models"
        )
    if node.op_type in VERSIONS and in_opset(node.op_type, opset) is None:
        raise UnsupportedError(
            f"{name_of(node)}: {node.op_type} in opset {opset}: its first version is "
            f"{min(VERSIONS[node.op_type])}; import a newer opset"
        )
    if "" in node.input or len(node.output) != 1:
        raise UnsupportedError(
            f"{name_of(node)}: an input is missing, or it does not have exactly one output"
        )
    if node.op_type == "Constant" and sum(a.name in CONSTANTS for a in node.attribute) != 1:
        raise UnsupportedError(
            f"{name_of(node)}: it does not have exactly one value; give it one of the attributes "
            f"{', '.join(CONSTANTS)}"
        )


def run_node(
    node: Any,
    opset: int,
    inputs: list[Any],
    executor: Executor,
    device: str | None = None,
    max_bytes: int | None = None,
) -> Any:
    """Run a node that `check_node` passes; an error names it."""
    try:
        match node.op_type:
            case "Constant":
                return read_tensor("value", constant_of(node))
            case "Identity":
                return inputs[0]
            case "Shape":
                return _shape(node, inputs[0])
            case "Concat":
                return _concat(node, inputs, max_bytes)
            case _:
                operator: Any = in_opset(node.op_type, opset)
                # The reference evaluator checks no node before it runs.
                if operator is None or len(inputs) != (3 if operator is TILE_1 else 2):
                    raise UnsupportedError(
                        f"{node.op_type} of {len(inputs)} inputs is no operator of opset {opset}"
                    )
                data, *counts = inputs
                data = to_library(operator.name, data, executor, device)
                return apply(operator, data, *counts, max_bytes=max_bytes)
    except TileOpsError as error:
        raise type(error)(f"{name_of(node)}: {error}") from error


def to_library(owner: str, value: Any, executor: Executor, device: str | None) -> Any:
    """Copy a NumPy array into a library; an array of the library stays as it is."""
    found = execute.executor_of(owner, value)
    if found is executor:
        return value
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
    """Return an array's values as a NumPy array: itself if it is one, else one to write to."""
    executor = execute.executor_of(owner, value)
    try:
        host = executor.to_numpy(value)
    except MemoryError:
        raise
    except Exception as error:
        raise DTypeError(f"{owner}: {executor.library} cannot give its values: {error}") from error
    return host if host is value or host.flags.writeable else host.copy()


def _shape(node: Any, value: Any) -> Any:
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    shape = execute.executor_of("Shape", value).shape("Shape", value)
    return np.array(shape[ends.get("start") : ends.get("end")], np.int64)


def _concat(node: Any, inputs: list[Any], max_bytes: int | None) -> Any:
    pairs = [(execute.executor_of("Concat", value), value) for value in inputs]
    dtypes = sorted({executor.dtype(value) for executor, value in pairs})
    if len(dtypes) > 1:
        raise DTypeError(f"the inputs have dtypes {', '.join(dtypes)}; they must be the same")
    found = [executor.shape("Concat", value) for executor, value in pairs]
    shapes = ", ".join(map(str, found))
    # Texts of several widths become objects or the widest of them.
    itemsize = max(executor.itemsize(value) for executor, value in pairs)
    nbytes = sum(map(prod, found)) * itemsize
    if max_bytes is not None and nbytes > max_bytes:
        raise OutputTooLargeError(
            f"the result of inputs of shapes {shapes} takes {nbytes} bytes, more than "
            f"max_bytes={max_bytes}; use smaller inputs or raise max_bytes"
        )
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    rank = len(found[0])
    if not -rank <= axis < rank:
        raise ShapeError(f"the inputs have shapes {shapes}; there is no axis {axis} to join")
    try:
        return np.concatenate([to_host("Concat", value) for value in inputs], axis)
    except ValueError as error:
        raise ShapeError(f"the inputs have shapes {shapes}, on axis {axis}: {error}") from error

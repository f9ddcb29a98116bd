"""Running a node of a model: Tile and Expand on a library, the nodes that feed them on NumPy."""

from math import prod
from typing import Any

import numpy as np

from tileops import execute
from tileops.errors import (
    DTypeError,
    OutputTooLargeError,
    ShapeError,
    TileOpsError,
    UnsupportedError,
)
from tileops.execute.array_api import Executor
from tileops.onnx._carrying import to_host, to_library
from tileops.onnx._models import CONSTANTS, DEFAULT_DOMAIN, constant_of, name_of, read_tensor
from tileops.onnx._operators import apply
from tileops.onnx._schemas import TILE_1, VERSIONS, in_opset

_FEEDING = ("Constant", "Identity", "Shape", "Concat")
"""Nodes that feed counts to Tile and Expand. They run on NumPy, where counts are read; an Identity
leaves its input in its library."""


def check_node(node: Any, opset: int) -> None:
    """Refuse a node that cannot run here; its tensors are checked along with the graph's."""
    supported = (*VERSIONS, *_FEEDING)
    if node.domain not in DEFAULT_DOMAIN or node.op_type not in supported:
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        raise UnsupportedError(
            f"{name_of(node)}: this backend does not run {operator} of opset {opset}; it runs "
            f"{', '.join(supported)}; for other nodes, run the model by onnx's ReferenceEvaluator "
            f"with tileops.onnx.reference.ops()"
        )
    if node.op_type in VERSIONS and in_opset(node.op_type, opset) is None:
        raise UnsupportedError(
            f"{name_of(node)}: opset {opset} has no {node.op_type}, whose first version is "
            f"{min(VERSIONS[node.op_type])}; import a newer opset"
        )
    if "" in node.input:  # ONNX's checker lets that pass for a Concat
        raise UnsupportedError(f"{name_of(node)}: an input is missing; name a value for it")
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
    """Run a node that `check_node` or ONNX's reference evaluator accepts; errors name the node."""
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
                # The reference evaluator does not check nodes before it runs them.
                if operator is None or len(inputs) != (3 if operator is TILE_1 else 2):
                    raise UnsupportedError(
                        f"opset {opset} has no {node.op_type} of {len(inputs)} inputs; import an "
                        f"opset that has it, or change its inputs"
                    )
                data, *counts = inputs
                data = to_library(operator.name, data, executor, device)
                return apply(operator, data, *counts, max_bytes=max_bytes)
    except TileOpsError as error:
        raise type(error)(f"{name_of(node)}: {error}") from error


def _shape(node: Any, value: Any) -> Any:
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    shape = execute.executor_of("Shape", value).shape("Shape", value)
    return np.array(shape[ends.get("start") : ends.get("end")], np.int64)


def _concat(node: Any, inputs: list[Any], max_bytes: int | None) -> Any:
    pairs = [(execute.executor_of("Concat", value), value) for value in inputs]
    dtypes = sorted({executor.dtype(value) for executor, value in pairs})
    if len(dtypes) > 1:
        raise DTypeError(
            f"the inputs have dtypes {', '.join(dtypes)}; they must be the same; convert them"
        )
    found = [executor.shape("Concat", value) for executor, value in pairs]
    shapes = ", ".join(map(str, found))
    # Strings of several widths become objects, or strings of the greatest width.
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
        remedy = f"choose one from {-rank} to {rank - 1}" if rank else "reshape them to (1,)"
        raise ShapeError(
            f"the inputs have shapes {shapes}; there is no axis {axis} to join; {remedy}"
        )
    try:
        return np.concatenate([to_host("Concat", value) for value in inputs], axis)
    except ValueError as error:
        raise ShapeError(
            f"the inputs have shapes {shapes}, which cannot be joined along axis {axis} ({error}); "
            f"they must be equal in all other axes; reshape or expand them"
        ) from error

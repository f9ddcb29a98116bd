"""The parts of an ONNX model: its graphs, its declarations of values, and its tensors."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tileops.errors import UnsupportedError

DEFAULT_DOMAIN = ("", "ai.onnx")
"""The two names of ONNX's own domain."""

FIRST_IR = 3
"""The first version of the file format whose models import opsets."""

_DEEPEST = 33
"""The most graphs that may enclose a graph. A file nests messages at most 100 deep, and each graph
takes three of these levels."""

TYPES = frozenset(helper.get_all_tensor_dtypes())
"""The numbers of ONNX's element types."""

CONSTANTS = {
    "value": None,
    "value_int": onnx.TensorProto.INT64,
    "value_ints": onnx.TensorProto.INT64,
    "value_float": onnx.TensorProto.FLOAT,
    "value_floats": onnx.TensorProto.FLOAT,
    "value_string": onnx.TensorProto.STRING,
    "value_strings": onnx.TensorProto.STRING,
}
"""The type of a Constant by the attribute that holds its value; the tensor `value` has its own."""


def own_opsets(owner: Any) -> list[int]:
    """List the versions of ONNX's own operators that a model, or a function in one, imports."""
    return [o.version for o in owner.opset_import if o.domain in DEFAULT_DOMAIN]


def graphs_in(graph: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the graphs inside a graph's nodes, and then the graph itself.

    In this order every graph can be edited, because changing an outer graph's nodes copies the
    inner graphs.
    """
    if depth > _DEEPEST:
        raise UnsupportedError(
            f"the model has graphs inside {depth} others, which no file can store; nest fewer"
        )
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from graphs_in(inner, depth + 1)
    yield graph


def inner_graphs(node: Any) -> list[Any]:
    """List the graphs that a node holds directly."""
    found: list[Any] = []
    for attribute in node.attribute:
        found += [attribute.g] * attribute.HasField("g")
        found += attribute.graphs
    return found


def declared_in(graph: Any) -> list[Any]:
    """List a graph's declarations of values."""
    return [*graph.input, *graph.output, *graph.value_info]


def names_in(model: Any) -> set[str]:
    """Collect every name that a value of a model has."""
    names = set()
    for graph in graphs_in(model.graph):
        names |= {value.name for value in (*declared_in(graph), *graph.initializer)}
        names |= {name for node in graph.node for name in (*node.input, *node.output)}
    return names


def unique_name(prefix: str, taken: set[str]) -> str:
    """Return a name that nothing in the model has, and add it to `taken`."""
    number = 0
    while (name := f"{prefix}_{number}") in taken:
        number += 1
    taken.add(name)
    return name


def refill(field: Any, messages: Iterable[Any]) -> None:
    """Replace the messages of a repeated field, whose slices protobuf does not let one assign."""
    del field[:]
    field.extend(messages)


def dtype_of(declared: Any) -> str | None:
    """Name the dtype of a declared tensor as executors do; None where no type is declared."""
    if declared.elem_type not in TYPES:
        return None
    if declared.elem_type == onnx.TensorProto.STRING:
        return "string"
    return str(helper.tensor_dtype_to_np_dtype(declared.elem_type).name)


def dims_of(declared: Any) -> Any:
    """Return a declared shape as numbers, symbols, and "?" for sizes that are unknown or negative.

    Return None where not even the rank is known.
    """
    if not declared.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or "?"
        for dim in declared.shape.dim
    )


def name_of(node: Any) -> str:
    """Name a node in an error by its name or its results, and by its operator."""
    return f"node {node.name or ', '.join(filter(None, node.output))!r} ({node.op_type})"


def constant_of(node: Any) -> Any:
    """Return the value of a Constant as a tensor, whichever attribute holds it."""
    (attribute,) = (a for a in node.attribute if a.name in CONSTANTS)
    kind = CONSTANTS[attribute.name]
    if kind is None:
        return attribute.t
    value = helper.get_attribute_value(attribute)
    dims, values = ([len(value)], value) if isinstance(value, list) else ([], [value])
    tensor = onnx.TensorProto(data_type=kind, dims=dims)
    getattr(tensor, helper.tensor_dtype_to_field(kind)).extend(values)
    return tensor


def read_tensor(owner: str, tensor: Any) -> Any:
    """Read a tensor of a model into a NumPy array; UnsupportedError if it is malformed."""
    try:
        if tensor.data_type == onnx.TensorProto.STRING:
            # In an array of fixed width, a single long string would make every element large.
            words = np.empty(len(tensor.string_data), object)
            words[:] = [word.decode() for word in tensor.string_data]
            return words.reshape(tuple(tensor.dims))
        return numpy_helper.to_array(tensor)
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"{owner}: its data cannot be read: {type(error).__name__}: {error}"
        ) from error

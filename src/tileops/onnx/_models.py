"""What is asked of an ONNX model before anything in it is read."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import EncodeError
from onnx import helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from tileops._texts import show, type_name
from tileops.errors import DTypeError, UnsupportedError

DEFAULT_DOMAIN = ("", "ai.onnx")
"""The two names of ONNX's own domain."""

FIRST_IR = 3
"""The first version of the format whose models import opsets."""

INLINE = "onnx.inliner.inline_local_functions(model, True), after import onnx.inliner"
"""How functions become nodes of the graph, also those of another opset."""

_DEEPEST = 100
"""The most graphs that a graph is inside of: a file holds fewer, each in three messages of 100."""

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
"""The type of a Constant by the attribute that holds it; `value` is a tensor of its own type."""


def opset_of(model: Any) -> int:
    """Give the version of ONNX's own operators that a model imports."""
    if not isinstance(model, onnx.ModelProto):
        raise DTypeError(
            f"the model is {type_name(type(model))}; pass an onnx.ModelProto, as onnx.load gives"
        )
    if model.ir_version < FIRST_IR:
        raise UnsupportedError(
            f"the model has ir_version {model.ir_version}, from before models imported opsets; "
            f"set it to {FIRST_IR} and import opset 1"
        )
    versions = own_opsets(model)
    if len(versions) != 1:
        raise UnsupportedError(
            f"the model imports {len(versions)} opsets of ONNX's own domain; it must be one"
        )
    check_opset("the model's opset", versions[0])
    return versions[0]


def own_opsets(owner: Any) -> list[int]:
    """List the versions of ONNX's own operators that a model, or a function in one, imports."""
    return [o.version for o in owner.opset_import if o.domain in DEFAULT_DOMAIN]


def check_opset(owner: str, version: int) -> None:
    """Refuse a version of ONNX's own operators that the package onnx does not know."""
    latest = onnx.defs.onnx_opset_version()
    if not 1 <= version <= latest:
        raise UnsupportedError(
            f"{owner} is {show(version)}; the onnx installed here knows 1 to {latest}; use one of "
            f"these, or a newer onnx"
        )


def check_model(model: Any) -> None:
    """Refuse a model that ONNX's checker refuses, or is too large or too deep for."""
    try:
        onnx.checker.check_model(model)
    except (EncodeError, ValueError) as error:
        raise UnsupportedError(
            "the model is too large for onnx.checker, which writes it out, in 2 GiB at most, or "
            "its graphs are nested too deep; make its largest initializers inputs, or unnest them"
        ) from error


def graphs_in(graph: Any, depth: int = 0) -> Iterator[Any]:
    """Go through the graphs inside a graph's nodes, and then the graph.

    In this order all can be edited: a change of an outer graph's nodes copies the inner ones.
    """
    if depth > _DEEPEST:
        raise UnsupportedError(
            f"the model has graphs inside of {depth} others, which no file holds; unnest them"
        )
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from graphs_in(inner, depth + 1)
    yield graph


def inner_graphs(node: Any) -> list[Any]:
    """List the graphs that a node holds itself."""
    found: list[Any] = []
    for attribute in node.attribute:
        found += [attribute.g] * attribute.HasField("g")
        found += attribute.graphs
    return found


def dtype_of(declared: Any) -> str | None:
    """Name the dtype of a declared tensor, as executors do; None where it is not declared."""
    if declared.elem_type not in TYPES:
        return None
    if declared.elem_type == onnx.TensorProto.STRING:
        return "string"
    return str(helper.tensor_dtype_to_np_dtype(declared.elem_type).name)


def dims_of(declared: Any) -> Any:
    """Give a declared shape as a tuple: numbers, symbols, and "?" for what is unknown, as is -1.

    None where not even the number of axes is known.
    """
    if not declared.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or "?"
        for dim in declared.shape.dim
    )


def name_of(node: Any) -> str:
    """Name a node in an error: by its name or its results, and its operator."""
    return f"node {node.name or ', '.join(node.output)!r} ({node.op_type})"


def check_graph(graph: Any) -> None:
    """Refuse data outside of the model, sparse tensors, and names and types that are none."""
    for inner in graphs_in(graph):
        values = (*inner.input, *inner.output, *inner.value_info, *inner.initializer)
        names = [value.name for value in values]
        for node in inner.node:
            names += (*node.input, *node.output, node.name, node.op_type, node.domain)
            names += [attribute.name for attribute in node.attribute]
        for name in names:
            if not isinstance(name, str):
                raise UnsupportedError(f"the name {name!r} in the model is no text")
        for value in (*inner.input, *inner.output, *inner.value_info):
            kind = value.type.tensor_type.elem_type
            if kind and kind not in TYPES:
                raise UnsupportedError(f"{value.name!r} is declared of type {kind}, which is none")
        if inner.sparse_initializer:
            name = inner.sparse_initializer[0].values.name
            raise UnsupportedError(f"initializer {name!r} is sparse; make it dense")
        for tensor in inner.initializer:
            _check_inside(f"initializer {tensor.name!r}", tensor)
        for node in inner.node:
            check_attributes(node)


def check_attributes(node: Any) -> None:
    """Refuse a node's tensors if their data lie outside of the model or are sparse."""
    for attribute in node.attribute:
        if attribute.HasField("sparse_tensor"):
            raise UnsupportedError(f"{name_of(node)}: its value is sparse; make it dense")
        for tensor in (attribute.t, *attribute.tensors):
            _check_inside(name_of(node), tensor)
        if attribute.ref_attr_name:
            raise UnsupportedError(
                f"{name_of(node)}: its attribute {attribute.name!r} refers to one of a function, "
                f"and it is in none"
            )


def constant_of(node: Any) -> Any:
    """Give the value of a Constant as a tensor, whichever attribute holds it."""
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
            # Not through a fixed width, which a single long string would make large.
            words = np.empty(len(tensor.string_data), object)
            words[:] = [word.decode() for word in tensor.string_data]
            return words.reshape(tuple(tensor.dims))
        return numpy_helper.to_array(tensor)
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"{owner}: its data cannot be read: {type(error).__name__}: {error}"
        ) from error


def _check_inside(owner: str, tensor: Any) -> None:
    if uses_external_data(tensor):
        raise UnsupportedError(
            f"{owner}: its data lie outside of the model, and are not followed; load them with "
            f"onnx.load_external_data_for_model first, if you trust the model"
        )

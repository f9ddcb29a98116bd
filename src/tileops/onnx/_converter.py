"""ONNX's version converter, with errors that name a node, and with corrected results."""

from bisect import bisect_left
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import onnx
from onnx import helper, version_converter

from tileops.errors import UnsupportedError
from tileops.onnx._models import (
    FIRST_IR,
    declared_in,
    graphs_in,
    inner_graphs,
    name_of,
    names_in,
    refill,
    unique_name,
)

_REFUSALS = (
    RuntimeError,
    version_converter.ConvertError,
    onnx.shape_inference.InferenceError,
)
"""The errors that the converter raises."""

_MARK = "~"
"""The end of the model's own names while they are converted. The converter adds no name that ends
like this, although some that it adds begin with a name of the model."""


def convert(model: onnx.ModelProto, version: int, original: onnx.ModelProto) -> onnx.ModelProto:
    """Convert a model to another opset, and declare types as the original does."""
    marked = deepcopy(model)
    for graph in graphs_in(marked.graph):
        _rename(graph, lambda name: name and name + _MARK)
    try:
        converted = version_converter.convert_version(marked, version)
    except _REFUSALS as error:
        raise _not_converted(model, version, error) from error
    _restore_names(converted.graph, {}, names_in(model))
    for graph, first in zip(graphs_in(converted.graph), graphs_in(original.graph), strict=True):
        _redeclare(graph, first)
        if model.ir_version <= FIRST_IR:
            _name_constants(graph)
    return converted


def _not_converted(model: Any, version: int, error: Exception) -> UnsupportedError:
    """Describe what the converter refuses, because its own text seldom names the node."""
    nodes = model.graph.node
    # The model's first nodes alone are refused as soon as the node in question is among them.
    refused = bisect_left(
        range(len(nodes)), True, key=lambda n: _refusal(model, n, version) is not None
    )
    # The text up to "` failed: " is a line of the converter's own code.
    text = str(_refusal(model, refused, version) or error).rpartition("` failed: ")[2]
    if refused:
        node = nodes[refused - 1]
        what, inputs = "it", "its inputs"
        if inner_graphs(node):
            what = "it, or a node inside it,"
            inputs = "that node's inputs (where one comes from outside, of a copy by Identity)"
        return UnsupportedError(
            f"{name_of(node)}: onnx.version_converter cannot convert {what} to opset {version}: "
            f"{text}; declare the shapes of {inputs} as numbers or, if there is no adapter, "
            f"replace it before the upgrade"
        )
    return UnsupportedError(
        f"onnx.version_converter cannot convert the inputs of the model to opset {version}: "
        f"{text}; correct the types and shapes that the model declares"
    )


def _refusal(model: Any, number: int, version: int) -> Exception | None:
    """Return the converter's error for a model's first nodes, or None if it converts them."""
    first = deepcopy(model)
    graph = first.graph
    del graph.node[number:]
    made = set(_made(graph))
    refill(graph.output, [value for value in graph.output if value.name in made])
    try:
        version_converter.convert_version(first, version)
    except _REFUSALS as error:
        return error
    return None


def _made(graph: Any) -> list[str]:
    """List the names of the values that a graph's nodes and initializers make."""
    made = [name for node in graph.node for name in node.output]
    return made + [tensor.name for tensor in graph.initializer]


def _rename(graph: Any, new_name: Callable[[str], str]) -> None:
    """Rename the values that a graph names, but not those in the graphs inside it."""
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = map(new_name, values)
    for value in (*graph.initializer, *declared_in(graph)):
        value.name = new_name(value.name)


def _restore_names(graph: Any, added: dict[str, str], taken: set[str]) -> None:
    """Take the marks away, and give unique names to the values that the converter added.

    A graph sees the values `added` to the graphs around it, but a value that is added to a branch
    may have the name of one of these.
    """
    unmarked = [name for name in _made(graph) if name and not name.endswith(_MARK)]
    added = added | {n: unique_name(n.replace(_MARK, ""), taken) for n in unmarked}
    for node in graph.node:
        for inner in inner_graphs(node):
            _restore_names(inner, added, taken)
    _rename(graph, lambda name: added.get(name) or name.removesuffix(_MARK))


def _redeclare(graph: Any, original: Any) -> None:
    """Declare the types of the original, and no others.

    The converter turns an unknown shape into that of a scalar, and leaves the types of values that
    it adds undefined.
    """
    refill(graph.input, original.input)
    refill(graph.output, original.output)
    # A value that the original declares but lacks may have the name of a new one.
    names = {value.name for value in graph.value_info}.intersection(_made(original))
    refill(graph.value_info, [value for value in original.value_info if value.name in names])


def _name_constants(graph: Any) -> None:
    """Turn initializers that adapters added into nodes; old models have them for inputs only."""
    inputs = {value.name for value in graph.input}
    added = [tensor for tensor in graph.initializer if tensor.name not in inputs]
    kept = [tensor for tensor in graph.initializer if tensor.name in inputs]
    nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in added]
    refill(graph.node, [*nodes, *graph.node])
    refill(graph.initializer, kept)

"""Upgrade of a model's Tile-1 nodes to Tile-13, which ONNX's version converter does not do."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter
from onnx.external_data_helper import uses_external_data

from tileops._counts import read_whole
from tileops.errors import TileOpsError, UnsupportedError
from tileops.onnx._schemas import TILE_1, TILE_1_AXIS, TILE_1_COUNTS, in_opset

__all__ = ["upgrade"]

_DEFAULT_DOMAIN = ("", "ai.onnx")

_STAND_IN = "tileops.upgrade"
"""The domain that Tile-1 nodes are in while others are converted."""

_FIRST_IR = 3
"""The first version of the format that the version converter reads."""


def upgrade(model: Any) -> Any:
    """Rewrite each Tile-1 of a model as Tile-13, and raise its opset to 13.

    All other nodes are converted by ``onnx.version_converter``, which has no adapter
    for Tile-1 and fails on a model with one.

    Where `tiles` and `axis` are constants and the rank is known, the new node's repeats
    are a constant. Else a few nodes compute them when the model runs; a `tiles` that is
    not whole, and an `axis` that is not whole or out of range, still fail then.

    Parameters
    ----------
    model : onnx.ModelProto
        The model; it is not changed. One of opset 6 or later has no Tile-1 and is
        returned as a copy.

    Returns
    -------
    onnx.ModelProto
        A model with the same inputs, outputs and meaning.

    Raises
    ------
    RepeatsError
        If a constant `tiles` is negative or not whole.
    ShapeError
        If a constant `axis` is not whole, or out of range.
    UnsupportedError
        If the version converter cannot convert another node; the text is its own. If a
        function of the model has a Tile-1, or a constant's data lie outside of it.

    See Also
    --------
    tileops.onnx.tile_1 : What a Tile-1 node means.

    Examples
    --------
    >>> import onnx
    >>> import tileops
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 3, opset_import: ["": 1]>
    ...     twice (float[2, 3] x) => (float[2, 6] y) {
    ...         tiles = Constant <value = float {2.0}> ()
    ...         axis = Constant <value = float {1.0}> ()
    ...         y = Tile (x, tiles, axis)
    ...     }
    ... ''')
    >>> upgraded = tileops.onnx.upgrade.upgrade(model)
    >>> [(node.op_type, len(node.input)) for node in upgraded.graph.node]
    [('Constant', 0), ('Tile', 2)]
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    version = next((o.version for o in model.opset_import if o.domain in _DEFAULT_DOMAIN), 0)
    tiles = [n for graph in _graphs(result.graph) for n in graph.node if _is_tile(n)]
    if in_opset("Tile", version) is not TILE_1 or not tiles:
        return result
    _check_convertible(model)
    onnx.checker.check_model(model)
    for node in tiles:
        node.domain = _STAND_IN
    result.opset_import.append(helper.make_opsetid(_STAND_IN, 1))
    # Opset 6 has a Tile with constant repeats, through which ONNX infers the shapes that
    # other nodes' adapters ask for, and opset 13 has the nodes that compute repeats.
    result = _convert(result, 6, model)
    while _rewrite_constant(result) or _annotate(result):
        pass
    result = _convert(result, 13, model)
    _rewrite_computed(result)
    imports = [o for o in result.opset_import if o.domain != _STAND_IN]
    del result.opset_import[:]
    result.opset_import.extend(imports)
    onnx.checker.check_model(result, full_check=True)
    return result


def _is_tile(node: Any) -> bool:
    return node.op_type == "Tile" and node.domain in _DEFAULT_DOMAIN


def _graphs(graph: Any) -> Iterator[Any]:
    """Go through a graph and the graphs inside of its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.output:
                    yield from _graphs(inner)


def _stand_ins(model: Any) -> list[tuple[Any, Any]]:
    """List the stand-ins for Tile-1, each with its graph."""
    graphs = _graphs(model.graph)
    return [(graph, node) for graph in graphs for node in graph.node if node.domain == _STAND_IN]


def _check_convertible(model: Any) -> None:
    if model.functions:
        raise UnsupportedError(
            "the model has functions, which onnx.version_converter drops; inline them with "
            "onnx.inliner.inline_local_functions first"
        )
    if model.ir_version < _FIRST_IR:
        raise UnsupportedError(
            f"the model has ir_version {model.ir_version}; onnx.version_converter reads "
            f"{_FIRST_IR} and later"
        )
    tensors = [tensor for graph in _graphs(model.graph) for tensor in graph.initializer]
    for tensor in filter(uses_external_data, tensors):
        raise UnsupportedError(
            f"initializer {tensor.name!r} has its data outside of the model; load them with "
            f"onnx.load_external_data_for_model first"
        )


def _convert(model: Any, version: int, original: Any) -> Any:
    """Convert all nodes but the stand-ins; declared types stay as they were declared."""
    try:
        converted = version_converter.convert_version(model, version)
    except (RuntimeError, version_converter.ConvertError) as error:
        raise UnsupportedError(
            f"onnx.version_converter cannot convert another node of the model to opset {version}: "
            f"{error}"
        ) from error
    declared = {(g.name, v.name): v for g in _graphs(original.graph) for v in _values(g)}
    for graph in _graphs(converted.graph):
        # The converter makes a scalar of an unknown shape, and leaves types of its own undefined.
        for value in (*graph.input, *graph.output):
            value.CopyFrom(declared.get((graph.name, value.name), value))
        kept = [
            declared[graph.name, v.name]
            for v in graph.value_info
            if (graph.name, v.name) in declared
        ]
        del graph.value_info[:]
        graph.value_info.extend(kept)
    return converted


def _values(graph: Any) -> list[Any]:
    return [*graph.input, *graph.output, *graph.value_info]


def _types(model: Any) -> dict[str, Any]:
    """Infer the tensor types of all values, as far as ONNX can."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    values = [value for graph in _graphs(inferred.graph) for value in _values(graph)]
    return {value.name: value.type.tensor_type for value in values}


def _constants(model: Any) -> dict[str, Any]:
    """Give the tensors that stand in the model, without those that a caller may override."""
    tensors = {tensor.name: tensor for g in _graphs(model.graph) for tensor in g.initializer}
    if model.ir_version > _FIRST_IR:  # before, all initializers had to be inputs, too
        for value in model.graph.input:
            tensors.pop(value.name, None)
    for graph in _graphs(model.graph):
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in _DEFAULT_DOMAIN:
                tensors[node.output[0]] = node.attribute[0].t
    return tensors


def _rewrite_constant(model: Any) -> bool:
    """Rewrite the stand-ins whose counts are constant and whose input's rank is known."""
    types, constants = _types(model), _constants(model)
    rewritten = False
    for graph, node in _stand_ins(model):
        data, tiles, axis = node.input
        given = types.get(data)
        if given is None or not given.HasField("shape") or not {tiles, axis} <= set(constants):
            continue
        shape = (1,) * len(given.shape.dim)
        try:
            counts = (
                read_whole(TILE_1.argument, numpy_helper.to_array(constants[tiles]), TILE_1_COUNTS),
                read_whole(TILE_1_AXIS, numpy_helper.to_array(constants[axis]), TILE_1_COUNTS),
            )
            _, repeats = TILE_1.align(TILE_1.argument, shape, counts)
        except TileOpsError as error:
            raise type(error)(f"node {node.name or node.output[0]!r}: {error}") from error
        nodes = _Nodes(model, node.output[0])
        _replace(graph, node, nodes, nodes.constant(np.array(repeats, np.int64)))
        rewritten = True
    return rewritten


def _annotate(model: Any) -> bool:
    """Declare the rank of a stand-in's result, which is that of its input."""
    types = _types(model)
    for graph, node in _stand_ins(model):
        given, output = types.get(node.input[0]), node.output[0]
        known = output in types and types[output].HasField("shape")
        if known or given is None or not given.HasField("shape"):
            continue
        sizes = [None] * len(given.shape.dim)
        value = helper.make_tensor_value_info(output, given.elem_type, sizes)
        graph.value_info.append(value)
        return True
    return False


def _rewrite_computed(model: Any) -> None:
    """Rewrite the other stand-ins: repeats of ones, with tiles put at axis when the model runs."""
    for graph, node in _stand_ins(model):
        data, tiles, axis = node.input
        nodes = _Nodes(model, node.output[0])
        # A Tile refuses a negative count, and ScatterElements an index out of range.
        count = nodes.whole(tiles, otherwise=-1)
        index = nodes.whole(axis, otherwise=-(2**62))
        rank = nodes.add("Shape", nodes.add("Shape", data))
        one = numpy_helper.from_array(np.ones(1, np.int64))
        ones = nodes.add("ConstantOfShape", rank, value=one)
        _replace(graph, node, nodes, nodes.add("ScatterElements", ones, index, count, axis=0))


def _replace(graph: Any, node: Any, nodes: "_Nodes", repeats: str) -> None:
    """Put a Tile in the place of a stand-in, after the nodes that make its repeats."""
    position = next(i for i, other in enumerate(graph.node) if other is node)
    counts = set(node.input[1:])
    tile = helper.make_node("Tile", [node.input[0], repeats], node.output, node.name)
    tile.doc_string = node.doc_string
    rest = list(graph.node)
    rest[position : position + 1] = [*nodes.made, tile]
    inner = [g for g in _graphs(graph) if g is not graph]
    used = {name for n in (*rest, *(n for g in inner for n in g.node)) for name in n.input}
    used |= {value.name for g in (graph, *inner) for value in g.output}
    rest = [n for n in rest if n.op_type != "Constant" or n.output[0] not in counts - used]
    copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in rest]
    del graph.node[:]
    graph.node.extend(copies)


class _Nodes:
    """New nodes, whose results have names that nothing in the model has."""

    def __init__(self, model: Any, prefix: str) -> None:
        nodes = [node for graph in _graphs(model.graph) for node in graph.node]
        self._taken = {name for node in nodes for name in (*node.input, *node.output)}
        self._prefix = prefix
        self.made: list[Any] = []

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and give the name of its result."""
        number = len(self.made)
        while (name := f"{self._prefix}_{op_type}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        self.made.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant."""
        return self.add("Constant", value=numpy_helper.from_array(value))

    def whole(self, number: str, otherwise: int) -> str:
        """Make int64 of shape (1,) of one number; `otherwise` of one that is not whole."""
        integer = self.add("Cast", number, to=onnx.TensorProto.INT64)
        exact, back = (self.add("Cast", n, to=onnx.TensorProto.DOUBLE) for n in (number, integer))
        is_whole = self.add("Equal", exact, back)
        refused = self.constant(np.array(otherwise, np.int64))
        chosen = self.add("Where", is_whole, integer, refused)
        return self.add("Reshape", chosen, self.constant(np.array([1], np.int64)))

"""Upgrade of a model's Tile-1 nodes to Tile-13, which ONNX's version converter cannot do."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tileops._rules import check_size, known
from tileops.errors import TileOpsError, UnsupportedError
from tileops.onnx._checks import INLINE, check_graph, check_model, opset_of
from tileops.onnx._converter import convert
from tileops.onnx._meanings import change_of, write_defaults
from tileops.onnx._models import (
    DEFAULT_DOMAIN,
    FIRST_IR,
    constant_of,
    declared_in,
    dims_of,
    dtype_of,
    graphs_in,
    inner_graphs,
    name_of,
    names_in,
    own_opsets,
    read_tensor,
    refill,
    unique_name,
)
from tileops.onnx._schemas import TILE_1, check_tiles, in_opset
from tileops.onnx._tile_1 import (
    ARGUMENTS,
    check_count_dtype,
    count_dtypes,
    read_whole,
)

__all__ = ["upgrade"]

_STAND_IN = "tileops.upgrade"
"""The domain in which Tile-1 nodes are hidden while the converter handles the other nodes."""

_MOST_PASSES = 32
"""The most passes that make constant repeats. Each pass infers the shapes of the whole model, so
the time would grow with the square of the model's length if each Tile-1 could need a pass of its
own. The repeats of any Tile-1 that is left are computed when the model runs."""


def upgrade(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rewrite each Tile-1 of a model as Tile-13, and raise its opset to 13.

    All other nodes are converted by ``onnx.version_converter``, which has no adapter
    for Tile-1 and fails on a model that contains one.

    Where `tiles` and `axis` are constants and the rank is known, the new node's repeats
    are a constant. Otherwise a few standard nodes compute the repeats when the model
    runs; the run then still fails if `tiles` is not whole, or if `axis` is not whole or
    out of range. An initializer that is also an input is not a constant, because a
    caller may override it. (Ranks and sizes may still follow from it if ir_version is 3,
    in which every initializer has to be an input.) A rank that follows from the sizes of
    more than 31 results of Tile-1, one after the other, counts as unknown.

    Parameters
    ----------
    model : onnx.ModelProto
        The model, which is not changed. A model without a Tile-1 is returned as a copy,
        with the same opset.

    Returns
    -------
    onnx.ModelProto
        A model with the same inputs, outputs, ir_version and meaning.

    Raises
    ------
    RepeatsError
        If a constant `tiles` is negative, not whole or not one element, or exceeds 2**63-1. If
        any `tiles` is of a type that `tile_1` refuses, the error is also a TypeError.
    ShapeError
        If a constant `axis` is not whole, not one element or, where the rank is known, out of
        range. If any `axis` is of a type that `tile_1` refuses, the error is also a TypeError.
    DTypeError
        If the input of a Tile-1 is not a float tensor, or `model` is not a model.
    OutputTooLargeError
        If a constant `tiles` makes the result larger than 2**63-1 elements or bytes, as far
        as the sizes of the input are known.
    UnsupportedError
        If `model` has an ir_version below 3, no opset or several, or an opset that is newer
        than the installed onnx. If a function has a Tile-1, or the model has both a Tile-1 and
        functions. If a model with a Tile-1 has data that are sparse or lie outside of it, has
        more than 2 GiB, or declares types or shapes that its values do not have. If the version
        converter cannot convert another node, such as Pad-1; the message names the node and
        quotes the converter. If the converter is known to change the meaning of another node:
        an arithmetic node whose ``axis`` of old broadcasting is neither 0 nor aligned on the
        right, a Hardmax that flattens, a PRelu by channels or with more axes in its slope than
        in its input, a Clip, or a Pad by a constant, whose input is not known to be float32, a
        ConvTranspose with an ``output_shape``, an Upsample that interpolates, a Dropout that
        trains, a BatchNormalization whose outputs do not tell whether it trains, or a node of
        another domain with graphs inside.
    onnx.checker.ValidationError
        If a model with a Tile-1 is malformed.

    See Also
    --------
    tileops.onnx.tile_1 : What a Tile-1 node means.

    Notes
    -----
    The converter drops training information, quantization annotations, device
    configurations, the metadata of graphs and nodes, and the doc strings and metadata of
    attributes and of most initializers.

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
    version = opset_of(model)
    result = deepcopy(model)
    _check_functions(model)
    tiles = [n for graph in graphs_in(result.graph) for n in graph.node if _is_tile(n)]
    if in_opset("Tile", version) is not TILE_1 or not tiles:
        return result
    _check_convertible(model)
    check_model(model)
    write_defaults(result)
    counts = {name for node in tiles for name in node.input[1:]}
    for node in tiles:
        node.domain = _STAND_IN
    result.opset_import.append(helper.make_opsetid(_STAND_IN, 1))
    # Defaults are put aside: ONNX would take them for constants where it infers shapes or converts.
    for graph in graphs_in(result.graph):
        refill(graph.initializer, _initializers(model, graph, are_defaults=False))
    # The conversion takes two steps. Opset 6 has a Tile with constant repeats, through which ONNX
    # infers the shapes that other nodes' adapters ask for; opset 13 has the nodes that compute
    # repeats.
    result = convert(result, 6, model)
    # This repeats because the result of one Tile may determine the rank of another Tile's input.
    for _ in range(_MOST_PASSES):
        if not _rewrite(result, _constant_repeats):
            break
    for graph, types, _ in _scopes(result):
        _check_meanings(graph, types)
        _annotate(graph, types)
    result = convert(result, 13, model)
    for graph, first in zip(graphs_in(result.graph), graphs_in(model.graph), strict=True):
        graph.initializer.extend(_initializers(model, first, are_defaults=True))
    _rewrite(result, _computed_repeats)
    _drop_unused(result, counts)
    refill(result.opset_import, [o for o in result.opset_import if o.domain != _STAND_IN])
    try:
        onnx.checker.check_model(result, full_check=True)
    except (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        ValueError,
    ) as error:
        raise UnsupportedError(
            f"onnx.checker refuses the upgraded model: {error}; correct the types and "
            f"shapes that the model declares, or replace what onnx.version_converter made wrong"
        ) from error
    return result


def _is_tile(node: Any) -> bool:
    return node.op_type == "Tile" and node.domain in DEFAULT_DOMAIN


def _stand_ins(graph: Any) -> list[Any]:
    return [node for node in graph.node if node.domain == _STAND_IN]


def _initializers(model: Any, graph: Any, *, are_defaults: bool) -> list[Any]:
    """List those initializers of a graph that are, or are not, defaults that a caller may override.

    In the first IR every initializer has to be an input, and onnxruntime lets none be overridden.
    """
    inputs = {value.name for value in graph.input} if model.ir_version > FIRST_IR else ()
    return [tensor for tensor in graph.initializer if (tensor.name in inputs) == are_defaults]


def _check_functions(model: Any) -> None:
    for function in model.functions:
        versions = own_opsets(function)
        if (
            versions
            and in_opset("Tile", versions[0]) is TILE_1
            and any(_is_tile(node) for graph in graphs_in(function) for node in graph.node)
        ):
            raise UnsupportedError(
                f"the function {function.name!r} has a Tile-1; inline it first, by {INLINE}"
            )


def _check_convertible(model: Any) -> None:
    if model.functions:
        raise UnsupportedError(
            f"the model has functions, which onnx.version_converter drops; inline them first, by "
            f"{INLINE}"
        )
    if any(o.domain == _STAND_IN for o in model.opset_import):
        raise UnsupportedError(
            f"the model has nodes of the domain {_STAND_IN!r}, in which the upgrade hides Tile-1; "
            f"give that domain another name"
        )
    check_graph(model.graph)


def _check_meanings(graph: Any, types: Any) -> None:
    """Refuse nodes of opset 6 whose meaning the converter is known to change."""
    for node in graph.node:
        change = change_of(node, [_type_of(name, types) for name in node.input])
        if change:
            raise UnsupportedError(
                f"{name_of(node)}: onnx.version_converter would change what it means: {change}; "
                f"replace it before the upgrade"
            )


def _scopes(model: Any) -> Iterator[Any]:
    """Yield each graph with the types and constants that its nodes see, inner graphs first.

    Ranks may follow from computed sizes (`data_prop`), but not at opset 13. There ONNX takes the
    elements of any Concat for sizes, one by one, and a short model may declare billions of them.
    """
    seen = deepcopy(model)
    for graph in graphs_in(seen.graph):
        for node in _stand_ins(graph):  # becomes a Tile of unknown repeats: ONNX infers its rank
            node.domain, node.input[1] = "", ""
            del node.input[2:]
    try:
        inferred = onnx.shape_inference.infer_shapes(seen, data_prop=opset_of(seen) < 13)  # noqa: PLR2004
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise UnsupportedError(
            f"onnx.shape_inference refuses the model: {error}; correct the types and shapes that "
            f"the model declares"
        ) from error
    return _scopes_of(model.graph, inferred.graph, {}, {})


def _scopes_of(graph: Any, twin: Any, types: Any, constants: Any) -> Iterator[Any]:
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    types = types | {name: _type_of_tensor(tensor) for name, tensor in tensors.items()}
    types |= {value.name: value.type.tensor_type for value in declared_in(twin)}
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in DEFAULT_DOMAIN:
            tensors[node.output[0]] = constant_of(node)
    given = {value.name for value in graph.input}
    constants = {n: t for n, t in (constants | tensors).items() if n not in given}
    for node, other in zip(graph.node, twin.node, strict=True):
        for inner, inferred in zip(inner_graphs(node), inner_graphs(other), strict=True):
            yield from _scopes_of(inner, inferred, types, constants)
    yield graph, types, constants


def _type_of_tensor(tensor: Any) -> Any:
    return helper.make_tensor_type_proto(tensor.data_type, tensor.dims).tensor_type


def _annotate(graph: Any, types: Any) -> None:
    """Declare the known ranks of the stand-ins' results, because the converter infers none."""
    declared = {v.name for v in declared_in(graph) if v.type.tensor_type.HasField("shape")}
    for node in _stand_ins(graph):
        output = node.output[0]
        found = _type_of(output, types)
        if output not in declared and found.HasField("shape") and dtype_of(found) is not None:
            sizes = [None] * len(found.shape.dim)
            value = helper.make_tensor_value_info(output, found.elem_type, sizes)
            graph.value_info.append(value)


def _rewrite(model: Any, make_repeats: Any) -> bool:
    """Replace each stand-in for which repeats can be made by a Tile; return whether any was."""
    taken = names_in(model)
    is_changed = False
    for graph, types, constants in _scopes(model):
        nodes: list[Any] = []
        for node in graph.node:
            made = []
            if node.domain == _STAND_IN:
                made = _tile_13(node, make_repeats, types, constants, taken)
            nodes += made or [node]
            is_changed = is_changed or bool(made)
        refill(graph.node, nodes)
    return is_changed


def _tile_13(node: Any, make_repeats: Any, types: Any, constants: Any, taken: Any) -> list[Any]:
    """Return the nodes that replace a stand-in; none if its repeats cannot be made yet."""
    made = _Nodes(taken, node.output[0])
    try:
        repeats = make_repeats(node, types, constants, made)
    except TileOpsError as error:
        raise type(error)(f"{name_of(node)}: {error}") from error
    if repeats is None:
        return []
    node.ClearField("domain")
    node.input[1:] = [repeats]
    return [*made.nodes, node]


def _constant_repeats(node: Any, types: Any, constants: Any, made: "_Nodes") -> str | None:
    """Make constant repeats from constant counts, if the input's rank is known."""
    shape = dims_of(_type_of(node.input[0], types))
    dtypes, counts = _read_constants(node, types, constants)
    if shape is None or None in counts:
        return None
    shape, repeats = TILE_1.align(TILE_1.argument, shape, counts)
    result = tuple(n * r if known(n) else n for n, r in zip(shape, repeats, strict=True))
    # Where the input's type is not known, `dtypes` begins with the narrowest that it may have.
    check_size(TILE_1.argument, result, np.dtype(dtypes[0]).itemsize)
    return made.constant(np.array(repeats, np.int64))


def _computed_repeats(node: Any, types: Any, constants: Any, made: "_Nodes") -> str:
    """Add nodes that compute repeats when the model runs: ones, with `tiles` put at `axis`."""
    data, tiles, axis = node.input
    # What is known now is checked now.
    shape = dims_of(_type_of(data, types))
    _, (known_tiles, known_axis) = _read_constants(node, types, constants)
    if known_tiles is not None:
        check_tiles(TILE_1.argument, "?" if known_axis is None else known_axis, known_tiles)
    if shape is not None and known_axis is not None:
        TILE_1.align(TILE_1.argument, shape, (1, known_axis))
    # Numbers that are not whole become invalid ones: a Tile refuses a negative count, and
    # ScatterElements an index out of range.
    count = made.whole(tiles, otherwise=-1)
    index = made.whole(axis, otherwise=-(2**62))
    rank = made.add("Shape", made.add("Shape", data))
    one = numpy_helper.from_array(np.ones(1, np.int64))
    ones = made.add("ConstantOfShape", rank, value=one)
    return made.add("ScatterElements", ones, index, count, axis=0)


def _read_constants(node: Any, types: Any, constants: Any) -> tuple[tuple[str, ...], Any]:
    """Return the dtypes that a Tile-1's counts may have, and its counts, None where not constant.

    Refuse types that Tile-1 does not take, and constants that are not a whole number.
    """
    data, *names = node.input
    dtypes = count_dtypes(dtype_of(_type_of(data, types)))
    counts: list[int | None] = []
    for argument, name in zip(ARGUMENTS, names, strict=True):
        dtype = dtype_of(_type_of(name, types))
        if dtype is not None:
            check_count_dtype(argument, dtype, dtypes)
        value = read_tensor(name, constants[name]) if name in constants else None
        counts.append(None if value is None else read_whole(argument, value, dtypes))
    return dtypes, tuple(counts)


def _type_of(name: str, types: Any) -> Any:
    return types.get(name, onnx.TypeProto.Tensor())


def _drop_unused(model: Any, names: set[str]) -> None:
    """Remove those constants of these names that nothing uses any more."""
    graphs = list(graphs_in(model.graph))
    used = {name for graph in graphs for node in graph.node for name in node.input}
    used |= {value.name for graph in graphs for value in (*graph.input, *graph.output)}
    unused = names - used
    for graph in graphs:
        refill(graph.node, [node for node in graph.node if not unused.intersection(node.output)])
        for values in (graph.initializer, graph.value_info):
            refill(values, [value for value in values if value.name not in unused])


class _Nodes:
    """New nodes, whose results have names that nothing else in the model has."""

    def __init__(self, taken: set[str], prefix: str) -> None:
        self._taken, self._prefix = taken, prefix
        self.nodes: list[Any] = []

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = unique_name(f"{self._prefix}_{op_type}", self._taken)
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant and return its name."""
        return self.add("Constant", value=numpy_helper.from_array(value))

    def whole(self, number: str, otherwise: int) -> str:
        """Turn one number into int64 of shape (1,), or into `otherwise` if it is not whole."""
        integer = self.add("Cast", number, to=onnx.TensorProto.INT64)
        exact, back = (self.add("Cast", n, to=onnx.TensorProto.DOUBLE) for n in (number, integer))
        is_whole = self.add("Equal", exact, back)
        refused = self.constant(np.array(otherwise, np.int64))
        chosen = self.add("Where", is_whole, integer, refused)
        return self.add("Reshape", chosen, self.constant(np.array([1], np.int64)))

"""The types of a model's values, which are checked before any of its nodes runs."""

from functools import cache
from typing import Any

import onnx
from onnx.defs import get_schema

from tileops.errors import DTypeError
from tileops.onnx._models import constant_of, name_of
from tileops.onnx._schemas import TILE_1, VERSIONS, in_opset

_NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
"""The names of types by their numbers; protobuf's own look-up builds a list of all names."""


def check_types(graph: Any, opset: int) -> None:
    """Refuse nodes of types that their opset lacks, and values declared with a wrong type.

    The nodes must have passed `check_node`, and the model ONNX's checker.
    """
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    types |= {value.name: value.type.tensor_type.elem_type for value in graph.input}
    makers, latest = {}, onnx.defs.onnx_opset_version()
    for node in graph.node:
        versions = [_signature(node.op_type, version) for version in (opset, latest)]
        _check_inputs(node, opset, [types[name] for name in node.input], versions)
        made = _result_type(node, types)
        _check(node, opset, "it makes", made, [output for _, output in versions])
        types[node.output[0]], makers[node.output[0]] = made, name_of(node)
    for value in (*graph.output, *graph.value_info):
        if value.name in types:
            _check_declared(value, types[value.name], makers.get(value.name))


def _check_declared(value: Any, found: int, maker: str | None) -> None:
    kind = value.type.WhichOneof("value")
    declared = value.type.tensor_type.elem_type if kind == "tensor_type" else kind
    if declared and declared != found:
        shown = _name(declared) if kind == "tensor_type" else kind
        by = f", because {maker} makes that" if maker else ""
        raise DTypeError(
            f"{value.name!r} is declared as {shown}, but is {_name(found)}{by}; declare that"
        )


def _check_inputs(node: Any, opset: int, types: list[int], versions: list[Any]) -> None:
    is_tile_1 = node.op_type in VERSIONS and in_opset(node.op_type, opset) is TILE_1
    # The counts of a Tile-1 are left out, because they may be of T or int64.
    for i, found in enumerate(types[:1] if is_tile_1 else types):
        # The last parameter may stand for any number of inputs.
        allowed = [inputs[min(i, len(inputs) - 1)] for inputs, _ in versions]
        _check(node, opset, f"its input {node.input[i]!r} is", found, allowed)
    if node.op_type == "Concat" and len(set(types)) > 1:
        raise DTypeError(
            f"{name_of(node)}: the inputs are {', '.join(map(_name, types))}; they must be of one "
            f"type; convert them"
        )


def _check(node: Any, opset: int, what: str, found: int, allowed: list[Any]) -> None:
    """Refuse a type that the opset does not allow; `allowed` has its types and the latest ones."""
    taken, latest = allowed
    if _name(found) not in taken:
        remedy = "make it an initializer" if node.op_type == "Constant" else "convert it"
        if _name(found) in latest:
            remedy += ", or import an opset that has it"
        raise DTypeError(
            f"{name_of(node)}: {what} {_name(found)}; {node.op_type} of opset {opset} has "
            f"{', '.join(sorted(taken))}; {remedy}"
        )


@cache
def _signature(op_type: str, opset: int) -> tuple[list[Any], Any]:
    """Return the types that an operator's inputs, and its output, may have in an opset."""
    # This is cached because onnx copies all names of types at each look-up.
    schema = get_schema(op_type, opset)
    return [parameter.types for parameter in schema.inputs], schema.outputs[0].types


def _result_type(node: Any, types: dict[str, int]) -> int:
    """Return the type of a node's result."""
    match node.op_type:
        case "Constant":
            return int(constant_of(node).data_type)
        case "Shape":
            return int(onnx.TensorProto.INT64)
        case _:
            return types[node.input[0]]


def _name(number: int) -> str:
    """Name a type as schemas do; an invalid type, which the checker may pass, by its number."""
    return f"tensor({_NAMES.get(number, number)})"

"""The nodes, other than Tile, whose meaning ONNX's version converter would change."""

from collections.abc import Callable, Mapping
from typing import Any

from onnx import helper

from tileops.onnx._models import DEFAULT_DOMAIN, dims_of, dtype_of, graphs_in, inner_graphs

Shape = tuple[Any, ...] | None
"""The sizes of a value, as far as they are known; None where not even the rank is known."""

_DEFAULTS = {"Selu": {"alpha": 1.6732, "gamma": 1.0507}}
"""Defaults in opset 1 that differ in opset 6."""


def write_defaults(model: Any) -> None:
    """Write out the defaults of opset 1 that differ in opset 6."""
    for graph in graphs_in(model.graph):
        for node in graph.node:
            if node.domain in DEFAULT_DOMAIN:
                given = {attribute.name for attribute in node.attribute}
                for name, value in _DEFAULTS.get(node.op_type, {}).items():
                    if name not in given:
                        node.attribute.append(helper.make_attribute(name, value))


def change_of(node: Any, inputs: list[Any]) -> str | None:
    """Say what the converter changes in a node of opset 6 on its way to 13; None if nothing.

    `inputs` are the declared types of the node's inputs.
    """
    if node.domain not in DEFAULT_DOMAIN:
        return "the graphs inside it stay as they are" if inner_graphs(node) else None
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return _CHANGES.get(node.op_type, _change_of_broadcasting)(given, inputs, len(node.output))


def _change_of_broadcasting(
    given: Mapping[str, Any], inputs: list[Any], _outputs: int
) -> str | None:
    axis = given.get("axis", 0)
    if not given.get("broadcast") or axis == 0:
        return None
    a, b = map(dims_of, inputs)
    if _is_single(b) or (a is not None and b is not None and axis == len(a) - len(b)):
        return None
    return "the axis of its broadcasting is dropped"


def _change_of_batch_normalization(
    given: Mapping[str, Any], _inputs: list[Any], outputs: int
) -> str | None:
    if bool(given.get("is_test", 0)) == (outputs == 1):
        return None
    return "the number of its outputs decides whether it trains, not is_test"


def _change_of_clip(_given: Mapping[str, Any], inputs: list[Any], *_: Any) -> str | None:
    """Say that constants become float32, or default limits those of the input's type."""
    dtype = dtype_of(inputs[0])
    if dtype == "float32":
        return None
    found = "not known; declare it" if dtype is None else dtype
    return f"its limits or constants are those of float32, and the type of its input is {found}"


def _change_of_conv_transpose(given: Mapping[str, Any], *_: Any) -> str | None:
    """Say that padding computed from a result's shape is split otherwise.

    In the equations of version 1, the two cases of `auto_pad` are the other way round.
    """
    if "output_shape" not in given:
        return None
    return "where its output_shape makes the padding odd, the larger half changes sides"


def _change_of_dropout(given: Mapping[str, Any], *_: Any) -> str | None:
    return None if given.get("is_test", 0) else "it no longer drops anything"


def _change_of_hardmax(given: Mapping[str, Any], inputs: list[Any], *_: Any) -> str | None:
    (x,) = map(dims_of, inputs)
    if x is not None and given.get("axis", 1) == len(x) - 1:
        return None
    return "it no longer flattens its input to two axes"


def _change_of_pad(given: Mapping[str, Any], inputs: list[Any], *_: Any) -> str | None:
    is_by_constant = given.get("mode", b"constant") == b"constant"
    return _change_of_clip(given, inputs) if is_by_constant else None


def _change_of_prelu(_given: Mapping[str, Any], inputs: list[Any], *_: Any) -> str | None:
    x, slope = map(dims_of, inputs)
    if _is_single(slope):
        rank = 1 if x is None else len(x)  # an unknown rank may be 1
        return None if len(slope) <= rank else "the result gets the axes of its slope"
    is_by_channel = (
        x is not None
        and slope is not None
        and len(slope) == len(x) - 1
        and all(size == 1 for size in slope[1:])
    )
    if is_by_channel:
        return None
    return "a slope for each channel becomes one for each element of the last axis"


def _change_of_upsample(given: Mapping[str, Any], *_: Any) -> str | None:
    is_whole = all(given[name] % 1 == 0 for name in ("height_scale", "width_scale"))
    if is_whole and given.get("mode", b"nearest") == b"nearest":
        return None
    return "it becomes a Resize, which samples at other places"


def _is_single(shape: Shape) -> bool:
    """Whether a value is known to have one element."""
    return shape is not None and all(size == 1 for size in shape)


_CHANGES: dict[str, Callable[[Mapping[str, Any], list[Any], int], str | None]] = {
    "BatchNormalization": _change_of_batch_normalization,
    "Clip": _change_of_clip,
    "ConvTranspose": _change_of_conv_transpose,
    "Dropout": _change_of_dropout,
    "Hardmax": _change_of_hardmax,
    "Pad": _change_of_pad,
    "PRelu": _change_of_prelu,
    "Upsample": _change_of_upsample,
}

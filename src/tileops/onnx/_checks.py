"""Checks of an ONNX model that come before anything in it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnx
from google.protobuf.message import EncodeError
from onnx.external_data_helper import uses_external_data

from tileops._texts import show, type_name
from tileops.errors import DTypeError, UnsupportedError
from tileops.onnx._models import (
    FIRST_IR,
    TYPES,
    declared_in,
    graphs_in,
    inner_graphs,
    name_of,
    own_opsets,
)

INLINE = (
    "onnx.inliner.inline_local_functions(model, True), after import onnx.inliner; where that fails "
    "for a function of another opset, write the function for the model's opset first"
)
"""The call that turns functions into nodes of the graph. Those of another opset it converts, for
which ONNX may lack an adapter, or the types of constants."""


def opset_of(model: Any) -> int:
    """Return the version of ONNX's own operators that a model imports."""
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
            f"the model imports {len(versions)} opsets of ONNX's own domain; it must "
            f"import exactly one"
        )
    check_opset("the model's opset", versions[0])
    return versions[0]


def check_opset(owner: str, version: int) -> None:
    """Refuse a version of ONNX's own operators that the package onnx does not know."""
    latest = onnx.defs.onnx_opset_version()
    if not 1 <= version <= latest:
        raise UnsupportedError(
            f"{owner} is {show(version)}; the onnx installed here knows 1 to {latest}; use one of "
            f"these, or a newer onnx"
        )


def check_model(model: Any) -> None:
    """Refuse a model that ONNX's checker refuses, or that is too large or too deep for it."""
    with writing_out("model"):
        onnx.checker.check_model(model)


@contextmanager
def writing_out(what: str) -> Iterator[None]:
    """Refuse a model or node that is too large or too deep for ONNX's checker, run inside."""
    try:
        yield
    except (EncodeError, ValueError) as error:
        raise UnsupportedError(
            f"onnx.checker cannot write the {what} out: it has more than 2 GiB, or its graphs are "
            f"nested too deep; make its largest tensors inputs, or nest fewer graphs"
        ) from error


def check_graph(graph: Any) -> None:
    """Refuse data outside of the model, sparse tensors, and invalid names, types and references."""
    for inner in graphs_in(graph):
        declared = declared_in(inner)
        _check_names([value.name for value in (*declared, *inner.initializer)])
        for value in declared:
            kind = value.type.tensor_type.elem_type
            if kind and kind not in TYPES:
                raise UnsupportedError(
                    f"{value.name!r} is declared of type {kind}, which the onnx installed here "
                    f"does not know; declare another type, or use a newer onnx"
                )
        if inner.sparse_initializer:
            name = inner.sparse_initializer[0].values.name
            raise UnsupportedError(f"initializer {name!r} is sparse; make it dense")
        for tensor in inner.initializer:
            _check_inside(f"initializer {tensor.name!r}", tensor)
        for node in inner.node:
            _check_parts(node)


def check_single(node: Any) -> None:
    """Refuse whatever `check_graph` refuses, in a node and in the graphs inside it."""
    for graph in inner_graphs(node):
        check_graph(graph)
    _check_parts(node)


def _check_parts(node: Any) -> None:
    names = [*node.input, *node.output, node.name, node.op_type, node.domain]
    _check_names([*names, *(attribute.name for attribute in node.attribute)])
    for attribute in node.attribute:
        if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
            raise UnsupportedError(f"{name_of(node)}: its value is sparse; make it dense")
        for tensor in (attribute.t, *attribute.tensors):
            _check_inside(name_of(node), tensor)
        if attribute.ref_attr_name:
            raise UnsupportedError(
                f"{name_of(node)}: its attribute {attribute.name!r} refers to an attribute of "
                f"a function, but the node is not in a function; give it a value"
            )


def _check_names(names: list[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise UnsupportedError(
                f"the name {name!r} in the model is not text; encode it in UTF-8"
            )


def _check_inside(owner: str, tensor: Any) -> None:
    if uses_external_data(tensor):
        raise UnsupportedError(
            f"{owner}: its data lie outside of the model, and are not read; load them with "
            f"onnx.load_external_data_for_model first, if you trust the model"
        )

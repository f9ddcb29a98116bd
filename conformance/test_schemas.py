"""The table of versions agrees with onnx.defs in every version, input and type."""

import onnx
import pytest
from onnx import TensorProto, helper

import tileops
from tileops.onnx._schemas import INT64, VERSIONS
from tileops.onnx._tile_1 import count_dtypes


def published(op_type):
    found = onnx.defs.get_all_schemas_with_history()
    return {s.since_version: s for s in found if s.name == op_type and not s.domain}


@pytest.mark.parametrize("op_type", VERSIONS)
def test_every_published_version_exists(op_type):
    assert set(VERSIONS[op_type]) == set(published(op_type))
    assert not any(schema.deprecated for schema in published(op_type).values())


@pytest.mark.parametrize(
    "op_type, version", [(op_type, v) for op_type, versions in VERSIONS.items() for v in versions]
)
def test_types_and_inputs_are_those_of_the_schema(op_type, version):
    schema, operator = published(op_type)[version], VERSIONS[op_type][version]
    types = {t.type_param_str: set(t.allowed_type_strs) for t in schema.type_constraints}
    assert set(operator.dtypes.values()) == types["T"]
    assert operator.name == f"{op_type}-{version}"
    data, *counts = schema.inputs
    assert (data.name, data.type_str) == ("input", "T")
    assert counts[0].name == operator.argument.name
    if (op_type, version) == ("Tile", 1):
        assert [i.type_str for i in schema.inputs] == ["T", "T", "T"]
        assert types["T1"] == {f"tensor({INT64})"}
        assert set(count_dtypes(None)) == {*operator.dtypes, INT64}
    else:
        (only,) = types.get(counts[0].type_str, {counts[0].type_str})
        assert only == f"tensor({operator.argument.dtype})"
        assert operator.argument.is_vector


COUNTS = {"Tile": 1, "Expand": 1, "Identity": 0, "Shape": 0, "Concat": 0}
"""Operators that the backend runs, and how many inputs of counts each takes."""
LATEST = onnx.defs.onnx_opset_version()


def is_taken(op_type, opset, number):
    """Return whether the backend takes a model of one node whose first input has this type."""
    names = ["x", "counts"][: 1 + COUNTS[op_type]]
    is_tile_1 = op_type == "Tile" and opset < 6
    kinds = dict(zip(names, (number, number if is_tile_1 else TensorProto.INT64), strict=False))
    if is_tile_1:
        kinds["axis"] = number
    made = TensorProto.INT64 if op_type == "Shape" else number
    attributes = {"axis": 0} if op_type == "Concat" else {}
    node = helper.make_node(op_type, list(kinds), ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kind, [1]) for name, kind in kinds.items()],
        [helper.make_tensor_value_info("y", made, [1])],
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=onnx.IR_VERSION)
    return tileops.onnx.backend.for_library("numpy").is_compatible(model)


@pytest.mark.parametrize("op_type", COUNTS)
def test_every_opset_takes_the_types_of_its_schema(op_type):
    first = min(
        s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op_type
    )
    for opset in range(first, LATEST + 1):
        schema = onnx.defs.get_schema(op_type, opset)
        for name, number in TensorProto.DataType.items():
            expected = f"tensor({name.lower()})" in schema.inputs[0].types
            assert is_taken(op_type, opset, number) == expected, (opset, name)

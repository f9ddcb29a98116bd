"""The version table is that of onnx.defs: every version, input and type string."""

import onnx
import pytest

from tileops.onnx._schemas import INT64, VERSIONS
from tileops.onnx._tile_1 import count_dtypes


def published(op_type):
    found = onnx.defs.get_all_schemas_with_history()
    return {s.since_version: s for s in found if s.name == op_type and not s.domain}


@pytest.mark.parametrize("op_type", VERSIONS)
def test_every_version_is_there(op_type):
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

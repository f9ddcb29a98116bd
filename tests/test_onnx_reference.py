"""Whole models on ONNX's reference evaluator, with this package's Tile and Expand."""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import tileops
import variants

MODEL = """
<ir_version: 8, opset_import: ["": 13]>
attention (float[b, g, s, d] keys, int64[4] repeats, float[h, d] query)
    => (float[b, k, s, h] y, float[h, d] scale)
{
    heads = Tile (keys, repeats)
    turned = Transpose <perm = [1, 0]> (query)
    y = MatMul (heads, turned)
    shape = Shape (query)
    half = Constant <value = float {0.5}> ()
    scale = Expand (half, shape)
}
"""


@pytest.fixture
def evaluator(request):
    ops = tileops.onnx.reference.ops(request.config.getoption("--library"))
    return lambda model: ReferenceEvaluator(parse_model(model), new_ops=ops)


def test_a_model_with_other_operators_runs(evaluator, rng):
    keys = rng.standard_normal((1, 2, 3, 4)).astype(np.float32)
    query = rng.standard_normal((5, 4)).astype(np.float32)
    y, scale = evaluator(MODEL).run(
        None, {"keys": keys, "repeats": np.array([1, 2, 1, 1]), "query": query}
    )
    assert np.array_equal(y, np.tile(keys, (1, 2, 1, 1)) @ query.T)
    assert np.array_equal(scale, np.full((5, 4), 0.5, np.float32))


@pytest.mark.library("jax")
def test_the_operators_run_in_jax_without_64_bits():
    """The evaluator's values are float32, and its counts stay in NumPy."""
    code = """
import numpy as np, onnx, tileops
from onnx.reference import ReferenceEvaluator
model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 13]>'
    'wall (float[h, w] x, int64[2] r) => (float[a, b] y) { y = Tile (x, r) }')
evaluator = ReferenceEvaluator(model, new_ops=tileops.onnx.reference.ops("jax"))
print(evaluator.run(None, {"x": np.ones((1, 2), np.float32), "r": np.array([3, 1])})[0].shape)
"""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout == "(3, 2)\n", done.stderr


def test_bits_survive_in_the_evaluator(evaluator, rng):
    x = variants.random_bits(rng, "float32", 4, (300, 1)).view("f4")
    model = (
        '<ir_version: 8, opset_import: ["": 13]> g (float[n, m] x, int64[2] s) => (float[a, b] y)'
        "{ y = Expand (x, s) }"
    )
    (y,) = evaluator(model).run(None, {"x": x, "s": np.array([1, 2])})
    assert y.tobytes() == np.repeat(x.view("u4"), 2, axis=1).tobytes()


def test_errors_are_those_of_the_package(evaluator):
    model = evaluator(
        '<ir_version: 8, opset_import: ["": 13]> g (float[n, m] x, int64[k] r) => (float[a, b] y)'
        "{ y = Tile (x, r) }"
    )
    x = np.ones((2, 3), np.float32)
    with pytest.raises(
        tileops.RepeatsError, match=r"^node 'y' \(Tile\): Tile-13: repeats has 1 entry"
    ):
        model.run(None, {"x": x, "r": np.array([2])})
    with pytest.raises(
        tileops.RepeatsTypeError, match=r"^node 'y' \(Tile\): Tile-13: repeats has dtype"
    ):
        model.run(None, {"x": x, "r": np.array([2, 2], np.int32)})


def test_masks_are_refused_and_not_dropped(evaluator):
    model = evaluator(
        '<ir_version: 8, opset_import: ["": 13]> g (float[n] x, int64[1] r) => (float[m] y)'
        "{ y = Tile (x, r) }"
    )
    x = np.ma.array(np.ones(2, np.float32), mask=[True, False])
    with pytest.raises(
        tileops.DTypeError, match=r"numpy\.ma\.MaskedArray; a tensor must be a plain"
    ):
        model.run(None, {"x": x, "r": np.array([2])})


def test_the_opset_selects_the_version_of_an_operator(evaluator):
    old = evaluator(
        '<ir_version: 3, opset_import: ["": 4]> g (float[n] x, float t, float a) => (float[m] y)'
        "{ y = Tile (x, t, a) }"
    )
    feeds = {"x": np.ones(2, "f4"), "t": np.array(2, "f4"), "a": np.array(0, "f4")}
    assert old.run(None, feeds)[0].shape == (4,)
    with pytest.raises(tileops.RepeatsError, match=r"^node 'y' \(Tile\): Tile-1: tiles is 0\.5"):
        old.run(None, {**feeds, "t": np.array(0.5, "f4")})


def test_an_operator_that_an_opset_lacks_is_named(evaluator):
    model = evaluator(
        '<ir_version: 3, opset_import: ["": 7]> g (float[n] x, int64[k] s) => (float[m] y)'
        "{ y = Expand (x, s) }"
    )
    with pytest.raises(tileops.UnsupportedError, match="opset 7 has no Expand of 2 inputs"):
        model.run(None, {"x": np.ones(1, np.float32), "s": np.array([2])})


@pytest.mark.library("numpy")
def test_operators_in_subgraphs_are_also_replaced(evaluator):
    model = evaluator(
        '<ir_version: 8, opset_import: ["": 13]> g (bool c, float[2] x) => (float[n] y) {'
        "  r = Constant <value_ints = [2, 1]> ()"
        "  y = If (c) < then_branch = t () => (float[a] p) { p = Tile (x, r) },"
        "               else_branch = e () => (float[b] q) { q = Identity (x) } > }"
    )
    x = np.ones(2, np.float32)
    assert model.run(None, {"c": np.array(False), "x": x})[0].shape == (2,)
    with pytest.raises(tileops.RepeatsError, match="Tile-13: repeats has 2 entries for rank 1"):
        model.run(None, {"c": np.array(True), "x": x})


@pytest.mark.library("numpy")
def test_a_node_with_too_few_inputs_is_named():
    from onnx import helper

    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Tile", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", 1, [1])],
            [helper.make_tensor_value_info("y", 1, [1])],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
    )
    new_ops = tileops.onnx.reference.ops()
    with pytest.raises(
        tileops.UnsupportedError, match=r"node 'y' .*: opset 13 has no Tile of 1 inputs"
    ):
        ReferenceEvaluator(model, new_ops=new_ops).run(None, {"x": np.ones(1, np.float32)})


def test_functions_must_be_inlined_to_use_the_package():
    model = parse_model("""
        <ir_version: 8, opset_import: ["": 13, "local": 1]>
        g (float[2, 3] x, int64[k] repeats) => (float[a, b] y) { y = local.Wall (x, repeats) }
        <domain: "local", opset_import: ["": 13]>
        Wall (x, repeats) => (y) { y = Tile (x, repeats) }
    """)
    inputs = {"x": np.ones((2, 3), np.float32), "repeats": np.array([2])}
    ops = tileops.onnx.reference.ops()
    (padded,) = ReferenceEvaluator(model, new_ops=ops).run(None, inputs)
    assert padded.shape == (2, 6), "in functions the evaluator's own run: the docs say so"
    inlined = onnx.inliner.inline_local_functions(model)
    with pytest.raises(tileops.RepeatsError, match="repeats has 1 entry"):
        ReferenceEvaluator(inlined, new_ops=ops).run(None, inputs)


@pytest.mark.library("numpy")
def test_the_evaluator_names_an_unexpected_error_as_the_cause(monkeypatch):
    def fail(*_):
        raise TypeError("another")

    monkeypatch.setattr("tileops.onnx.reference.run_node", fail)
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x, int64[1] r) => (float[n] y) '
        "{ y = Tile (x, r) }"
    )
    evaluator = ReferenceEvaluator(model, new_ops=tileops.onnx.reference.ops())
    with pytest.raises(TypeError) as raised:
        evaluator.run(None, {"x": np.ones(2, np.float32), "r": np.array([2])})
    assert str(raised.value.__cause__) == "another"

"""Tile-1 becomes Tile-13; conformance/ tests on onnxruntime that models keep their meaning."""

from itertools import pairwise

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import tileops
from tileops.onnx.upgrade import upgrade

pytestmark = pytest.mark.library("numpy")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(model, **feeds):
    new_ops = tileops.onnx.reference.ops()
    return ReferenceEvaluator(model, new_ops=new_ops).run(None, feeds)[0]


def kinds(model):
    return [node.op_type for node in model.graph.node]


def constant(tiles=2.0, axis=1.0, sizes="2, 3"):
    return parse_model(
        f'<ir_version: 3, opset_import: ["": 1]> g (float[{sizes}] x) => (float[a, b] y) {{'
        f"  tiles = Constant <value = float {{{tiles}}}> ()"
        f"  axis = Constant <value = float {{{axis}}}> ()"
        "  [wall] y = Tile (x, tiles, axis) }"
    )


def test_constant_counts_become_a_constant_of_repeats():
    model = constant()
    model.graph.node[2].doc_string = "as wide as the room"
    upgraded = upgrade(model)
    assert upgraded.graph.node[1].doc_string == "as wide as the room"
    assert kinds(upgraded) == ["Constant", "Tile"]
    assert upgraded.graph.node[1].name == "wall"
    assert upgraded.opset_import[0].version == 13
    assert len(upgraded.opset_import) == 1
    assert np.array_equal(run(upgraded, x=X), np.tile(X, (1, 2)))


def test_a_size_that_is_a_name_is_not_counted():
    upgraded = upgrade(constant(2.0**40, 0.0, "n, 3"))
    (repeats,) = (node for node in upgraded.graph.node if node.op_type == "Constant")
    value = numpy_helper.to_array(repeats.attribute[0].t)
    assert (value.dtype, value.tolist()) == (np.int64, [2**40, 1])


def test_inputs_and_outputs_that_a_node_leaves_out_stay_left_out():
    model = followed_by(
        "z = Loop <body = b (int64 i, bool go, float[p, q] v) => (bool stop, float[p, q] u)"
        " { stop = Not (go)  u = Abs (v) }> (t, c, y)  last = Dropout <is_test = 1> (z)"
    )
    *_, loop, dropout = model.graph.node
    loop.input[0] = ""
    dropout.output.append("")
    nodes = {node.op_type: node for node in upgrade(model).graph.node}
    loop, dropout = nodes["Loop"], nodes["Dropout"]
    assert (loop.input[0], list(dropout.output)) == ("", ["last", ""])


def test_a_doc_string_that_is_not_utf_8_is_kept():
    model = constant()
    model.graph.node[2].doc_string = "as wide as the room"
    raw = model.SerializeToString().replace(b"as wide", b"\xff\xfe wide")
    upgraded = upgrade(onnx.load_from_string(raw))
    assert b"\xff\xfe wide as the room" in upgraded.SerializeToString()
    assert np.array_equal(run(upgraded, x=X), np.tile(X, (1, 2)))


def test_a_model_may_import_onnx_s_own_domain_by_its_long_name():
    model = constant()
    model.opset_import[0].domain = "ai.onnx"
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:  # older versions of ONNX
        with pytest.raises(onnx.checker.ValidationError):
            upgrade(model)
        return
    upgraded = upgrade(model)
    assert [imported.version for imported in upgraded.opset_import] == [13]
    (y,) = tileops.onnx.backend.for_library("numpy").run_model(upgraded, [X])
    assert np.array_equal(y, np.tile(X, (1, 2)))


def test_another_tensor_of_a_constant_is_not_its_value():
    """ONNX's checker accepts any attribute whose name begins with two underscores."""
    model = constant()
    value = helper.make_attribute("value", numpy_helper.from_array(np.float32(2)))
    note = helper.make_attribute("__note", numpy_helper.from_array(np.float32(3)))
    del model.graph.node[0].attribute[:]
    model.graph.node[0].attribute.extend([note, value])
    assert np.array_equal(run(upgrade(model), x=X), np.tile(X, (1, 2)))


def followed_by(nodes, opset=5):
    return parse_model(
        f'<ir_version: 3, opset_import: ["": {opset}]> '
        "g (float[n, m] x, float t, float a, float[k] w, bool c) => (float[p, q] last) "
        f"{{ first = Relu (x)  y = Tile (first, t, a)  {nodes} }}"
    )


def test_the_model_itself_is_not_changed():
    model = constant()
    before = model.SerializeToString()
    upgrade(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("ir_version", [3, 4])
def test_initializers_that_a_caller_may_override_are_computed(ir_version):
    model = parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": 5]> '
        "g (float[2, 3] x, float tiles, float axis) => (float[a, b] y) "
        "<float tiles = {3}, float axis = {0}> { y = Tile (x, tiles, axis) }"
    )
    upgraded = upgrade(model)
    assert "ScatterElements" in kinds(upgraded)
    assert np.array_equal(run(upgraded, x=X), np.tile(X, (3, 1)))
    assert np.array_equal(run(upgraded, x=X, tiles=np.float32(2)), np.tile(X, (2, 1)))


def reshaped(ir_version, node):
    return parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": 5]> '
        "g (float[2, 3] x, int64[n] sizes, float tiles, float axis) => (float total) "
        "<int64[2] sizes = {3, 2}> "
        f"{{ y = Tile (x, tiles, axis)  r = Reshape (x, sizes)  {node}"
        "  total = ReduceSum <keepdims = 0> (z) }"
    )


@pytest.mark.parametrize("node", ["z = Tile (r, two, zero)", "z = Softmax (r)"])
def test_a_rank_does_not_follow_from_sizes_that_a_caller_may_override(node):
    constants = "two = Constant <value = float {2}> ()  zero = Constant <value = float {0}> ()"
    upgraded = upgrade(reshaped(4, f"{constants}  {node}"))
    assert [tensor.name for tensor in upgraded.graph.initializer] == ["sizes"]
    for sizes in ([3, 2], [1, 2, 3], [6]):
        # A Softmax of opset 5 takes all axes but the first for one.
        total = 2 * X.sum() if "Tile" in node else sizes[0]
        feeds = {"x": X, "sizes": np.array(sizes), "tiles": np.float32(1), "axis": np.float32(0)}
        assert run(upgraded, **feeds) == pytest.approx(total)


def test_a_node_whose_meaning_depends_on_sizes_that_a_caller_may_override_is_refused():
    with pytest.raises(tileops.UnsupportedError, match=r"Hardmax.*no longer flattens"):
        upgrade(reshaped(4, "z = Hardmax (r)"))
    assert "Hardmax" in kinds(upgrade(reshaped(3, "z = Hardmax (r)")))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_counts_are_computed_where_they_are_inputs(dtype):
    kind = {"float32": "float", "int64": "int64"}[dtype]
    upgraded = upgrade(
        parse_model(
            '<ir_version: 3, opset_import: ["": 5]> '
            f"g (float[2, 3] x, {kind} tiles, {kind}[1] axis) => (float[a, b] y) "
            "{ y = Tile (x, tiles, axis) }"
        )
    )
    assert upgraded.graph.input[1].type.tensor_type.elem_type == helper.np_dtype_to_tensor_dtype(
        np.dtype(dtype)
    )
    for tiles, axis, repeats in ((2, 0, (2, 1)), (3, -1, (1, 3)), (0, 1, (1, 0))):
        counts = {"tiles": np.array(tiles, dtype), "axis": np.array([axis], dtype)}
        assert np.array_equal(run(upgraded, x=X, **counts), np.tile(X, repeats))
    with pytest.raises(tileops.RepeatsError, match="negative"):
        run(upgraded, x=X, tiles=np.array(-1, dtype), axis=np.array([0], dtype))


@pytest.mark.parametrize("tiles", [2.5, np.nan, np.inf, -0.5])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_a_computed_count_that_is_not_whole_still_fails(tiles):
    upgraded = upgrade(
        parse_model(
            '<ir_version: 3, opset_import: ["": 5]> '
            "g (float[2, 3] x, float tiles) => (float[a, b] y) {"
            "  axis = Constant <value = float {0.0}> ()  y = Tile (x, tiles, axis) }"
        )
    )
    with pytest.raises(tileops.RepeatsError, match="no count may be negative"):
        run(upgraded, x=X, tiles=np.float32(tiles))


@pytest.mark.parametrize("axis", [0.5, -0.5, np.nan, np.inf, 2.0, -3.0])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_a_computed_axis_that_is_not_whole_or_out_of_range_still_fails(axis):
    upgraded = upgrade(
        parse_model(
            '<ir_version: 3, opset_import: ["": 5]> '
            "g (float[2, 3] x, float axis) => (float[a, b] y) {"
            "  tiles = Constant <value = float {2.0}> ()  y = Tile (x, tiles, axis) }"
        )
    )
    with pytest.raises(IndexError):
        run(upgraded, x=X, axis=np.float32(axis))


@pytest.mark.parametrize(
    "counts, error, text",
    [
        (
            {"tiles": 2.5},
            tileops.RepeatsError,
            r"^node 'wall' .Tile.: Tile-1: tiles is 2\.5.*whole",
        ),
        ({"tiles": -1.0}, tileops.RepeatsError, "^node 'wall' .Tile.: Tile-1: axis 1: tiles is -1"),
        ({"axis": 2.0}, tileops.ShapeError, "^node 'wall' .Tile.: Tile-1: axis is 2 for rank 2"),
        ({"tiles": 1e30}, tileops.RepeatsError, "^node 'wall' .Tile.: Tile-1: .*exceed 92233"),
        (
            {"tiles": 1e18},
            tileops.OutputTooLargeError,
            r"^node 'wall' .Tile.: Tile-1: the result's shape .2, 29\d+. is larger.*reduce the ti",
        ),
        (
            {"tiles": 1e18, "sizes": "n, 16"},
            tileops.OutputTooLargeError,
            r"^node 'wall' .Tile.: Tile-1: the result's shape .n, 159\d+. is larger",
        ),
        ({"axis": 0.5}, tileops.ShapeError, r"^node 'wall' .Tile.: Tile-1: axis is 0\.5.*whole"),
    ],
)
def test_a_constant_that_tile_1_refuses_is_refused_by_the_upgrade(counts, error, text):
    with pytest.raises(error, match=text):
        upgrade(constant(**counts))


@pytest.mark.parametrize("node, tiles", [("Identity", 2.0**59), ("own.Any", 2.0**60)])
def test_a_result_may_have_as_many_bytes_as_the_narrowest_type_of_its_input_allows(node, tiles):
    """Of 2**60 elements in float32, or 2**61 in a type that may be float16."""
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5, "own": 1]> g (float[2] x) => (float[a] y)'
        f" <float[2] p> {{  tiles = Constant <value = float {{{tiles}}}> ()"
        "  zero = Constant <value = float {0.0}> ()"
        f"  p = {node} (x)  y = Tile (p, tiles, zero) }}"
    )
    if node != "Identity":
        model.graph.value_info[0].type.tensor_type.elem_type = 0
    assert "Tile" in kinds(upgrade(model))


@pytest.mark.parametrize(
    "tiles, axis, error, text",
    [
        (-1.0, None, tileops.RepeatsError, r"axis \?: tiles is -1"),
        (2.5, None, tileops.RepeatsError, r"tiles is 2\.5.*whole"),
        ([1.0, 2.0], None, tileops.RepeatsError, "tiles has shape"),
        (1e30, None, tileops.RepeatsError, ".*exceed 92233"),
        (None, 2.0, tileops.ShapeError, "axis is 2 for rank 2"),
        (None, -3.0, tileops.ShapeError, "axis is -3 for rank 2"),
        (None, 0.5, tileops.ShapeError, r"axis is 0\.5.*whole"),
        (None, [0.0, 1.0], tileops.ShapeError, "axis has shape"),
    ],
)
@pytest.mark.parametrize("is_rank_known", [True, False])
def test_a_wrong_constant_beside_a_computed_count_is_refused(
    tiles, axis, error, text, is_rank_known
):
    given = {"tiles": tiles, "axis": axis}
    (computed,) = (name for name, value in given.items() if value is None)
    x = "Identity (x0)" if is_rank_known else "Reshape (x0, sizes)"
    model = holding(
        {name: np.float32(value) for name, value in given.items() if value is not None},
        f"x = {x} y = Tile (x, tiles, axis)",
        f"float[2, 3] x0, int64[m] sizes, float {computed}",
    )
    if "rank" in text and not is_rank_known:
        assert "ScatterElements" in kinds(upgrade(model))  # which checks the axis when it runs
        return
    with pytest.raises(error, match=rf"^node 'y' .Tile.: Tile-1: {text}"):
        upgrade(model)


def test_the_axis_of_wrong_tiles_is_named_even_if_the_rank_is_unknown():
    model = holding(
        {"tiles": np.float32(-1), "axis": np.float32(1)},
        "x = Reshape (x0, sizes) y = Tile (x, tiles, axis)",
        "float[2, 3] x0, int64[m] sizes",
    )
    with pytest.raises(tileops.RepeatsError, match="axis 1: tiles is -1"):
        upgrade(model)


def holding(values, nodes, inputs=""):
    """Return a model of opset 5 in which these values are initializers, but no inputs."""
    model = parse_model(
        f'<ir_version: 4, opset_import: ["": 5]> g ({inputs}) => (float[a, b] y) {{ {nodes} }}'
    )
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in values.items())
    return model


COUNTS = {"two": np.float32(2), "zero": np.float32(0)}


def test_the_rank_and_type_of_an_initializer_are_known():
    upgraded = upgrade(holding({"x": X, **COUNTS}, "y = Tile (x, two, zero)"))
    assert kinds(upgraded) == ["Constant", "Tile"]
    assert np.array_equal(run(upgraded), np.tile(X, (2, 1)))
    integers = X.astype(np.int32)
    for values, error, text in (
        ({"x": integers, **COUNTS}, tileops.DTypeError, "the input has dtype int32"),
        ({"x": X, **COUNTS, "zero": np.float32(2)}, tileops.ShapeError, "axis is 2 for rank 2"),
        ({"x": X, **COUNTS, "two": np.int32(2)}, tileops.RepeatsTypeError, "tiles is of int32"),
        ({"x": X, **COUNTS, "two": np.float32(1e18)}, tileops.OutputTooLargeError, "larger"),
    ):
        with pytest.raises(error, match=text):
            upgrade(holding(values, "y = Tile (x, two, zero)"))


@pytest.mark.parametrize(
    "shapes, node, expected",
    [
        (([1, 2, 4, 5], [2, 1, 1]), "PRelu (a, b)", lambda a, b: np.where(a < 0, a * b, a)),
        (([1, 2, 4, 5], [1]), "PRelu (a, b)", lambda a, b: np.where(a < 0, a * b, a)),
        (([3, 4, 4], [4]), "Add <broadcast = 1, axis = 2> (a, b)", np.add),
    ],
)
def test_other_nodes_are_converted_with_the_shapes_of_initializers(shapes, node, expected):
    a, b = (np.random.default_rng(0).normal(size=n).astype(np.float32) for n in shapes)
    nodes = f"c = {node} d = Flatten (c) y = Tile (d, two, zero)"
    upgraded = upgrade(holding({"a": a, "b": b, **COUNTS}, nodes))
    assert np.array_equal(run(upgraded), np.tile(expected(a, b).reshape(len(a), -1), (2, 1)))


def test_no_element_of_a_long_value_is_taken_for_a_size(monkeypatch):
    """ONNX does so at opset 13: it would keep a dimension for each element, for 1 GB in all."""
    infer, passes = onnx.shape_inference.infer_shapes, []

    def record(model, *, data_prop):
        passes.append((model.opset_import[0].version, data_prop))
        return infer(model, data_prop=data_prop)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", record)
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[5000000] x) => (float[a] y) {'
        "  two = Constant <value = float {2}> ()  zero = Constant <value = float {0}> ()"
        "  c = Concat <axis = 0> (x, x)  y = Tile (c, two, zero) }"
    )
    assert kinds(upgrade(model)) == ["Concat", "Constant", "Tile"]
    assert {data_prop for version, data_prop in passes if version == 13} == {False}
    assert {version for version, data_prop in passes if data_prop} == {6}


def test_other_nodes_are_converted_with_the_shapes_of_tile_1_results():
    """Add's old broadcasting needs the sizes of a Tile-1's result."""
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 4]> g (float[2, 3] x, float[4] w) => (float[4, 3] y) {'
        "  two = Constant <value = float {2.0}> ()"
        "  zero = Constant <value = float {0.0}> ()"
        "  r = Relu (x)  t = Tile (r, two, zero)  y = Add <axis = 0, broadcast = 1> (t, w) }"
    )
    w = np.arange(4, dtype=np.float32)
    expected = np.tile(X, (2, 1)) + w[:, None]
    assert np.array_equal(run(upgrade(model), x=X, w=w), expected)


def test_a_chain_of_tiles_is_rewritten_from_the_front():
    nodes = "".join(f"t{i + 1} = Tile (t{i}, two, zero) " for i in range(5))
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[2] t0) => (float[n] t5) {'
        "  two = Constant <value = float {2.0}> ()  zero = Constant <value = float {0.0}> ()"
        f"  {nodes} }}"
    )
    upgraded = upgrade(model)
    assert kinds(upgraded) == ["Constant", "Tile"] * 5
    assert run(upgraded, t0=X[0, :2]).shape == (64,)


def test_the_rank_of_a_tile_may_follow_from_the_sizes_of_another():
    model = parse_model("""
        <ir_version: 3, opset_import: ["": 5]>
        g (float[1, 2] x) => (float[a, b] y, float[c, d] z) {
            two = Constant <value = float {2.0}> ()
            zero = Constant <value = float {0.0}> ()
            t = Tile (x, two, zero)
            rest = Squeeze (t)
            y = Tile (rest, two, zero)
            z = Abs (t)
        }
    """)
    assert kinds(upgrade(model)) == ["Constant", "Tile", "Squeeze", "Constant", "Tile", "Abs"]


@pytest.mark.parametrize(
    ("sizes", "node", "ends"),
    [
        ("2, 3", "Softmax <axis = 1> (t)", ["Tile", "Softmax"]),
        ("2, 3", "Softmax <axis = 0> (t)", ["Softmax", "Reshape"]),
        ("1, 1, 4, 2", "Upsample <width_scale=2.0, height_scale=1.0> (t)", ["Tile", "Resize"]),
    ],
)
def test_the_rank_of_a_computed_tile_is_that_of_its_input(sizes, node, ends):
    model = parse_model(
        f'<ir_version: 3, opset_import: ["": 5]> g (float[{sizes}] x, float n, float a)'
        f" => (float[b] y) {{ y = Abs (n)  t = Tile (x, n, a)  z = {node} }}"
    )
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    assert [kind for kind in kinds(upgrade(model)) if kind != "Constant"][-len(ends) :] == ends


def test_the_sizes_that_a_result_is_declared_with_are_used():
    """Add's old broadcasting needs more than the rank of a computed Tile."""
    model = parse_model("""
        <ir_version: 8, opset_import: ["": 5]>
        g (float[2, 3] x, float n, float[2, 6] w) => (float[b, c] y) <float[2, 6] t> {
            one = Constant <value = float {1.0}> ()
            t = Tile (x, n, one)
            y = Add <broadcast = 1> (w, t)
        }
    """)
    w = np.arange(12, dtype=np.float32).reshape(2, 6)
    result = run(upgrade(model), x=X, n=np.float32(2), w=w)
    assert np.array_equal(result, w + np.tile(X, (1, 2)))


def test_a_result_of_unknown_rank_is_not_declared_as_a_scalar():
    """Otherwise the converter would take Add's old broadcasting for that of two scalars."""
    model = parse_model("""
        <ir_version: 8, opset_import: ["": 5]>
        g (float[m] x, int64[k] sizes, float n) => (int64 y) {
            zero = Constant <value = float {0.0}> ()
            r = Reshape (x, sizes)
            t = Tile (r, n, zero)
            z = Add <broadcast = 1> (t, n)
            y = Size (z)
        }
    """)
    with pytest.raises(tileops.UnsupportedError, match=r"^node 'z' .Add.: .*Shape of input \d is"):
        upgrade(model)


def test_a_result_that_is_declared_without_a_shape_gets_its_rank():
    model = parse_model("""
        <ir_version: 8, opset_import: ["": 5]>
        g (float[2, 3] x, float n, float a) => (float[2, b] z) <float[] t> {
            t = Tile (x, n, a)
            z = Softmax <axis = 1> (t)
        }
    """)
    model.graph.value_info[0].type.tensor_type.ClearField("shape")
    assert kinds(upgrade(model))[-2:] == ["Tile", "Softmax"]


def test_a_chain_of_tiles_takes_as_many_inference_passes_as_one(monkeypatch):
    infer, passes = onnx.shape_inference.infer_shapes, []
    monkeypatch.setattr(
        onnx.shape_inference, "infer_shapes", lambda *a, **k: passes.append(a) or infer(*a, **k)
    )
    upgrade(constant())
    once = len(passes)
    model = constant()
    names = ["x", *(f"x{i}" for i in range(20)), "y"]
    del model.graph.node[2:]
    for given, made in pairwise(names):
        counts = [] if made.endswith(("3", "7")) else ["tiles", "axis"]
        node = helper.make_node("Tile" if counts else "Relu", [given, *counts], [made])
        model.graph.node.append(node)
    upgraded = upgrade(model)
    assert len(passes) == 2 * once
    assert once < 8
    assert kinds(upgraded).count("Tile") == 17
    assert np.array_equal(run(upgraded, x=X[:1, :1]), np.tile(X[:1, :1], (1, 2**17)))


def test_the_number_of_inference_passes_is_limited(monkeypatch):
    """Each Squeeze needs the sizes of the Tile before it, so each pass finds one more rank."""
    infer, passes = onnx.shape_inference.infer_shapes, []
    monkeypatch.setattr(
        onnx.shape_inference, "infer_shapes", lambda *a, **k: passes.append(a) or infer(*a, **k)
    )
    levels = 50
    nodes = "".join(
        f"t{i} = Tile (x{i}, {'two' if i in {0, 40} else 'one'}, zero) x{i + 1} = Squeeze (t{i}) "
        for i in range(levels)
    )
    model = parse_model(
        f'<ir_version: 3, opset_import: ["": 5]> g (float[1, 3] x0) => (float[n, m] x{levels}) {{'
        "  one = Constant <value = float {1.0}> ()  two = Constant <value = float {2.0}> ()"
        f"  zero = Constant <value = float {{0.0}}> ()  {nodes} }}"
    )
    upgraded = upgrade(model)
    assert len(passes) < 40
    assert kinds(upgraded).count("Tile") == levels
    assert kinds(upgraded).count("ScatterElements") == levels - 32
    assert np.array_equal(run(upgraded, x0=X[:1]), np.tile(X[:1], (4, 1)))


def test_subgraphs_are_also_rewritten():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 1]> g (bool c, float[2, 3] x, float t)'
        " => (float[a, b] y) { zero = Constant <value = float {0.0}> ()"
        "  y = If (c) <"
        "    then_branch = th () => (float[d, e] p) { p = Tile (x, t, zero) },"
        "    else_branch = el () => (float[f, g] q) {"
        "      two = Constant <value = float {2.0}> ()  q = Tile (x, two, zero) } > }"
    )
    upgraded = upgrade(model)
    for condition, repeats in ((True, 3), (False, 2)):
        y = run(upgraded, c=np.array(condition), x=X, t=np.float32(3))
        assert np.array_equal(y, np.tile(X, (repeats, 1)))


def nested(outside, make_inside):
    """Return a model whose nodes outside an If make y, and whose branches hold other nodes."""

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None])

    then, other = (
        helper.make_graph(make_inside(name), name, [], [value(name)]) for name in ("p", "q")
    )
    choice = helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other)
    inputs = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
    ]
    graph = helper.make_graph([*outside, choice], "g", inputs, [value("y"), value("z")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 5)], ir_version=3)


def tile_by_constants(x, name):
    def constant(key, count):
        tensor = helper.make_tensor("", TensorProto.FLOAT, [], [count])
        return helper.make_node("Constant", [], [name + key], value=tensor)

    tile = helper.make_node("Tile", [x, f"{name}t", f"{name}a"], [name])
    return [constant("t", 2.0), constant("a", 0.0), tile]


def test_counts_are_also_dropped_from_branches():
    model = nested(tile_by_constants("x", "y"), lambda name: tile_by_constants("x", name))
    upgraded = upgrade(model)
    branches = [attribute.g for attribute in upgraded.graph.node[-1].attribute]
    for graph in (upgraded.graph, *branches):
        assert [n.op_type for n in graph.node if n.op_type != "If"] == ["Constant", "Tile"]
    assert np.array_equal(run(upgraded, c=np.array(True), x=X[0]), np.tile(X[0], 2))


def test_tensors_added_to_branches_of_old_models_are_not_inputs():
    """From opset 11 on, the pads of a Pad are an input, for which the adapter adds a tensor."""

    def pad(name):
        return helper.make_node("Pad", ["x"], [name], pads=[0, 1])

    model = nested([pad("y")], lambda name: [pad("wide"), *tile_by_constants("wide", name)])
    evaluator = ReferenceEvaluator(upgrade(model), new_ops=tileops.onnx.reference.ops())
    wide, wall = evaluator.run(None, {"c": np.array(True), "x": X[0]})
    assert np.array_equal(wide, np.append(X[0], np.float32(0)))
    assert np.array_equal(wall, np.tile(wide, 2))


def test_a_constant_with_other_uses_is_kept():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[2] x) => (float[n] y, float tiles) {'
        "  tiles = Constant <value = float {2.0}> ()  axis = Constant <value = float {0.0}> ()"
        "  y = Tile (x, tiles, axis) }"
    )
    assert kinds(upgrade(model)) == ["Constant", "Constant", "Tile"]


def test_new_names_differ_from_existing_ones():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[2] y_Constant_0) => (float[n] y) {'
        "  t = Constant <value = float {2.0}> ()  a = Constant <value = float {0.0}> ()"
        "  y = Tile (y_Constant_0, t, a) }"
    )
    assert run(upgrade(model), y_Constant_0=X[0, :2]).shape == (4,)


FLATTENED = "y = Tile (x, tiles, axis)  z = Softmax (p)"
"""The converter flattens the input of this Softmax, and calls its result `z_intermediate`."""


@pytest.mark.parametrize(
    "nodes",
    [
        f"{FLATTENED}  last = Neg (z_intermediate)",
        f"{FLATTENED}  z_intermediate = Abs (x)  last = Neg (z_intermediate)",
        """y = Tile (x, tiles, axis)  z_intermediate = Abs (x)
           last = If (c) <
             then_branch = th () => (float[h, i] a) { z = Softmax (p)  a = Neg (z_intermediate) },
             else_branch = el () => (float[h, i] b) { b = Relu (x) }>""",
    ],
    ids=["an input", "a value", "a value outside a branch"],
)
def test_a_name_that_the_converter_adds_may_be_a_name_of_the_model(nodes):
    given = ", float[2, 3] z_intermediate" if "z_intermediate = " not in nodes else ""
    model = parse_model(
        f'<ir_version: 4, opset_import: ["": 5]> '
        f"g (float[2, 3] x, float[2, 1, 3] p, bool c{given}) => (float[2, 3] last) "
        f"<float tiles = {{2}}, float axis = {{1}}> {{ {nodes} }}"
    )
    feeds = {"x": X, "p": X.reshape(2, 1, 3), "c": np.array(True)}
    upgraded = upgrade(model)
    assert np.array_equal(run(upgraded, **feeds, **({"z_intermediate": X} if given else {})), -X)


def test_a_name_of_the_model_may_have_the_mark_of_its_names_inside():
    model = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> g (float[2, 3] x, float[2, 1, 3] p) => '
        "(float[a, b] last) <float tiles = {2}, float axis = {1}> "
        f"{{ k = Abs (x)  {FLATTENED}  last = Neg (k) }}"
    )
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["z~_intermediate" if name == "k" else name for name in names]
    upgraded = upgrade(model)
    assert np.array_equal(run(upgraded, x=X, p=X.reshape(2, 1, 3)), -X)
    made = {name for node in upgraded.graph.node for name in node.output}
    assert {name for name in made if "~" in name} == {"z~_intermediate"}


def test_a_branch_may_read_a_value_that_the_converter_renames():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> '
        "g (float[2, 3] x, float[1, 1, 2, 2] p, bool c) => (float[h, i, j, k] last) {"
        "  tiles = Constant <value = float {2}> ()  axis = Constant <value = float {1}> ()"
        "  y = Tile (x, tiles, axis)"
        "  u = Upsample <width_scale = 2.0, height_scale = 2.0> (p)"
        "  last = If (c) <"
        "    then_branch = th () => (float[h, i, j, k] a) { a = Neg (u) },"
        "    else_branch = el () => (float[h, i, j, k] b) { b = Relu (u) }> }"
    )
    p = np.ones((1, 1, 2, 2), np.float32)
    last = run(upgrade(model), x=X, p=p, c=np.array(True))
    assert np.array_equal(last, -np.ones((1, 1, 4, 4), np.float32))


@pytest.mark.parametrize("opset", [6, 13, 17])
def test_a_model_without_tile_1_is_copied(opset):
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[2] x, int64[1] r) => (float[n] y) '
        "{ y = Tile (x, r) }"
    )
    copy = upgrade(model)
    assert copy is not model
    assert copy.SerializeToString() == model.SerializeToString()


def test_declared_types_are_kept():
    both = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> g (float[2,3] x) => (float[r,s] y, float[p,q] x) {'
        "  two = Constant <value = float {2.0}> ()  one = Constant <value = float {1.0}> ()"
        "  y = Tile (x, two, one) }"
    )
    for model in (constant(), both):
        upgraded = upgrade(model)
        assert list(upgraded.graph.input) == list(model.graph.input)
        assert list(upgraded.graph.output) == list(model.graph.output)


def test_errors_name_what_cannot_be_converted():
    text = r"^node 'sum' .Add.: .*cannot convert it to opset 13: .*; declare the shapes of its inp"
    with pytest.raises(tileops.UnsupportedError, match=text):
        upgrade(followed_by("[sum] z = Add <axis = 0, broadcast = 1> (y, w)  last = Relu (z)"))
    text = r"^node 'flat' .Gemm.: .*cannot convert it to opset 13"
    with pytest.raises(tileops.UnsupportedError, match=text):
        upgrade(followed_by("z = Relu (y)  [flat] last = Gemm <broadcast = 1> (z, z, w)"))
    text = r"^node 'last' .Pad.: .*to opset 6: .*if there is no adapter, replace it before"
    with pytest.raises(tileops.UnsupportedError, match=text):
        upgrade(followed_by("last = Pad <paddings = [0, 0, 0, 0]> (y)", opset=1))
    text = r"^node 'last' .If.: .*cannot convert it, or a node inside it, to opset 13"
    with pytest.raises(tileops.UnsupportedError, match=text):
        upgrade(
            followed_by(
                "last = If (c) <then_branch = g1 () => (float[p, q] u) "
                "{ u = Add <broadcast = 1> (y, w) },"
                " else_branch = g2 () => (float[p, q] v) { v = Identity (y) }>"
            )
        )
    text = r"^node 'last' .LSTM.: .*: No Adapter"  # and not that an input without a name is missing
    with pytest.raises(tileops.UnsupportedError, match=text):
        upgrade(followed_by('last = LSTM <hidden_size = 2> (y, w, y, "", "", w)'))
    ancient = constant()
    ancient.ir_version = 2
    with pytest.raises(tileops.UnsupportedError, match=r"ir_version 2, .*; set it to 3 and import"):
        upgrade(ancient)


def test_an_error_says_what_is_wrong_with_the_node_that_it_names():
    """The converter itself reports the Xor, which it cannot convert to an earlier opset."""
    node = f"BatchNormalization {CONSUMED}, is_test=1, spatial=0> (p, s, b, m, v)  e = Xor (c, c)"
    model = parse_model(WITH.format(inputs=BATCH + ", bool[2] c", node=node))
    with pytest.raises(tileops.UnsupportedError, match=r"^node 'z' .Batch.*: Attribute spatial"):
        upgrade(model)


def test_the_sizes_of_outputs_are_used_to_find_what_cannot_be_converted():
    """The Add can be converted only because y is declared with its sizes."""
    model = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> '
        "g (float[2, 3] x, float[2, 6] w, float n, bool[2] c) => (float[2, 6] y, bool[2] last) {"
        "  one = Constant <value = float {1.0}> ()  y = Tile (x, n, one)"
        "  z = Add <broadcast = 1> (w, y)  last = Xor (c, c) }"
    )
    with pytest.raises(tileops.UnsupportedError, match=r"^node 'last' .Xor."):
        upgrade(model)


def test_a_tensor_of_a_type_that_the_converter_does_not_know_is_refused():
    model = parse_model(WITH.format(inputs="float[2] p", node="own.Any (p)"))
    model.graph.node[-1].attribute.append(
        helper.make_attribute("table", TensorProto(data_type=99, dims=[2], raw_data=b"ab"))
    )
    with pytest.raises(tileops.UnsupportedError, match=r"^node 'z' .Any.: .*tensor data type"):
        upgrade(model)


def test_a_node_in_a_branch_is_converted_as_its_error_says():
    def added(term):
        return parse_model(
            '<ir_version: 4, opset_import: ["": 1]> g (float[2, 3] x, bool c) => (float[a, b] y) '
            "<float[1] two = {2.0}, float[1] one = {1.0}> { y = If (c) <"
            f"then_branch = th () => (float[d, e] p) {{ {term} }},"
            "else_branch = el () => (float[f, h] q) { q = Identity (x) }> }"
        )

    text = r"declare the shapes of that node's inputs \(where one comes from outside, of a copy"
    with pytest.raises(tileops.UnsupportedError, match=text):
        upgrade(added("t = Tile (x, two, one)  p = Add <broadcast = 1> (t, two)"))
    upgraded = upgrade(
        added("t = Tile (x, two, one)  copy = Identity (two)  p = Add <broadcast = 1> (t, copy)")
    )
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    (y,) = ReferenceEvaluator(upgraded).run(None, {"x": x, "c": np.array(True)})
    assert y.tolist() == (np.concatenate([x, x], 1) + 2).tolist()


def test_external_data_are_not_followed(tmp_path):
    model = constant()
    tensor = numpy_helper.from_array(np.ones(1, np.float32), "w")
    model.graph.initializer.append(tensor)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
    path = tmp_path / "data"
    path.write_bytes(b"\0" * 4)
    kept = model.graph.initializer[0]
    kept.ClearField("raw_data")
    kept.data_location = TensorProto.EXTERNAL
    kept.external_data.add(key="location", value=path.name)
    with pytest.raises(tileops.UnsupportedError, match="initializer 'w': its data lie outside"):
        upgrade(model)


def test_external_constants_are_not_followed(tmp_path, monkeypatch):
    """Otherwise, a model could copy the bytes of any file on this machine into its graph."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(np.float32(2).tobytes())
    model = constant()
    tensor = model.graph.node[0].attribute[0].t
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret")
    with pytest.raises(tileops.UnsupportedError, match=r"\(Constant\): its data lie outside"):
        upgrade(model)


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(
    "types, error, text",
    [
        (("int32", "float", "float"), tileops.DTypeError, "the input has dtype int32"),
        (("double", "float", "double"), tileops.RepeatsTypeError, "tiles is of float32"),
        (("float", "float", "int32"), tileops.ShapeTypeError, "axis is of int32"),
    ],
)
def test_types_that_tile_1_refuses_are_refused(types, error, text, is_constant):
    data, tiles, axis = types
    inputs, nodes = f"{data}[2] x, {tiles} tiles, {axis} axis", ""
    if is_constant:
        inputs = f"{data}[2] x"
        nodes = (
            f"tiles = Constant <value = {tiles} {{2}}> () axis = Constant <value = {axis} {{0}}> ()"
        )
    model = parse_model(
        f'<ir_version: 3, opset_import: ["": 5]> g ({inputs}) => ({data}[n] y) '
        f"{{ {nodes} y = Tile (x, tiles, axis) }}"
    )
    with pytest.raises(error, match=rf"^node 'y' \(Tile\): Tile-1: {text}"):
        upgrade(model)


def test_new_names_differ_from_unused_inputs():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> '
        "g (float[2] x, float y_Constant_0) => (float[n] y) {"
        "  t = Constant <value = float {2.0}> ()  a = Constant <value = float {0.0}> ()"
        "  y = Tile (x, t, a) }"
    )
    assert run(upgrade(model), x=X[0, :2], y_Constant_0=np.float32(0)).shape == (4,)


def test_branches_may_give_one_name_to_different_constants():
    branch = (
        "{name} = {name} () => (float[d, e] r_{name}) {{"
        "  two = Constant <value = float {{{value}}}> ()  r_{name} = Tile (x, two, zero) }}"
    )
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 1]> g (bool c, float[2, 3] x) => (float[a, b] y) {'
        "  zero = Constant <value = float {0.0}> ()"
        f"  y = If (c) <{branch.format(name='then_branch', value=2.0)},"
        f"              {branch.format(name='else_branch', value=3.0)}> }}"
    )
    upgraded = upgrade(model)
    for condition, repeats in ((True, 2), (False, 3)):
        y = run(upgraded, c=np.array(condition), x=X)
        assert np.array_equal(y, np.tile(X, (repeats, 1)))


def test_declarations_of_dropped_values_are_dropped():
    """ONNX's shape inference declares the constants that held the counts."""
    model = onnx.shape_inference.infer_shapes(constant())
    counts = {
        name for node in model.graph.node if node.op_type == "Tile" for name in node.input[1:]
    }
    assert counts <= {value.name for value in model.graph.value_info}
    graph = upgrade(model).graph
    made = {name for node in graph.node for name in node.output}
    assert {value.name for value in graph.value_info} <= made


@pytest.mark.parametrize("name", ["y_Constant_0", "z_intermediate_0"])
def test_a_declaration_of_a_value_that_the_model_lacks_is_not_that_of_a_new_value(name):
    model = parse_model(WITH.format(inputs="float[2, 1, 3] p", node="Softmax (p)"))
    model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.BOOL, [7]))
    upgraded = upgrade(model)
    assert name in {n for node in upgraded.graph.node for n in node.output}
    assert not upgraded.graph.value_info


def test_a_default_with_the_name_of_a_constant_in_a_branch_is_kept():
    model = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> '
        "g (float[2, 3] x, bool c, float tiles) => (float[a, b] y) <float tiles = {3}> { y = If (c)"
        " <then_branch = th () => (float[d, e] p) { p = Tile (x, tiles, axis) },"
        "  else_branch = el () => (float[f, h] q) { q = Identity (x) }> }"
    )
    model.graph.node[0].attribute[0].g.initializer.extend(
        [numpy_helper.from_array(np.float32(2), "tiles"), numpy_helper.from_array(X[0, 1], "axis")]
    )
    upgraded = upgrade(model)
    assert [tensor.name for tensor in upgraded.graph.initializer] == ["tiles"]
    assert kinds(upgraded) == ["If"]


def test_unused_initializers_that_are_not_inputs_are_dropped():
    model = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> g (float[2] x) => (float[n] y) '
        "<float t = {2}, float a = {0}> { y = Tile (x, t, a) }"
    )
    del model.graph.input[1:]
    upgraded = upgrade(model)
    assert kinds(upgraded) == ["Constant", "Tile"]
    assert not upgraded.graph.initializer


def test_loop_bodies_with_the_same_name_keep_their_own_types():
    """The value `v` has rank 2 in one body and rank 1 in the other."""
    body = (
        "Loop (m, c, t) < body = b (int64 i, bool c_in, float k_in) "
        "=> (bool c_out, float k_out, {kind} s) {{"
        "  c_out = Identity (c_in)  k_out = Identity (k_in)"
        "  v = Identity ({data})  s = Tile (v, t, a) }} >"
    )
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> '
        "g (int64 m, bool c, float[1, 2] x, float[2] w) => (float[k, d, e] y, float[l, f] z) {"
        "  t = Constant <value = float {2.0}> ()  a = Constant <value = float {0.0}> ()"
        f"  k1, y = {body.format(kind='float[o, p]', data='x')}"
        f"  k2, z = {body.format(kind='float[q]', data='w')} }}"
    )
    upgraded = upgrade(model)
    new_ops = tileops.onnx.reference.ops()
    feeds = {"m": np.array(2), "c": np.array(True), "x": X[:1, :2], "w": X[0, :2]}
    y, z = ReferenceEvaluator(upgraded, new_ops=new_ops).run(None, feeds)
    assert y.ravel().tolist() == X[0, :2].tolist() * 4
    assert z.ravel().tolist() == X[0, :2].tolist() * 4


def test_a_branch_that_declares_a_shape_without_a_type_is_refused():
    model = onnx.parser.parse_model("""
        <ir_version: 4, opset_import: ["": 5]> g (float[2, 3] x, bool c) => (float[a, b] y) {
            y = If (c) <
                then_branch = g1 () => (float[a, b] o) {
                    tiles = Constant <value = float {2.0}> ()
                    axis = Constant <value = float {1.0}> ()
                    o = Tile (x, tiles, axis)
                },
                else_branch = g2 () => (float[a, b] p) { p = Neg (x) }
            >
        }
    """)
    declared = model.graph.node[0].attribute[0].g.output[0].type.tensor_type
    declared.elem_type = 0
    for size, dim in zip((2, 7), declared.shape.dim, strict=True):
        dim.dim_value = size
    with pytest.raises(tileops.UnsupportedError, match="shape_inference refuses the model"):
        upgrade(model)


def test_functions_with_a_tile_1_are_refused():
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 5, "f": 1]> '
        "g (float[2] x, float t, float a) => (float[n] y) { y = f.wall (x, t, a) }"
        '<domain: "f", opset_import: ["": 5]> wall (x, t, a) => (y) { y = Tile (x, t, a) }'
    )
    with pytest.raises(tileops.UnsupportedError, match="the function 'wall' has a Tile-1; inline"):
        upgrade(model)


def test_a_tile_1_in_a_branch_of_a_function_is_refused():
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 5, "f": 1]> '
        "g (bool c, float[2] x, float t, float a) => (float[n] y) { y = f.wall (c, x, t, a) }"
        '<domain: "f", opset_import: ["": 5]> wall (c, x, t, a) => (y) { y = If (c) <'
        "then_branch = th () => (float[d] p) { p = Tile (x, t, a) },"
        "else_branch = el () => (float[e] q) { q = Identity (x) }> }"
    )
    with pytest.raises(tileops.UnsupportedError, match="the function 'wall' has a Tile-1; inline"):
        upgrade(model)
    inlined = onnx.inliner.inline_local_functions(model, True)
    assert upgrade(inlined).opset_import[0].version == 13


def test_a_function_of_another_opset_is_written_for_the_models_first():
    def model(opset, tile):
        return parse_model(
            '<ir_version: 8, opset_import: ["": 5, "f": 1]> '
            "g (float[2] x, float t, float a, int64[1] r) => (float[n] z) "
            "{ y = Tile (x, t, a)  z = f.wall (y, t, a, r) }"
            f'<domain: "f", opset_import: ["": {opset}]> wall (x, t, a, r) => (y) '
            f"{{ y = Tile ({tile}) }}"
        )

    with pytest.raises(
        tileops.UnsupportedError,
        match=r"for a function of another opset, write the function for the model's opset first$",
    ):
        upgrade(model(13, "x, r"))
    with pytest.raises(RuntimeError, match="No Adapter"):
        onnx.inliner.inline_local_functions(model(13, "x, r"), True)
    upgraded = upgrade(onnx.inliner.inline_local_functions(model(5, "x, t, a"), True))
    assert [node.op_type for node in upgraded.graph.node].count("Tile") == 2


def test_functions_beside_a_tile_1_are_refused_and_others_kept():
    model = (
        '<ir_version: 8, opset_import: ["": 5, "f": 1]> '
        "g (float[2] x, float t, float a) => (float[n] y) {{ z = f.pass (x)  y = {node} }}"
        '<domain: "f", opset_import: ["f": 1]> pass (x) => (z) {{ z = f.own (x) }}'
    )
    with pytest.raises(tileops.UnsupportedError, match="has functions, which onnx"):
        upgrade(parse_model(model.format(node="Tile (z, t, a)")))
    kept = parse_model(model.format(node="Relu (z)"))
    assert upgrade(kept) == kept
    newer = parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]> '
        "g (float[2] x, int64[1] r) => (float[n] y) { y = f.wall (x, r) }"
        '<domain: "f", opset_import: ["": 13]> wall (x, r) => (y) { y = Tile (x, r) }'
        '<domain: "f", opset_import: ["": 5]> older (x) => (y) { y = Relu (x) }'
    )
    assert upgrade(newer) == newer


def test_a_tile_of_another_domain_is_kept():
    model = parse_model(WITH.format(inputs="float[2] p", node="own.Tile (p)"))
    assert ("Tile", "own") in {(node.op_type, node.domain) for node in upgrade(model).graph.node}


def test_a_malformed_model_is_refused_by_the_checker():
    model = constant()
    model.graph.node[2].output[0] = "other"
    with pytest.raises(onnx.checker.ValidationError):
        upgrade(model)


def test_a_constant_count_stays_constant_after_a_computed_one():
    """The result of a computed count has the rank of its input."""
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[2, 3] x, float t) => (float[a, b] y) {'
        "  two = Constant <value = float {2.0}> ()  one = Constant <value = float {1.0}> ()"
        "  z = Tile (x, t, one)  y = Tile (z, two, one) }"
    )
    upgraded = upgrade(model)
    assert kinds(upgraded).count("ScatterElements") == 1
    assert np.array_equal(run(upgraded, x=X, t=np.float32(3)), np.tile(X, (1, 6)))


def test_declared_shapes_of_other_values_are_used_and_kept():
    model = parse_model(WITH.format(inputs="float[2] p", node="own.Any (p)  w = Tile (z, t, one)"))
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 3]))
    upgraded = upgrade(model)
    assert "ScatterElements" not in kinds(upgraded)
    assert list(upgraded.graph.value_info) == list(model.graph.value_info)


@pytest.mark.parametrize("ir_version, is_tensor", [(3, False), (4, True)])
def test_constants_of_adapters_fit_the_ir_version(ir_version, is_tensor):
    """Only inputs of old models may have initializers: those stay, and nothing is added to them."""
    model = parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": 5]> '
        "g (float[2, 3] x, float tiles) => (float[a, b] y) <float tiles = {3}> {"
        "  one = Constant <value = float {1.0}> ()"
        "  wide = Pad <pads = [0, 1, 0, 1]> (x)  y = Tile (wide, tiles, one) }"
    )
    upgraded = upgrade(model)
    added = [tensor.name for tensor in upgraded.graph.initializer if tensor.name != "tiles"]
    assert bool(added) == is_tensor
    wide = np.pad(X, ((0, 0), (1, 1)))
    assert np.array_equal(run(upgraded, x=X), np.tile(wide, (1, 3)))


BATCH = "float[1,2,4] p, float[2] s, float[2] b, float[2] m, float[2] v"
CONSUMED = "<consumed_inputs=[0,0,0,1,1]"
ANY = "float[3,3,3] p"
WITH = (
    '<ir_version: 3, opset_import: ["": 5, "own": 1]> g (float[2, 3] x, {inputs}) '
    "=> (float[a, b] y) {{"
    "  t = Constant <value = float {{2.0}}> ()  one = Constant <value = float {{1.0}}> ()"
    "  y = Tile (x, t, one)  z = {node} }}"
)


@pytest.mark.parametrize(
    ("inputs", "node", "change"),
    [
        ("float[1,3,4,4] p, float[3] q", "Add <broadcast=1, axis=1> (p, q)", "broadcasting"),
        ("float[3,3,3] p, float[3] q", "Div <broadcast=1, axis=1> (p, q)", "broadcasting"),
        ("float[3,4,4] p, float[4,4] q", "Add <broadcast=1, axis=-2> (p, q)", "broadcasting"),
        ("float[2,2,2] p", "Hardmax (p)", "flattens"),
        (ANY + ", float[3] q", "own.Any (p)  w = Add <broadcast=1, axis=1> (z, q)", "broadcasting"),
        (ANY, "own.Any (p)  w = Add <broadcast=1, axis=1> (p, z)", "broadcasting"),
        (ANY, "own.Any (p)  w = Hardmax (z)", "flattens"),
        ("float[1,2,2] p, float[2] q", "PRelu (p, q)", "a slope for each channel"),
        ("float[1,2,2] p, float[2,2] q", "PRelu (p, q)", "a slope for each channel"),
        ("float p, float[1] q", "PRelu (p, q)", "axes of its slope"),
        (ANY + ", float[2] q", "own.Any (p)  w = PRelu (z, q)", "a slope for each channel"),
        (ANY, "own.Any (p)  w = PRelu (p, z)", "a slope for each channel"),
        (ANY + ", float[1,1] q", "own.Any (p)  w = PRelu (z, q)", "axes of its slope"),
        ("float[1,1,4,2] p", "Upsample <width_scale=1.0, height_scale=1.25> (p)", "samples"),
        ("float[2] p", "Dropout (p)", "no longer drops"),
        ("float[2] p", "Dropout <ratio=0.25> (p)", "no longer drops"),
        (BATCH, f"BatchNormalization {CONSUMED}> (p, s, b, m, v)", "trains"),
        (BATCH, f"BatchNormalization {CONSUMED}, epsilon=0.5> (p, s, b, m, v)", "trains"),
        (
            BATCH,
            f"Abs (p)  n, o, r, q, w = BatchNormalization {CONSUMED}, is_test=1> (p, s, b, m, v)",
            "trains",
        ),
        (
            "float[1,1,2,2] p",
            'Upsample <mode="bilinear", height_scale=2.0, width_scale=2.0> (p)',
            "samples",
        ),
        ("float[1,1,2,4] p", "Upsample <width_scale=1.25, height_scale=1.0> (p)", "samples"),
        ("double[2] p", "Clip <min=0.0> (p)", "those of float32, and .* is float64"),
        ("float16[2] p", "Clip (p)", "those of float32, and .* is float16"),
        ("double[2] p", "Pad <pads=[1,1]> (p)", "those of float32, and .* is float64"),
        (ANY, "own.Any (p)  w = Clip <max=1.0> (z)", "its input is not known; declare it"),
        (
            "float[1,1,3,3] p, float[1,1,2,2] q",
            "ConvTranspose <strides=[2,2], output_shape=[5,5]> (p, q)",
            "the larger half changes sides",
        ),
        ("float[2] p", "own.Both <body = b () => (float[2] r) { r = Abs (p) }> (p)", "graphs"),
    ],
)
def test_nodes_whose_meaning_the_converter_changes_are_refused(inputs, node, change):
    model = parse_model(WITH.format(inputs=inputs, node=node))
    with pytest.raises(tileops.UnsupportedError, match=f"would change what it means: .*{change}"):
        upgrade(model)


def test_a_node_of_another_domain_that_holds_several_graphs_is_refused():
    model = parse_model(WITH.format(inputs="float[2] p", node="own.Both (p)"))
    (node,) = (n for n in model.graph.node if n.domain == "own")
    body = onnx.parser.parse_graph("b () => (float[2] r) { r = Abs (p) }")
    node.attribute.append(helper.make_attribute("bodies", [body, body]))
    with pytest.raises(tileops.UnsupportedError, match="the graphs inside it stay as they are"):
        upgrade(model)


@pytest.mark.parametrize(
    ("inputs", "node"),
    [
        ("float[3,4,4] p, float[3] q", "Add <broadcast=1, axis=0> (p, q)"),
        ("float[3,4,4] p, float[4] q", "Add <broadcast=1, axis=2> (p, q)"),
        ("float[3,4,4] p, float[4,4] q", "Add <broadcast=1> (p, q)"),
        ("float[3,4,4] p, float[3,4,4] q", "Add <axis=1> (p, q)"),
        ("float[3,4] p", "Hardmax (p)"),
        ("float[2,3,4] p", "Hardmax <axis=2> (p)"),
        ("float[1,2,2] p, float[1] q", "PRelu (p, q)"),
        ("float[1,2,2] p, float[1,1,1] q", "PRelu (p, q)"),
        ("float[1,2,4,5] p, float[2,1,1] q", "PRelu (p, q)"),
        ("float[1] q, " + ANY, "own.Any (p)  w = PRelu (z, q)"),
        ("float[1,3,2,2] p, float[1] q", "Mul <broadcast=1, axis=1> (p, q)"),
        ("float[3,4] p, int64[2] q", "Gather <axis=1> (p, q)"),
        ("float[1,1,4,2] p", "Upsample <width_scale=2.0, height_scale=1.0> (p)"),
        ("float[2] p", "Dropout <is_test=1> (p)"),
        (BATCH, f"BatchNormalization {CONSUMED}, is_test=1> (p, s, b, m, v)"),
        (BATCH, f"BatchNormalization {CONSUMED}, is_test=2> (p, s, b, m, v)"),
        ("float[3,2] p, float[2] q", "PRelu (p, q)"),
        ("float[3,2] p", "Clip <min=0.0> (p)"),
        ("float[3,2] p", "Pad <pads=[1,1,0,0], value=2.0> (p)"),
        ("double[3,2] p", 'Pad <mode="reflect", pads=[1,1,0,0]> (p)'),
        ("float16[3,2] p", 'Pad <mode="edge", pads=[1,1,0,0]> (p)'),
        ("float[1,1,3,3] p, float[1,1,2,2] q", "ConvTranspose <pads=[1,1,0,0]> (p, q)"),
        ("float[3,2] p", "own.Both (p)"),
        ("float[3,2] p", "own.Constant (p)"),
    ],
)
def test_nodes_that_keep_their_meaning_are_converted(inputs, node):
    upgraded = upgrade(parse_model(WITH.format(inputs=inputs, node=node)))
    assert upgraded.opset_import[0].version == 13


def test_defaults_that_changed_are_written_out():
    node = "Selu (p)"
    for given, expected in (("", [1.6732, 1.0507]), ("<alpha = 2.0>", [2.0, 1.0507])):
        model = parse_model(
            WITH.format(inputs="float[2] p", node=node.replace(" ", f" {given} ", 1))
        )
        (selu,) = (node for node in upgrade(model).graph.node if node.op_type == "Selu")
        found = {attribute.name: attribute.f for attribute in selu.attribute}
        assert [found["alpha"], found["gamma"]] == pytest.approx(expected, abs=1e-7)


def test_no_defaults_are_written_into_nodes_of_another_domain():
    model = parse_model("""
        <ir_version: 8, opset_import: ["": 5, "other": 1]>
        g (float[2, 3] x) => (float[2, 6] z) {
            tiles = Constant <value = float {2.0}> ()
            axis = Constant <value = float {1.0}> ()
            y = Tile (x, tiles, axis)
            z = other.Selu (y)
        }
    """)
    (selu,) = (node for node in upgrade(model).graph.node if node.op_type == "Selu")
    assert not selu.attribute


def test_a_default_of_another_shape_than_its_input_is_refused():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[2] x, float[1] t) => (float[n] y) '
        "<float t = {2}> { zero = Constant <value = float {0.0}> ()  y = Tile (x, t, zero) }"
    )
    del model.graph.initializer[0].dims[:]
    onnx.checker.check_model(model)
    with pytest.raises(tileops.UnsupportedError, match=r"inputs of the model .*; correct the"):
        upgrade(model)


def test_an_input_without_a_type_is_refused():
    model = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> g (float[2] x, float t) => (float[n] y) '
        "{ zero = Constant <value = float {0.0}> ()  y = Tile (x, t, zero) }"
    )
    model.graph.input[1].type.tensor_type.elem_type = 0
    with pytest.raises(tileops.UnsupportedError, match="refuses the upgraded model"):
        upgrade(model)


@pytest.mark.parametrize("kind", ["float", "double", "int64"])
def test_an_input_of_unknown_type_takes_counts_of_every_type_of_tile_1(kind):
    """The results of nodes from other domains have unknown types."""
    text = (
        '<ir_version: 7, opset_import: ["": 5, "other": 1]> g (float[2] x) => (float[n] y) {'
        f"  tiles = Constant <value = {kind} {{2}}> ()  axis = Constant <value = {kind} {{0}}> ()"
        "  made = other.Make (x)  y = Tile (made, tiles, axis) }"
    )
    assert kinds(upgrade(parse_model(text)))[-1] == "Tile"
    with pytest.raises(tileops.RepeatsError, match="tiles is of int32; Tile-1 takes float16 or"):
        upgrade(parse_model(text.replace(f"{kind} {{2}}", "int32 {2}")))


def test_values_that_are_not_models_are_refused():
    with pytest.raises(tileops.DTypeError, match="the model is NoneType; pass an onnx"):
        upgrade(None)


def test_an_input_of_a_body_hides_a_constant_of_its_name():
    model = parse_model(
        '<ir_version: 4, opset_import: ["": 5]> '
        "g (float[2, 3] x, int64 n, bool c, float t) => (float last, float[k, a, b] y) {"
        "  tiles = Constant <value = float {5.0}> ()  axis = Constant <value = float {1.0}> ()"
        "  last, y = Loop (n, c, t) < body = b (int64 i, bool c_in, float tiles) "
        "=> (bool c_out, float t_out, float[f, g] s) {"
        "    c_out = Identity (c_in)  t_out = Identity (tiles)  s = Tile (x, tiles, axis) } > }"
    )
    upgraded = upgrade(model)
    body = upgraded.graph.node[-1].attribute[0].g
    assert "ScatterElements" in [node.op_type for node in body.node]


def test_constants_that_adapters_add_are_nodes_in_an_old_model():
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 2]> g (float[2, 3] x) => (float[a, b] y) {'
        "  two = Constant <value = float {2.0}> ()  one = Constant <value = float {1.0}> ()"
        "  padded = Pad <pads = [0, 1, 0, 1]> (x)  y = Tile (padded, two, one) }"
    )
    padded = np.pad(X, ((0, 0), (1, 1)))
    assert np.array_equal(run(upgrade(model), x=X), np.tile(padded, (1, 2)))


@pytest.mark.parametrize("declared", ["float[2, 3]", "float[6]", "double[a, b]"])
def test_a_wrong_declaration_is_refused(declared):
    model = parse_model(
        f'<ir_version: 4, opset_import: ["": 5]> g (float[2, 3] x) => ({declared} y) {{'
        "  two = Constant <value = float {2.0}> ()  one = Constant <value = float {1.0}> ()"
        "  y = Tile (x, two, one) }"
    )
    with pytest.raises(tileops.UnsupportedError, match=r"onnx\.checker|onnx\.shape_inference"):
        upgrade(model)


def test_undefined_types_reserved_domains_and_broken_names_are_refused():
    strange = constant()
    strange.graph.input[0].type.tensor_type.elem_type = 999
    with pytest.raises(tileops.UnsupportedError, match="'x' is declared of type 999"):
        upgrade(strange)
    foreign = constant()
    foreign.opset_import.append(helper.make_opsetid("tileops.upgrade", 1))
    with pytest.raises(tileops.UnsupportedError, match=r"nodes of the domain 'tileops\.upgrade'"):
        upgrade(foreign)
    nameless = onnx.load_from_string(
        constant().SerializeToString().replace(b"tiles", b"t\xff\xfees")
    )
    with pytest.raises(tileops.UnsupportedError, match="is not text"):
        upgrade(nameless)


@pytest.mark.parametrize("depth", [34, 60, 2000])
def test_graphs_nested_too_deeply_for_a_file_are_refused(depth):
    """The checker serialises the model, cannot read it, and says why only in some versions."""
    model = constant()
    graph = model.graph
    for _ in range(depth):
        branch = graph.node.add(op_type="If", output=["z"]).attribute.add(
            name="then_branch", type=onnx.AttributeProto.GRAPH
        )
        graph = branch.g
        graph.name = "inner"
    with pytest.raises(tileops.UnsupportedError, match="inside 34"):
        upgrade(model)

"""The backend interface: ONNX's own suite, and what a model may contain."""

import copy
import pickle
import unittest
import warnings

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

import reference
import tileops
import variants
from memory import peak_of
from tileops import _plan

SUITE = (
    *("test_tile", "test_tile_precomputed", "test_expand_dim_changed", "test_expand_dim_unchanged"),
    *(f"test_expand_shape_model{number}" for number in range(1, 5)),
)


@pytest.fixture(scope="session")
def backend(request):
    return tileops.onnx.backend.for_library(request.config.getoption("--library"))


@pytest.fixture(scope="session")
def suite(backend):
    """Generate ONNX's own tests for this backend, without the warnings that ONNX raises here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test import BackendTest

        return BackendTest(backend, __name__).test_cases


@pytest.mark.parametrize("name", SUITE)
def test_the_backend_passes_the_suite_of_onnx(backend, suite, name):
    devices = [device for device in ("cpu", "cuda") if backend.supports_device(device.upper())]
    assert devices
    for device in devices:
        (case,) = (case for case in suite.values() if hasattr(case, f"{name}_{device}"))
        result = unittest.TestResult()
        case(f"{name}_{device}").run(result)
        assert (result.testsRun, result.skipped, result.errors, result.failures) == (1, [], [], [])


CHAIN = """
<ir_version: 8, opset_import: ["": 17]>
chain (float[a, b] x, int64[2] repeats) => (float[c, d] tiled, float[e, f, g] y, int64[3] shape)
<int64[1] front = {2}>
{
    tiled = Tile (x, repeats)
    same = Identity (tiled)
    own = Shape (same)
    shape = Concat <axis = 0> (front, own)
    y = Expand (same, shape)
}
"""


def feed(rng):
    bits = variants.random_bits(rng, "float32", 4, (2, 3))
    return bits, bits.view("f4")


def test_a_graph_with_constants_feeding_nodes_and_several_outputs(backend, rng):
    bits, x = feed(rng)
    tiled, y, shape = backend.run_model(parse_model(CHAIN), [x, np.array([2, 1])])
    expected = reference.tiled(bits, (2, 1))
    assert tiled.tobytes() == expected.tobytes()
    assert y.tobytes() == reference.expanded(expected, (2, 4, 3)).tobytes()
    assert shape.tolist() == [2, 4, 3]
    assert all(type(value) is np.ndarray for value in (tiled, y, shape))


def test_arrays_of_the_library_stay_in_it(xp, rng):
    backend = tileops.onnx.backend.for_library(xp.library)
    bits, _ = feed(rng)
    x = xp.make(bits, "float32")
    feeds = {"x": x, "repeats": xp.numbers(2, 1)}
    tiled, y, shape = backend.prepare(parse_model(CHAIN)).run(feeds)
    assert xp.is_own(tiled)
    assert xp.is_own(y)
    assert xp.place(tiled) == xp.place(x)
    assert xp.bits(tiled).tobytes() == reference.tiled(bits, (2, 1)).tobytes()
    assert xp.is_own(shape)


def test_arrays_of_another_library_are_refused(backend):
    class Other:
        shape = (1, 1)

    with pytest.raises(tileops.DTypeError, match=r"input 'x' is .*Other; pass an array of numpy"):
        backend.run_model(parse_model(CHAIN), [Other(), np.array([1, 1])])


@pytest.mark.library("array_api_strict", "torch", "jax", "dask", "cupy")
def test_arrays_of_the_library_are_refused_by_the_backend_of_numpy(xp, rng):
    x = xp.make(feed(rng)[0], "float32")
    with pytest.raises(tileops.DTypeError, match=r"^input 'x' is .*; pass an array of numpy$"):
        tileops.onnx.backend.for_library("numpy").run_model(
            parse_model(CHAIN), [x, np.array([2, 1])]
        )


def test_initializers_of_old_models_are_inputs_that_may_be_left_out(backend):
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 7]> '
        "g (float[2] x, int64[1] repeats) => (float[n] y) <int64[1] repeats = {3}> "
        "{ y = Tile (x, repeats) }"
    )
    x = np.array([1, 2], np.float32)
    assert backend.run_model(model, [x])[0].shape == (6,)
    assert backend.run_model(model, [x, np.array([2])])[0].shape == (4,)
    assert backend.run_model(model, {"x": x, "repeats": np.array([1])})[0].shape == (2,)


def test_the_opset_selects_tile_1(backend):
    model = (
        '<ir_version: 3, opset_import: ["": 5]> '
        "g (float[2] x, float tiles, float axis) => (float[n] y) { y = Tile (x, tiles, axis) }"
    )
    x = np.array([1, 2], np.float32)
    old = backend.run_model(parse_model(model), [x, np.array(3, "f4"), np.array(-1, "f4")])
    assert old[0].tolist() == [1, 2] * 3
    with pytest.raises(tileops.RepeatsError, match=r"node 'y' \(Tile\): Tile-1: tiles is 2\.5"):
        backend.run_model(parse_model(model), [x, np.array(2.5, "f4"), np.array(0, "f4")])


def test_counts_of_tile_1_may_be_integers(backend):
    model = parse_model(
        '<ir_version: 3, opset_import: ["": 5]> '
        "g (float[2] x, int64 tiles, int64 axis) => (float[n] y) { y = Tile (x, tiles, axis) }"
    )
    prepared = backend.prepare(model)
    x = np.array([1, 2], np.float32)
    assert prepared.run([x, np.array(3), np.array(0)])[0].tolist() == [1, 2] * 3


def test_a_result_may_be_declared_without_a_type(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[n] y) '
        "<int64[1] two = {2}> { y = Tile (x, two) }"
    )
    model.graph.value_info.append(onnx.ValueInfoProto(name="y"))
    model.graph.value_info[0].type.tensor_type.elem_type = 0
    assert backend.prepare(model).run([np.ones(2, np.float32)])[0].shape == (4,)


@pytest.mark.library("numpy")
def test_a_value_is_freed_after_its_last_use(backend):
    nodes = "".join(f"v{i + 1} = Tile (v{i}, one)  " for i in range(6))
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (uint8[n] v0) => (uint8[m] v6) '
        f"<int64[1] one = {{1}}> {{ {nodes} }}"
    )
    prepared, x = backend.prepare(model), np.ones(2**20, np.uint8)
    prepared.run([x])
    assert peak_of(lambda: prepared.run([x])) < 2.5 * x.nbytes


def test_results_share_no_memory(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (float[2] x) => (float[2] same, float[n] tiled, float[n] again, int64[1] two) "
        "<int64[1] two = {2}> "
        "{ same = Identity (x)  tiled = Tile (x, two)  again = Identity (tiled) }"
    )
    x = np.array([1, 2], np.float32)
    prepared = backend.prepare(model)
    results = prepared.run([x])
    for i, one in enumerate(results):
        assert not np.shares_memory(one, x)
        assert not any(np.shares_memory(one, other) for other in results[:i])
    if results[-1].flags.writeable:
        results[-1][:] = 7
    assert prepared.run([x])[-1].tolist() == [2]


@pytest.mark.library("numpy")
def test_a_model_that_runs_again_is_not_planned_again(backend):
    prepared = backend.prepare(
        parse_model(
            '<ir_version: 8, opset_import: ["": 13]> f (int64[2] x) => (int64[2] y) '
            "{ y = Identity (x) }"
        )
    )
    prepared.run([np.arange(2)])
    before = _plan.cached_plan.cache_info().misses
    prepared.run([np.arange(2)])
    assert _plan.cached_plan.cache_info().misses == before


def test_constants_in_every_form_are_read(backend):
    for form, kind, expected in (
        ("value = int64[2] {2, 1}", "int64", [2, 1]),
        ("value_ints = [2, 1]", "int64", [2, 1]),
        ("value_int = 2", "int64", 2),
        ("value_float = 0.5", "float", 0.5),
        ("value_floats = [0.5]", "float", [0.5]),
        ('value_string = "a"', "string", "a"),
        ('value_strings = ["a", "b"]', "string", ["a", "b"]),
    ):
        model = parse_model(
            f'<ir_version: 8, opset_import: ["": 13]> g () => ({kind}[n] y) '
            f"{{ c = Constant <{form}> ()  y = Identity (c) }}"
        )
        (result,) = backend.run_model(model, [])
        assert result.tolist() == expected


def test_other_attributes_of_a_constant_are_ignored(backend):
    """ONNX's checker accepts any attribute whose name begins with two underscores."""
    for internal in (3, "text", onnx.numpy_helper.from_array(np.array([3, 3]))):
        node = helper.make_node("Constant", [], ["y"], __note=internal)
        with pytest.raises(tileops.UnsupportedError, match="does not have exactly one value"):
            backend.run_node(node, [])
        node.attribute.append(helper.make_attribute("value_ints", [1, 2]))
        assert backend.run_node(node, [])[0].tolist() == [1, 2]


def test_constants_are_read_before_a_run(backend, monkeypatch):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g () => (int64[n] y, int64[1] c) '
        "{ [three] c = Constant <value_ints = [3]> ()  y = Tile (c, c) }"
    )
    prepared = backend.prepare(model)
    monkeypatch.delattr(tileops.onnx._nodes, "read_tensor")
    for _ in range(2):
        assert [result.tolist() for result in prepared.run([])] == [[3, 3, 3], [3]]


def test_a_constant_that_cannot_be_read_is_refused_before_a_run(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g () => (string[n] y) '
        '{ [word] y = Constant <value_strings = ["word"]> () }'
    )
    model.graph.node[0].attribute[0].strings[0] = b"\xff"
    refused(backend, model, r"^node 'word' .Constant.: value: its data cannot be read: Unicode")


@pytest.mark.parametrize(
    "opset, graph, text",
    [
        (
            13,
            "(float[2] x, int64[1] r) => (double[n] y) { y = Tile (x, r) }",
            r"^'y' is declared as tensor.double., but is tensor.float., because node 'y' .Tile.",
        ),
        (
            13,
            "(float[2] x) => (int64[1] y) <double[2] z> { z = Identity (x) y = Shape (z) }",
            r"^'z' is declared as tensor.double., but is tensor.float., because node 'z' ",
        ),
        (
            13,
            "(float[2] x) => (int32[1] y) { y = Shape (x) }",
            r"^'y' is declared as tensor.int32., but is tensor.int64., because node 'y' .Shape.",
        ),
        (
            13,
            "(float[2] x) => (seq(float[2]) y) { y = Identity (x) }",
            r"^'y' is declared as sequence_type, but is tensor.float., because node 'y' .Identity.",
        ),
        (
            8,
            "(bfloat16[2] x, int64[1] r) => (bfloat16[n] y) { y = Tile (x, r) }",
            r"'y' .Tile.: its input 'x' is tensor.bfloat16.; Tile of opset 8 has .* that has it$",
        ),
        (
            5,
            "(int32[2] x, float t, float a) => (int32[n] y) { y = Tile (x, t, a) }",
            r"its input 'x' is tensor.int32.; Tile of opset 5 has tensor.double., tensor.float., ",
        ),
        (
            13,
            "(int4[2] x, int64[1] r) => (int4[n] y) { y = Tile (x, r) }",
            r"^node 'y' .Tile.: its input 'x' is tensor.int4.; Tile of .*\); convert it$",
        ),
        (
            13,
            "(float[2] x, int32[1] r) => (float[n] y) { y = Tile (x, r) }",
            r"'y' .Tile.: its input 'r' is tensor.int32.; Tile of opset 13 has .*; convert it$",
        ),
        (
            12,
            "(bfloat16[2] x) => (bfloat16[2] y) { y = Identity (x) }",
            r"^node 'y' .Identity.: its input 'x' is tensor.bfloat16.; Identity of opset 12 has",
        ),
        (
            8,
            "() => (int64[2] y) { y = Constant <value = int64[2] {3, 2}> () }",
            r"^node 'y' .Constant.: it makes .*; make it an initializer, or import an opset",
        ),
        (
            13,
            "(float[2] x, double[2] z) => (float[n] y) { y = Concat <axis = 0> (x, z) }",
            r"^node 'y' .Concat.: the inputs are tensor.float., tensor.double.; they must be of",
        ),
    ],
)
def test_wrong_types_are_refused_before_a_run(backend, opset, graph, text):
    model = parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')
    onnx.checker.check_model(model)
    with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
        onnx.checker.check_model(model, full_check=True)
    with pytest.raises(tileops.DTypeError, match=text):
        backend.prepare(model)


def test_a_constant_of_a_type_that_its_opset_lacks_is_refused(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 12]> g () => (float[2] y) '
        "{ y = Constant <value = float[2] {1, 2}> () }"
    )
    value = model.graph.node[0].attribute[0].t
    value.CopyFrom(helper.make_tensor("v", TensorProto.BFLOAT16, [2], [1, 2]))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.BFLOAT16
    with pytest.raises(tileops.DTypeError, match=r"'y' .Constant.: it makes tensor.bfloat16.; C"):
        backend.prepare(model)
    value.data_type = 99
    with pytest.raises(onnx.checker.ValidationError):
        backend.prepare(model)


def test_an_input_that_is_an_output_has_one_type(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (double[2] x) { }'
    )
    text = r"^'x' is declared as tensor.double., but is tensor.float.; declare that$"
    with pytest.raises(tileops.DTypeError, match=text):
        backend.prepare(model)


def test_a_node_may_take_a_value_twice(backend):
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    x = np.array([1, 2])
    assert backend.run_node(node, [x, x])[0].tolist() == [1, 2, 1, 2]
    with pytest.raises(tileops.ShapeError, match=r"is 3; pass 2: x \(input 0\), x \(input 1\)$"):
        backend.run_node(node, [x, x, x])


def test_concat_joins_text_of_any_width(backend):
    node = helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
    (y,) = backend.run_node(node, [np.array(["a"]), np.array(["long"], object)])
    assert y.tolist() == ["a", "long"]
    with pytest.raises(tileops.DTypeError, match="dtypes int32, int64; they must be the same"):
        backend.run_node(node, [np.ones(1, "i4"), np.ones(1, "i8")])
    with pytest.raises(tileops.ShapeError, match=r"\(Concat\): the inputs have shapes .* axis 0"):
        backend.run_node(node, [np.ones((1, 2)), np.ones((1, 3))])


@pytest.mark.parametrize(
    "ends, expected",
    [({}, [2, 3]), ({"start": 1}, [3]), ({"end": -1}, [2]), ({"start": -9, "end": 9}, [2, 3])],
)
def test_shape_respects_start_and_end(backend, ends, expected):
    node = helper.make_node("Shape", ["x"], ["y"], **ends)
    assert backend.run_node(node, [np.zeros((2, 3))])[0].tolist() == expected


def test_the_shape_of_a_scalar_is_of_int64(backend):
    node = helper.make_node("Shape", ["x"], ["y"])
    (y,) = backend.run_node(node, [np.zeros(())])
    assert (y.dtype, y.shape) == (np.int64, (0,))


def test_inputs_are_a_list_or_a_tuple_and_outputs_a_tuple(backend):
    given = [np.ones((1, 1), np.float32), np.array([2, 1])]
    for inputs in (given, tuple(given)):
        outputs = backend.prepare(parse_model(CHAIN)).run(inputs)
        assert isinstance(outputs, tuple)
        assert outputs[0].shape == (2, 1)


def test_an_error_of_a_single_node_names_its_input(backend):
    with pytest.raises(tileops.DTypeError, match=r"^input 'x' is int; pass an array"):
        backend.run_node(helper.make_node("Identity", ["x"], ["y"]), [3])


def test_a_single_node_runs_in_a_given_opset(backend):
    node = helper.make_node("Tile", ["x", "repeats"], ["y"], name="wall")
    inputs = [np.array([1, 2], np.float32), np.array([2])]
    assert backend.run_node(node, inputs)[0].tolist() == [1, 2, 1, 2]
    assert backend.run_node(node, inputs, opset_version=6)[0].tolist() == [1, 2, 1, 2]
    with pytest.raises(tileops.RepeatsError, match=r"node 'wall' \(Tile\): Tile-13: repeats has 2"):
        backend.run_node(node, [inputs[0], np.array([2, 2])])


# What is refused


def test_an_unsupported_node_is_named(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) '
        "{ [rectify] y = Relu (x) }"
    )
    with pytest.raises(
        tileops.UnsupportedError, match=r"node 'rectify' \(Relu\): this backend does not run Relu"
    ):
        backend.prepare(model)
    assert not backend.is_compatible(model)
    assert backend.is_compatible(parse_model(CHAIN))
    foreign = helper.make_node("Tile", ["x", "r"], ["y"], domain="com.example")
    with pytest.raises(
        tileops.UnsupportedError, match=r"'y' \(Tile\): .* does not run com\.example\.Tile of"
    ):
        backend.run_node(foreign, [np.ones(1), np.ones(1, int)])


def test_an_expand_before_its_first_version_is_refused(backend):
    node = helper.make_node("Expand", ["x", "shape"], ["y"])
    with pytest.raises(
        tileops.UnsupportedError, match="opset 7 has no Expand, whose first version is 8"
    ):
        backend.run_node(node, [np.ones(1), np.ones(1, int)], opset_version=7)


def test_a_malformed_model_is_refused_by_the_checker(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 5]> g (float[2] x, int64[1] r) => (float[n] y) '
        "{ y = Tile (x, r) }"
    )
    assert not backend.is_compatible(model)
    with pytest.raises(onnx.checker.ValidationError):
        backend.prepare(model)
    for wrong in (model.SerializeToString(), None):
        with pytest.raises(tileops.DTypeError, match=r"the model is .*; pass an onnx\.ModelProto"):
            backend.prepare(wrong)


def test_max_bytes_reaches_the_nodes(backend, rng):
    _, x = feed(rng)
    model, repeats = parse_model(CHAIN), np.array([1, 1])
    assert backend.run_model(model, [x, repeats], max_bytes=48)[1].nbytes == 48
    with pytest.raises(tileops.OutputTooLargeError, match=r"node 'y' \(Expand\): .*max_bytes=47"):
        backend.run_model(model, [x, repeats], max_bytes=47)
    with pytest.raises(tileops.OutputTooLargeError, match=r"node 'tiled' \(Tile\): .*max_bytes"):
        backend.run_model(model, [x, np.array([2**40, 1])], max_bytes=2**30)
    with pytest.raises(tileops.OutputTooLargeError, match=r"2\*\*63-1"):
        backend.run_model(model, [x, np.array([2**62, 2**62])])


def test_max_bytes_limits_concat(backend):
    """Otherwise, a model of n nodes could ask for 2**n bytes without a Tile."""
    nodes = [helper.make_node("Concat", [f"v{i}"] * 2, [f"v{i + 1}"], axis=0) for i in range(40)]
    vector = [helper.make_tensor_value_info(n, TensorProto.INT64, [None]) for n in ("v0", "v40")]
    graph = helper.make_graph(nodes, "doubling", vector[:1], vector[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(tileops.OutputTooLargeError, match=r"'v8' \(Concat\): .*2048 bytes.*1024"):
        backend.run_model(model, [np.array([1])], max_bytes=1024)


def external(name, path):
    tensor = numpy_helper.from_array(np.array([2]), name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=str(path))
    return tensor


def test_external_data_are_not_followed(backend, tmp_path):
    path = tmp_path / "secret"
    np.array([2]).tofile(path)
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[n] y) '
        "<int64[1] two = {2}> { y = Tile (x, two) }"
    )
    model.graph.initializer[0].CopyFrom(external("two", path))
    with pytest.raises(tileops.UnsupportedError, match="initializer 'two': its data lie outside"):
        backend.prepare(model)
    node = helper.make_node("Constant", [], ["c"], value=external("c", path))
    with pytest.raises(tileops.UnsupportedError, match=r"node 'c' \(Constant\): its data lie outs"):
        backend.run_node(node, [])


def test_sparse_tensors_and_sequences_are_refused(backend):
    dense = numpy_helper.from_array(np.array([1.0]), "s")
    where = numpy_helper.from_array(np.array([0]), "i")
    sparse = helper.make_sparse_tensor(dense, where, [3])
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    with pytest.raises(
        tileops.UnsupportedError, match=r"node 'c' \(Constant\): its value is sparse"
    ):
        backend.run_node(node, [])
    model = parse_model(CHAIN)
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(tileops.UnsupportedError, match="initializer 's' is sparse"):
        backend.prepare(model)
    model = parse_model(CHAIN)
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    model.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(element))
    with pytest.raises(tileops.UnsupportedError, match="input 'x' is declared as sequence_type"):
        backend.prepare(model)


def test_inputs_must_match_what_the_model_declares(backend, rng):
    _, x = feed(rng)
    model, two = parse_model(CHAIN), np.array([1, 1])
    for inputs, error, text in (
        ([x], tileops.ShapeError, "number of inputs is 1; pass 2: x, repeats"),
        ({"x": x}, tileops.ShapeError, "the inputs are named x; pass 2: x, repeats"),
        ({"x": x, "repeats": two, "z": x}, tileops.ShapeError, "named x, repeats, z"),
        (x, tileops.DTypeError, r"the inputs are numpy\.ndarray; pass a list"),
        ([x.tolist(), two], tileops.DTypeError, "input 'x' is .*list"),
        ([x.astype("f8"), two], tileops.DTypeError, "'x' has dtype float64; .* float32"),
        (
            [x, two.astype("i4")],
            tileops.DTypeError,
            "'repeats' has dtype int32; .* int64; convert it, or pass a NumPy array of that dtype$",
        ),
        ([x[0], two], tileops.ShapeError, r"'x' has shape \(3,\); the model declares \(a, b\)"),
        ([x, two[:1]], tileops.ShapeError, r"'repeats' has shape \(1,\); .* declares \(2,\)"),
    ):
        with pytest.raises(error, match=text):
            backend.run_model(model, inputs)


def test_a_type_that_the_library_lacks_is_refused(request, backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (string[2] x, int64[1] r) => (string[n] y) { y = Tile (x, r) }"
    )
    feeds = [np.array(["a", "b"], object), np.array([2])]
    if request.config.getoption("--library") in {"numpy", "dask"}:
        assert backend.run_model(model, feeds)[0].tolist() == ["a", "b", "a", "b"]
    else:
        with pytest.raises(tileops.DTypeError, match=r"node 'y' \(Tile\): .*object"):
            backend.run_model(model, feeds)


@pytest.mark.library("numpy", "torch", "jax")
def test_bfloat16_keeps_its_bits(backend):
    import ml_dtypes

    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (bfloat16[2] x, int64[1] r) => (bfloat16[n] y) { y = Tile (x, r) }"
    )
    x = np.array([0x7F81, 0x8000], np.uint16).view(ml_dtypes.bfloat16)
    (y,) = backend.run_model(model, [x, np.array([2])])
    assert y.dtype == x.dtype
    assert y.view(np.uint16).tolist() == [0x7F81, 0x8000] * 2


@pytest.mark.library("jax")
def test_objects_that_stand_for_arrays_are_inputs(backend):
    """Parameters of Flax have the method of JAX's protocol, and may have no dtype or shape."""
    import jax

    class Parameter:
        def __init__(self, values):
            self.values = values

        def __jax_array__(self):
            return self.values

    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (float[1, 2] x, int64[2] r) => (float[a, b] tiled, float[c, d] joined) {"
        "  tiled = Tile (x, r)  joined = Concat <axis = 0> (x, x) }"
    )
    x = jax.numpy.ones((1, 2), "float32")
    tiled, joined = backend.run_model(model, [Parameter(x), np.array([3, 1])])
    assert isinstance(tiled, jax.Array)
    assert tiled.tolist() == [[1, 1]] * 3
    assert joined.tolist() == [[1, 1]] * 2
    with pytest.raises(tileops.ShapeError, match=r"'x' has shape \(2,\); the model declares"):
        backend.run_model(model, [Parameter(x[0]), np.array([3, 1])])


def test_without_a_driver_no_device_is_supported(backend, monkeypatch):
    def fail(_):
        raise RuntimeError("the driver is missing")

    monkeypatch.setattr(type(backend.executor), "devices", fail)
    assert not backend.supports_device("CUDA")


def test_only_existing_devices_are_supported(backend, request):
    on_cpu = request.config.getoption("--library") != "cupy"
    assert backend.supports_device("CPU") is on_cpu
    assert not backend.supports_device("TPU:7")
    for device in ("CPU:99", "", ":0", "CPU:", "CPU:0:0"):
        assert not backend.supports_device(device)
    if on_cpu:  # the name that ONNX's own Device gives the CPU
        given = [np.ones((1, 1), np.float32), np.array([2, 1])]
        assert backend.run_model(parse_model(CHAIN), given, "CPU:0")[0].shape == (2, 1)
    with pytest.raises(tileops.UnsupportedError, match="the device is 'TPU'; "):
        backend.prepare(parse_model(CHAIN), "TPU")
    given = [np.ones((1, 1), np.float32), np.array([2, 1])]
    with pytest.raises(tileops.UnsupportedError, match="the device is 'TPU'; "):
        backend.run_model(parse_model(CHAIN), given, "TPU")
    assert backend.is_compatible(parse_model(CHAIN))
    assert not backend.is_compatible(parse_model(CHAIN), "TPU")


def test_unknown_options_are_refused(backend):
    with pytest.raises(TypeError, match="max_byte"):
        backend.prepare(parse_model(CHAIN), max_byte=1)
    with pytest.raises(TypeError, match="max_bytes"):
        backend.prepare(parse_model(CHAIN)).run([], max_bytes=1)
    with pytest.raises(tileops.DTypeError, match="max_bytes is str '1'; it must be an int"):
        backend.prepare(parse_model(CHAIN), max_bytes="1")
    node = helper.make_node("Concat", ["x"], ["y"], axis=0)
    with pytest.raises(tileops.DTypeError, match="max_bytes is str '1'; it must be an int"):
        backend.run_node(node, [np.ones(1)], max_bytes="1")


@pytest.mark.library("numpy")
def test_unknown_libraries_are_refused():
    names = {name: repr(name) for name in ("json", "math", "no_such_library", "")}
    for name, shown in {**names, None: "is None; pass", 3: "is int 3; pass"}.items():
        for make in (tileops.onnx.backend.for_library, tileops.onnx.reference.ops):
            with pytest.raises(tileops.UnsupportedError, match=f"the library {shown}"):
                make(name)


# Models from untrusted sources


def refused(backend, model, text):
    with pytest.raises(tileops.UnsupportedError, match=text):
        backend.prepare(model)
    assert not backend.is_compatible(model)


def test_an_output_that_is_listed_twice_is_refused(backend):
    """Each repetition would be a copy that no node writes and max_bytes does not count."""
    model = parse_model(CHAIN)
    model.graph.output.append(model.graph.output[0])
    refused(backend, model, "the graph lists an output twice")


def test_copies_of_inputs_count_against_max_bytes(backend):
    node = helper.make_node("Identity", ["x"], ["y"])
    with pytest.raises(tileops.OutputTooLargeError, match="takes 8 bytes"):
        backend.run_node(node, [np.array([1])], max_bytes=7)


def test_text_of_a_model_is_not_padded_to_one_width(backend):
    words = [b"x" * 5_000, *[b""] * 5_000]
    tensor = helper.make_tensor("c", TensorProto.STRING, [5_001], words)
    node = helper.make_node("Constant", [], ["c"], value=tensor)
    (text,) = backend.run_node(node, [])
    assert text.dtype == object
    assert text[0] == "x" * 5_000


@pytest.mark.parametrize(
    "change",
    [
        {"dims": [2**62, 0]},
        {"dims": [0] * 70},
        {"data_type": 77},
        {"data_type": TensorProto.STRING, "string_data": [b"\xff"], "raw_data": b""},
    ],
    ids=str,
)
def test_malformed_tensors_are_refused(backend, change):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g () => (float[1] y) <float[1] c = {1}> '
        "{ y = Identity (c) }"
    )
    tensor = model.graph.initializer[0]
    tensor.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "c"))
    for field in change:
        tensor.ClearField(field)
    if "dims" in change:
        tensor.raw_data = b""
    tensor.MergeFrom(TensorProto(**change))
    refusals = (tileops.UnsupportedError, onnx.checker.ValidationError)
    with pytest.raises(refusals, match=r"initializer 'c': its data cannot be read|tensor"):
        backend.prepare(model)


@pytest.mark.parametrize("data_type", [77, -1])
def test_a_constant_of_an_undefined_type_is_refused(backend, data_type):
    tensor = TensorProto(dims=[2], data_type=data_type, raw_data=bytes(8))
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    declared = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    model = helper.make_model(helper.make_graph([node], "g", [], [declared]))
    with pytest.raises(
        tileops.DTypeError, match=rf"'y' \(Constant\): it makes tensor\({data_type}\)"
    ):
        backend.prepare(model)
    assert not backend.is_compatible(model)


def test_malformed_nodes_are_refused(backend):
    empty = helper.make_node("Constant", [], ["y"])
    with pytest.raises(
        tileops.UnsupportedError, match=r"node 'y' \(Constant\): it does not have exactly one value"
    ):
        backend.run_node(empty, [])
    left_out = helper.make_node("Concat", ["x", ""], ["y"], axis=0)
    with pytest.raises(tileops.UnsupportedError, match=r"\(Concat\): an input is missing"):
        backend.run_node(left_out, [np.ones(1)])
    borrowed = helper.make_node("Concat", ["x"], ["y"], axis=0)
    borrowed.attribute[0].ref_attr_name = "axis"
    with pytest.raises(
        tileops.UnsupportedError, match=r"'axis' refers to an attribute of a function"
    ):
        backend.run_node(borrowed, [np.ones(1)])
    text = helper.make_node("Constant", [], ["y"], value_string=b"\xff")
    with pytest.raises(
        tileops.UnsupportedError,
        match=r"node 'y' \(Constant\): value: its data cannot be read: Unicode.* byte 0xff in",
    ):
        backend.run_node(text, [])
    with pytest.raises(tileops.DTypeError, match=r"the node is str; pass an onnx\.NodeProto"):
        backend.run_node("Tile", [])


def test_two_opsets_of_one_domain_are_refused(backend):
    model = parse_model(CHAIN)
    model.opset_import.append(helper.make_opsetid("ai.onnx", 1))
    refused(backend, model, "imports 2 opsets of ONNX's own domain")


def test_a_model_may_import_onnx_s_own_domain_by_its_long_name(backend):
    model = parse_model(CHAIN)
    x, repeats = np.ones((2, 3), np.float32), np.array([2, 1])
    expected = backend.run_model(model, [x, repeats])
    model.opset_import[0].domain = "ai.onnx"
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:  # older versions of ONNX
        with pytest.raises(onnx.checker.ValidationError):
            backend.prepare(model)
        return
    for result, same in zip(backend.run_model(model, [x, repeats]), expected, strict=True):
        assert np.array_equal(result, same)


def test_an_opset_that_onnx_does_not_know_is_refused(backend):
    """Tile may have another meaning in an unknown opset."""
    model = parse_model(CHAIN)
    model.opset_import[0].version = 99
    refused(backend, model, "the model's opset is 99; the onnx installed here knows 1 to")


def test_an_initializer_that_does_not_fit_its_input_is_refused_before_a_run(backend):
    for values, error in (([2.0], tileops.DTypeError), ([2, 2], tileops.ShapeError)):
        model = parse_model(
            '<ir_version: 8, opset_import: ["": 13]> g (float[2] x, int64[1] r) => (float[n] y) '
            "{ y = Tile (x, r) }"
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(values), "r"))
        with pytest.raises(error, match=r"^input 'r' has"):
            backend.prepare(model)
        assert not backend.is_compatible(model)


def test_undefined_types_are_refused(backend):
    for number in (0, 99):
        model = parse_model(CHAIN)
        model.graph.input[0].type.tensor_type.elem_type = number
        refused(backend, model, "'x' is declared")


@pytest.mark.library("numpy")
def test_masks_are_refused_and_not_dropped(backend):
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    x = np.ma.array([1, 2], mask=[True, False])
    with pytest.raises(tileops.DTypeError, match=r"is numpy\.ma\.MaskedArray; a tensor"):
        backend.run_node(node, [x, x])
    node = helper.make_node("Tile", ["x", "r"], ["y"])
    for given in ([x, np.array([2])], [np.ones(1), np.ma.array([2], mask=[True])]):
        with pytest.raises(tileops.DTypeError, match=r"^input '[xr]' is numpy\.ma\.MaskedArray; "):
            backend.run_node(node, given)


@pytest.mark.library("dask")
def test_masked_chunks_are_refused_where_their_values_are_read(backend):
    import dask.array as da

    masked = da.from_array(np.ma.array([1, 2], mask=[True, False]), chunks=1)
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    with pytest.raises(tileops.DTypeError, match=r"its array is numpy\.ma\.MaskedArray; a tensor"):
        backend.run_node(node, [masked, masked])


@pytest.mark.library("dask")
def test_concat_computes_nothing_that_it_refuses(backend):
    import dask.array as da

    def compute():
        raise AssertionError

    lazy = da.from_delayed(__import__("dask").delayed(compute)(), (1000,), float)
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    with pytest.raises(tileops.OutputTooLargeError, match="takes 16000 bytes"):
        backend.run_node(node, [lazy, lazy], max_bytes=15_999)


@pytest.mark.library("torch")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_tensors_without_values_or_shape_are_refused(backend):
    import torch

    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    meta = torch.ones(2, device="meta")
    with pytest.raises(tileops.DTypeError, match="Concat: torch cannot give its values"):
        backend.run_node(node, [meta, meta])
    nested = torch.nested.nested_tensor([torch.tensor([2])])
    with pytest.raises(tileops.RepeatsTypeError, match=r"repeats is torch\.Tensor"):
        tileops.onnx.tile(torch.ones(1), nested)


def test_a_name_that_is_not_utf_8_is_refused(backend):
    raw = parse_model(CHAIN).SerializeToString().replace(b"front", b"\xff\xfe\xffnt")
    refused(backend, onnx.load_from_string(raw), "is not text")
    named = helper.make_tensor("unused", TensorProto.FLOAT, [1], [1])
    value = helper.make_tensor_value_info("unused", TensorProto.FLOAT, [1])
    for field, part in (("input", value), ("value_info", value), ("initializer", named)):
        model = parse_model(CHAIN)
        getattr(model.graph, field).append(part)
        raw = model.SerializeToString().replace(b"unused", b"\xff\xfeused")
        refused(backend, onnx.load_from_string(raw), "is not text")


@pytest.mark.parametrize(
    "name", [b"left", b"right", b"joined", b"both", b"axis", b"Concat", b"ai.onnx"]
)
def test_a_name_in_a_node_that_is_not_utf_8_is_refused(backend, name):
    node = helper.make_node(
        "Concat", ["left", "right"], ["joined"], name="both", axis=0, domain="ai.onnx"
    )
    raw = node.SerializeToString().replace(name, b"\xff\xfe" + name[2:])
    with pytest.raises(tileops.UnsupportedError, match="is not text"):
        backend.run_node(onnx.NodeProto.FromString(raw), [np.ones(1), np.ones(1)])


def test_a_prepared_model_stays_as_it_was_checked(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[n] x) => (float[m] y) '
        "{ twice = Constant <value_ints = [2]> () y = Tile (x, twice) }"
    )
    x = np.array([1, 2], np.float32)
    prepared = backend.prepare(model)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.node[0].attribute[0].ints[:] = [5]
    model.graph.node[1].op_type = "Neg"
    kept = [prepared, copy.deepcopy(prepared), pickle.loads(pickle.dumps(prepared))]
    del model.graph.node[:]
    for run in kept:
        assert run.run([x])[0].tolist() == [1, 2, 1, 2]


def test_prepared_models_compare_by_identity(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2, 3] x) => (float[m, n] y) '
        "<int64[2] counts = {2, 1}> { y = Tile (x, counts) }"
    )
    one, other = backend.prepare(model), backend.prepare(model)
    assert one != other
    assert len({one, other, one}) == 2


@pytest.mark.library("numpy", "dask")
def test_text_of_a_model_is_repeated(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g () => (string[n] y) '
        '{ x = Constant <value_strings = ["a", "long text"]> () '
        "twice = Constant <value_ints = [2]> () y = Tile (x, twice) }"
    )
    (y,) = backend.run_model(model, [])
    assert y.tolist() == ["a", "long text"] * 2


def test_a_declared_negative_size_is_unknown_as_in_onnxruntime(backend):
    model = parse_model(CHAIN)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    given = [np.ones((3, 1), np.float32), np.array([2, 1])]
    assert backend.run_model(model, given)[0].shape == (6, 1)


@pytest.mark.parametrize(
    "error", [EncodeError("Failed to serialize proto"), ValueError("is too large (>2GiB)")]
)
def test_models_too_large_for_the_checker_are_refused(backend, monkeypatch, error):
    def check(*_):
        raise error

    monkeypatch.setattr(onnx.checker, "check_model", check)
    monkeypatch.setattr(onnx.checker, "check_node", check)
    text = "onnx.checker cannot write the {} out: it has more than 2 GiB"
    refused(backend, parse_model(CHAIN), text.format("model"))
    node = helper.make_node("Identity", ["x"], ["y"])
    with pytest.raises(tileops.UnsupportedError, match=text.format("node")):
        backend.run_node(node, [np.ones(1)])


def test_deeply_nested_graphs_are_refused(backend):
    model = parse_model(CHAIN)
    graph = model.graph
    for _ in range(2000):
        branch = graph.node.add(op_type="If", output=["z"]).attribute.add(
            name="then_branch", type=onnx.AttributeProto.GRAPH
        )
        graph = branch.g
        graph.name = "inner"
    refused(backend, model, "graphs inside 34 others")


def test_inputs_may_have_a_foreign_byte_order(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        "g (float[2] x, int64[1] r) => (float[n] y) { y = Tile (x, r) }"
    )
    x = np.array([0x7F800001, 0x3F800000], np.uint32).view(np.float32)  # a signalling NaN, and 1
    foreign = x.astype(x.dtype.newbyteorder())
    (y,) = backend.run_model(model, [foreign, np.array([2], ">i8")])
    words = np.dtype(np.uint32).newbyteorder(y.dtype.byteorder)
    assert y.view(words).tolist() == [0x7F800001, 0x3F800000] * 2


def test_functions_are_refused(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]> g (float[2] x) => (float[2] y) '
        "{ y = Identity (x) }"
        '<domain: "f", opset_import: ["": 13]> same (x) => (y) { y = Identity (x) }'
    )
    refused(backend, model, "the model has functions; inline them")


def test_external_data_in_a_list_of_tensors_are_not_followed(backend, tmp_path):
    node = helper.make_node("Identity", ["x"], ["y"])
    attribute = node.attribute.add(name="odd", type=onnx.AttributeProto.TENSORS)
    attribute.tensors.append(external("t", tmp_path / "nothing"))
    with pytest.raises(tileops.UnsupportedError, match=r"'y' \(Identity\): its data lie outside"):
        backend.run_node(node, [np.ones(1)])


def holding(graph):
    """Make a node with a graph in an attribute whose name makes ONNX's checker accept it."""
    node = helper.make_node("Identity", ["x"], ["y"])
    node.attribute.append(helper.make_attribute("__graph", graph))
    return node


def test_external_data_in_a_graph_inside_a_node_are_not_followed(backend, tmp_path):
    same = [helper.make_node("Identity", ["t"], ["z"])]
    outputs = [helper.make_tensor_value_info("z", TensorProto.INT64, [1])]
    tensors = [external("t", tmp_path / "nothing")]
    node = holding(helper.make_graph(same, "inner", [], outputs, tensors))
    with pytest.raises(tileops.UnsupportedError, match="initializer 't': its data lie outside"):
        backend.run_node(node, [np.ones(1)])


def test_external_data_in_a_list_of_sparse_tensors_are_not_followed(backend, tmp_path):
    where = numpy_helper.from_array(np.array([0]), "i")
    sparse = helper.make_sparse_tensor(external("s", tmp_path / "nothing"), where, [3])
    node = helper.make_node("Identity", ["x"], ["y"])
    attribute = node.attribute.add(name="__odd", type=onnx.AttributeProto.SPARSE_TENSORS)
    attribute.sparse_tensors.append(sparse)
    with pytest.raises(tileops.UnsupportedError, match=r"'y' \(Identity\): its value is sparse"):
        backend.run_node(node, [np.ones(1)])
    model = parse_model(CHAIN)
    model.graph.node[1].attribute.append(attribute)
    refused(backend, model, "its value is sparse")


def test_deeply_nested_graphs_in_a_node_are_refused(backend):
    graph = helper.make_graph([], "inner", [], [])
    node = holding(graph)
    inner = node.attribute[0].g
    for _ in range(2000):
        branch = inner.node.add(op_type="If", output=["z"]).attribute.add(
            name="then_branch", type=onnx.AttributeProto.GRAPH
        )
        inner = branch.g
        inner.name = "inner"
    with pytest.raises(tileops.UnsupportedError, match="graphs inside 34 others"):
        backend.run_node(node, [np.ones(1)])


def test_run_node_takes_one_name_for_two_values(backend):
    node = helper.make_node("Tile", ["x", "x"], ["y"])
    assert backend.run_node(node, [np.array([2]), np.array([3])])[0].tolist() == [2, 2, 2]
    assert backend.run_node(node, {"x": np.array([2])})[0].tolist() == [2, 2]
    node = helper.make_node("Concat", ["x", "x", "x (input 0)"], ["y"], axis=0)
    assert backend.run_node(node, [np.array([n]) for n in (1, 2, 3)])[0].tolist() == [1, 2, 3]


def test_defaults_must_match_what_the_model_declares(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (int64[7] x) => (int64[7] y) '
        "<float[2] x = {1, 2}> { y = Identity (x) }"
    )
    with pytest.raises(tileops.DTypeError, match=r"input 'x' has dtype float32; .*int64"):
        backend.prepare(model)


def test_max_bytes_counts_the_text_that_concat_writes(backend):
    node = helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
    narrow, wide = np.array(["a"] * 100), np.array(["a" * 50])
    with pytest.raises(tileops.OutputTooLargeError, match="takes 20200 bytes"):
        backend.run_node(node, [narrow, wide], max_bytes=20_199)
    (y,) = backend.run_node(node, [narrow, wide], max_bytes=20_200)
    assert y.nbytes == 20_200


def test_concat_has_a_default_axis_before_opset_4(backend):
    node = helper.make_node("Concat", ["x", "x"], ["y"])
    (y,) = backend.run_node(node, [np.ones((2, 3))] * 2, opset_version=3)
    assert y.shape == (2, 6)


def test_the_axis_of_a_concat_need_not_be_its_first_attribute(backend):
    node = helper.make_node("Concat", ["x", "x"], ["y"], __note=1)
    node.attribute.append(helper.make_attribute("axis", 0))
    assert backend.run_node(node, [np.ones((2, 3))] * 2)[0].shape == (4, 3)


def test_a_malformed_node_is_refused_by_the_checker(backend):
    for node in (
        helper.make_node("Concat", ["x", "x"], ["y"]),  # the current opset requires an axis
        helper.make_node("Tile", ["x", "r"], ["y"], axis=1),
    ):
        with pytest.raises(onnx.checker.ValidationError):
            backend.run_node(node, [np.ones((2, 3)), np.array([1, 1])])


def test_a_value_that_no_node_makes_may_be_declared(backend):
    model = parse_model(CHAIN)
    model.graph.value_info.append(helper.make_tensor_value_info("stray", TensorProto.FLOAT, [2]))
    backend.prepare(model)


def test_declared_sizes_of_zero_are_checked_and_unknown_sizes_are_not(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[0, n] x) => (float[0, n] y) '
        "{ y = Identity (x) }"
    )
    model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    assert backend.run_model(model, [np.ones((0, 3), np.float32)])[0].shape == (0, 3)
    with pytest.raises(
        tileops.ShapeError, match=r"has shape \(2, 3\); the model declares \(0, \?\)"
    ):
        backend.run_model(model, [np.ones((2, 3), np.float32)])


def test_concat_refuses_axes_out_of_range(backend):
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=-2)
    assert backend.run_node(node, [np.ones((2, 3))] * 2)[0].shape == (4, 3)
    for axis in (2, -3, -(2**31)):
        node = helper.make_node("Concat", ["x", "x"], ["y"], axis=axis)
        text = rf"there is no axis {axis} to join; choose one from -2 to 1"
        with pytest.raises(tileops.ShapeError, match=text):
            backend.run_node(node, [np.ones((2, 3))] * 2)
    with pytest.raises(tileops.ShapeError, match=r"no axis 0 to join; reshape them to \(1,\)"):
        backend.run_node(helper.make_node("Concat", ["x"], ["y"], axis=0), [np.ones(())])


def test_concat_takes_one_input(backend):
    node = helper.make_node("Concat", ["x"], ["y"], axis=1)
    assert backend.run_node(node, [np.ones((2, 3))])[0].shape == (2, 3)


def test_an_output_may_be_an_input_of_the_first_node(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x, int64[1] n) '
        "=> (int64[1] n, float[m] y) { y = Tile (x, n) }"
    )
    counts, tiled = backend.run_model(model, [np.ones(2, np.float32), np.array([3])])
    assert (counts.tolist(), tiled.shape) == ([3], (6,))


def test_models_with_names_that_are_not_utf_8_are_incompatible(backend):
    model = parse_model(CHAIN)
    for name in (b"Tile", b"axis"):
        broken = model.SerializeToString().replace(name, b"\xff\xfe" + name[2:])
        assert not backend.is_compatible(onnx.load_from_string(broken))


def test_the_error_for_a_copied_output_names_it(backend):
    model = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) '
        "{ y = Identity (x) }"
    )
    with pytest.raises(
        tileops.OutputTooLargeError, match=r"^output 'y': .* max_bytes=7; reduce the inputs"
    ):
        backend.run_model(model, [np.ones(2, np.float32)], max_bytes=7)


def test_options_of_wrong_types_or_values_are_refused(backend):
    node = helper.make_node("Identity", ["x"], ["y"])
    for opset in ("13", True, 13.0):
        with pytest.raises(tileops.DTypeError, match=r"opset_version is .*; pass an int"):
            backend.run_node(node, [np.ones(1)], opset_version=opset)
    for opset in (0, -1, 2**31, 10**5000):
        with pytest.raises(tileops.UnsupportedError, match=r"opset_version is .* knows 1 to"):
            backend.run_node(node, [np.ones(1)], opset_version=opset)
    with pytest.raises(tileops.UnsupportedError, match="the library is list"):
        tileops.onnx.backend.for_library(["numpy"])
    assert not backend.supports_device(None)
    with pytest.raises(tileops.UnsupportedError, match="the device is int 0"):
        backend.run_node(node, [np.ones(1)], 0)

    class Odd:
        def __repr__(self):
            raise RuntimeError

    for odd, shown in ((Odd(), r".*Odd instance at .*"), (10**5000, r"int 2\*\*16609 or more")):
        with pytest.raises(tileops.UnsupportedError, match=rf"the device is {shown}; "):
            backend.run_node(node, [np.ones(1)], odd)
        with pytest.raises(tileops.ShapeError, match=rf"the inputs are named {shown}; pass 1: x$"):
            backend.run_node(node, {odd: np.ones(1)})

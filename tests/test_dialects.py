"""What the specifications leave open: the effects of refusals, text, memory, and tracing."""

import tracemalloc

import numpy as np
import pytest

import reference
import specifications
import tileops
import variants
from memory import peak_of
from tileops import execute
from tileops.directml import TensorDesc, TileOperatorDesc

HUGE = (2**40, 2**40)


class Unprintable:
    def __repr__(self):
        raise ZeroDivisionError


REFUSED = {
    "Tile-1": [
        ([2], 0),
        (2, [0]),
        (2.5, 0),
        (float("nan"), 0),
        (-1, 0),
        (True, 0),
        (2, 2),
        (2, 0.5),
        (2**62, 0),
    ],
    "Tile-6, Tile-13": [
        ((2,),),
        ((2, 2, 2),),
        ((2, -1),),
        ((2.0, 1),),
        ((True, 1),),
        (2,),
        (np.array([2, 1], np.int32),),
        (np.array([[2, 1]]),),
        (HUGE,),
        ((2**63, 0),),
        (None,),
        ("21",),
    ],
    "Expand-8, Expand-13": [
        ((5, 3),),
        ((2, -1),),
        ((2.0, 1),),
        ((True, 1),),
        (2,),
        (np.array([2, 3], np.int32),),
        (np.array([[2, 3]]),),
        ((2**31, 2**31, 2, 3),),
        (None,),
    ],
    "OpenVINO Tile-1": [(HUGE,), ((2.0,),), ((True,),), (2,), (np.array([[2]]),), (None,)],
    "DirectML Tile": [
        ((0, 1),),
        ((-1, 1),),
        ((2,),),
        ((1, 1, 1),),
        ((2**32, 1),),
        ((2**31, 1),),
        ((1.0, 1),),
        (1,),
    ],
}
OPERATORS = {n: o.call for n, o in specifications.OPERATORS.items() if "DirectML" not in n}
OPERATORS["DirectML Tile"] = tileops.directml.tile
CASES = [
    (name, arguments)
    for names, found in REFUSED.items()
    for name in names.split(", ")
    for arguments in found
]


@pytest.mark.parametrize("name, arguments", CASES, ids=str)
def test_bad_counts_are_refused_by_name(xp, name, arguments):
    x = xp.make(np.zeros((2, 3), "V4"), "float32")
    with pytest.raises(tileops.TileOpsError, match=f"^{name}.*: ") as caught:
        OPERATORS[name](x, *arguments)
    assert isinstance(caught.value, ValueError | TypeError)


@pytest.mark.library("numpy")
@pytest.mark.parametrize("name, arguments", CASES, ids=str)
def test_bad_counts_allocate_nothing(name, arguments, monkeypatch):
    def copy(*_arguments):
        raise AssertionError

    monkeypatch.setattr(type(execute.executor_named("numpy")), "copy", copy)
    x = np.zeros((2, 3), np.float32)

    def refused():
        with pytest.raises(tileops.TileOpsError):
            OPERATORS[name](x, *arguments)

    assert peak_of(refused) < 100_000


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("x", [[1.0], None, 2.0, "text"])
@pytest.mark.usefixtures("xp")
def test_operators_refuse_inputs_that_are_not_arrays(name, x):
    counts = (1, 0) if name == "Tile-1" else ((1,),)
    with pytest.raises(tileops.DTypeError, match=f"^{name}.*: the input is .*, not an array"):
        OPERATORS[name](x, *counts)


def test_names_without_a_version_are_the_latest_versions():
    assert tileops.onnx.tile is tileops.onnx.tile_13
    assert tileops.onnx.expand is tileops.onnx.expand_13


@pytest.mark.library("numpy", "torch", "jax")
@pytest.mark.parametrize("name, general", [("Tile-6", "tile"), ("Expand-8", "expand")])
def test_the_error_for_a_dtype_lists_the_accepted_dtypes(xp, name, general):
    x = xp.make(np.zeros(2, f"V{xp.dtypes['bfloat16']}"), "bfloat16")
    with pytest.raises(
        tileops.DTypeError,
        match=rf"^{name}: the input has dtype bfloat16; {name} takes .*float16.*; convert it, or "
        rf"use tileops\.{general}, which has no such limit$",
    ):
        OPERATORS[name](x, (2,))


@pytest.mark.library("numpy")
@pytest.mark.parametrize("operator", [tileops.onnx.tile, tileops.onnx.expand])
def test_text_may_have_dtype_str_stringdtype_or_object(operator):
    words = [["", "a", "\u00e9\U0001f600"]]
    for dtype in (object, "U", np.dtypes.StringDType()):
        x = np.array(words, dtype)
        result = operator(x, (2, 1))
        assert result.dtype == x.dtype
        assert result.tolist() == words * 2
    for wrong, text in (
        (np.array([["a", b"b"]], object), r"object \(not all of it str\);"),
        (np.array([[1, None]], object), r"object \(not all of it str\);"),
        (np.array([["a"]], "S"), "bytes8;"),
        (
            np.array([["a", None]], np.dtypes.StringDType(na_object=None)),
            r"StringDType.* \(not all",
        ),
    ):
        with pytest.raises(tileops.DTypeError, match=f"the input has dtype {text}"):
            operator(wrong, (2, 1))
    complete = np.array([["a"]], np.dtypes.StringDType(na_object=None))
    assert operator(complete, (1, 2)).tolist() == [["a", "a"]]
    for deep in (complete, np.array([["a"]], object)):  # NumPy iterates over 32 axes at most
        many = deep.reshape((1,) * 63 + (1,))
        assert operator(many, (1,) * 63 + (2,)).ravel().tolist() == ["a", "a"]


@pytest.mark.library("numpy", "torch", "cupy")
def test_directml_writes_into_out(xp, rng):
    bits = variants.random_bits(rng, "float32", 4, (2, 3))
    x = xp.make(bits, "float32")
    out = xp.plain(np.zeros((2, 6), "V4"), "float32")
    assert tileops.directml.tile(x, (1, 2), out=out) is out
    assert xp.bits(out).tobytes() == reference.tiled(bits, (1, 2)).tobytes()
    before = xp.bits(out).tobytes()
    for repeats, level in (((1, 0), "4.1"), ((1, 2), "2.1"), ((2, 2), "4.1"), ((1, 2), "9.0")):
        with pytest.raises(tileops.TileOpsError):
            tileops.directml.tile(x, repeats, feature_level=level, out=out)
        assert xp.bits(out).tobytes() == before


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "level",
    ["1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.2", "6.0", "6.1", "6.3", "6.4"],
)
def test_feature_levels_without_changes_equal_the_level_before(level):
    changed = max(name for name in specifications.LEVELS if name <= level)
    types = {name.upper() for name in specifications.TYPES[f"DirectML Tile {changed}"]}
    ranks = (4,) if changed in ("1.0", "2.1") else range(1, 9)
    data_types = (*(f"{kind}INT{n}" for kind in ("", "U") for n in (4, 8, 16, 32, 64)), "UNKNOWN")
    for data_type in (*data_types, "FLOAT16", "FLOAT32", "FLOAT64"):
        for rank in range(11):
            tensor = TensorDesc(data_type, (1,) * rank)
            desc = TileOperatorDesc(tensor, tensor, (1,) * rank)
            if data_type in types and rank in ranks:
                desc.check(level)
                continue
            with pytest.raises(tileops.TileOpsError, match=f"^DirectML Tile at .* {level}: the in"):
                desc.check(level)


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "level, shown",
    [
        (3.1, "float 3.1"),
        (None, "None"),
        ("DML_FEATURE_LEVEL_3_1", "str 'DML_FEATURE_LEVEL_3_1'"),
        ("7.0", "str '7.0'"),
        (10**5000, r"int 2\*\*16609 or more"),
    ],
    ids=["float", "none", "name", "too high", "huge"],
)
def test_an_unknown_feature_level_is_shown_as_it_was_given(level, shown):
    with pytest.raises(
        tileops.UnsupportedError, match=rf"feature_level is {shown}; .* str: 1\.0, 2\.0, .* 6\.4$"
    ):
        tileops.directml.tile(np.ones(3, np.float32), (2,), feature_level=level)


@pytest.mark.library("numpy")
def test_a_desc_is_checked_without_an_array():
    desc = TileOperatorDesc(TensorDesc("INT64", [2, 3]), TensorDesc("INT64", [4, 3]), [2, 1])
    assert desc.check() is None
    assert desc.check("6.4") is None
    assert (desc.repeats_count, desc.input_tensor.dimension_count) == (2, 2)
    with pytest.raises(tileops.DTypeError, match=r"level 4\.0: the input has data type 'INT64'"):
        desc.check("4.0")

    def checked(data_type="FLOAT32", sizes=(1, 2), output=None, repeats=(1, 2), level="4.1"):
        result = TensorDesc(data_type, (1, 4) if output is None else output)
        TileOperatorDesc(TensorDesc(data_type, sizes), result, repeats).check(level)

    checked()
    checked("DML_TENSOR_DATA_TYPE_FLOAT32")
    for data_type in ("FLOAT64", "BOOL", "UINT4", "float32", ""):
        for level in ("1.0", "4.1", "6.4"):
            with pytest.raises(tileops.DTypeError, match=f"data type '{data_type}'; .*FLOAT32"):
                checked(data_type, level=level)
    names = np.array(["FLOAT32"] * 2)  # has no truth value when it is compared
    for data_type in (None, 10**5000, "x" * 10**6, Unprintable(), ["FLOAT32"], names):
        with pytest.raises(tileops.DTypeError, match=r"has data type (.{1,250}); .*FLOAT32"):
            checked(data_type)
    for data_type, found in (("BOOL", r"'BOOL'; this level takes"), ("INT8", "INT8 .* the same")):
        result = TensorDesc(data_type, (1, 4))
        with pytest.raises(tileops.DTypeError, match=f"the output has data type {found}"):
            TileOperatorDesc(TensorDesc("FLOAT32", (1, 2)), result, (1, 2)).check()
    for error, change in (
        (tileops.ShapeError, {"sizes": (0, 2)}),
        (tileops.ShapeError, {"sizes": (1,) * 9}),
        (tileops.ShapeError, {"sizes": ()}),
        (tileops.ShapeError, {"sizes": (2**32, 1)}),
        (tileops.ShapeTypeError, {"sizes": (1.0, 2)}),
        (tileops.ShapeError, {"output": (1, 5)}),
        (tileops.ShapeError, {"output": (1, 4, 1)}),
        (tileops.ShapeTypeError, {"output": (1, 4.0)}),
        (tileops.RepeatsError, {"repeats": (1, 0)}),
        (tileops.RepeatsError, {"repeats": (2,)}),
        (tileops.RepeatsTypeError, {"repeats": (1, True)}),
        (tileops.OutputTooLargeError, {"repeats": (1, 2**31)}),
        (tileops.UnsupportedError, {"level": "6.5"}),
    ):
        with pytest.raises(error, match=r"^DirectML Tile"):
            checked(**change)
    with pytest.raises(tileops.DTypeError, match=r"the input is tuple \(1, 2\); pass a TensorDesc"):
        TileOperatorDesc((1, 2), TensorDesc("FLOAT32", (1, 2)), (1, 1)).check()
    with pytest.raises(tileops.DTypeError, match=r"the output is tuple .*; pass a TensorDesc"):
        TileOperatorDesc(TensorDesc("FLOAT32", (1, 2)), (1, 2), (1, 1)).check()
    for counts in ({1, 2}, {1: 1, 2: 2}, b"\x01\x02", iter((1, 2))):
        with pytest.raises(tileops.RepeatsTypeError, match=r"repeats is .*; counts must be"):
            TileOperatorDesc(
                TensorDesc("FLOAT32", (1, 2)), TensorDesc("FLOAT32", (1, 4)), counts
            ).check()
    with pytest.raises(tileops.ShapeError, match=r"input sizes has shape \(\); it must be"):
        checked(sizes=np.array(2))
    with pytest.raises(
        tileops.ShapeError, match="input sizes is 2, a single size; it must be one-dim"
    ):
        checked(sizes=2)
    with pytest.raises(tileops.ShapeError, match="output sizes is 2, a single size"):
        checked(output=2)
    same = TensorDesc("INT8", [1, 2]), TensorDesc("INT8", np.array([1, 2]))
    assert same[0] == same[1] == TensorDesc("INT8", (1, 2))
    assert same[0] == TensorDesc("DML_TENSOR_DATA_TYPE_INT8", (1, 2))
    entries = TensorDesc("INT8", [np.int64(1), np.array(2)])
    assert len({same[0], same[1], entries}) == 1
    assert hash(TensorDesc("INT8", [True, 2])) == hash(TensorDesc("INT8", (True, 2)))
    assert [type(size) for size in (*same[1].sizes, *entries.sizes)] == [int] * 4
    assert len(set(same)) == 1
    equal = [TileOperatorDesc(*same, repeats) for repeats in ([1, 1], (1, 1), np.array([1, 1]))]
    assert len(set(equal)) == 1


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "shape, repeats, expected",
    [
        ((2, 3), (2, 4), (4, 12)),
        ((2, "n", None), (2, 4, 1), (4, None, None)),
        (("n", "n"), (1, 0), (None, None)),
        ((0, 3), (5, 1), (0, 3)),
        ((2, 3), (2, None), (None, None)),
        ((2, 3), (2, "m"), (None, None)),
        ((2, 3), None, (None, None)),
        ((), (), ()),
        ((), None, ()),
        (None, (2, 2), None),
        (None, None, None),
        ((2, 3), np.array([2, 4]), (4, 12)),
        ([2, ""], [1, 1], (2, None)),
    ],
)
def test_tile_shape_inference_with_partly_known_sizes(shape, repeats, expected):
    assert tileops.onnx.infer_tile_shape(shape, repeats) == expected


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "shape, target, expected",
    [
        ((2, 1), (3, 1, 4), (3, 2, 4)),
        (("n", 1), (1, "m"), ("n", "m")),
        (("n",), ("n",), ("n",)),
        (("",), ("",), (None,)),
        (("n",), ("m",), (None,)),
        (("n",), (None,), (None,)),
        (("n", None), (3, 4), (3, 4)),
        ((3, 4), ("n", None), (3, 4)),
        ((1,), (0,), (0,)),
        (("n",), (0,), (0,)),
        (("n", 2), (2,), ("n", 2)),
        (("n",), (5, 1), (5, "n")),
        ((2,), (None, None), (None, 2)),
        ((2,), None, None),
        (None, (2,), None),
        ((2, 1), np.array([3]), (2, 3)),
        (("", 1), (1, ""), (None, None)),
        ((), (), ()),
    ],
)
def test_expand_shape_inference_with_partly_known_sizes(shape, target, expected):
    assert tileops.onnx.infer_expand_shape(shape, target) == expected


@pytest.mark.library("numpy")
def test_shape_inference_refuses_known_sizes_that_are_wrong():
    tile, expand = tileops.onnx.infer_tile_shape, tileops.onnx.infer_expand_shape
    for error, text, call in (
        (tileops.RepeatsError, "Tile-13: repeats has 1 entry", lambda: tile((2, "n"), (2,))),
        (tileops.RepeatsError, r"Tile-13: axis 1: repeats\[1\]", lambda: tile((2, "n"), (2, -1))),
        (tileops.OutputTooLargeError, r"Tile-13: axis 0: .*2\*\*63", lambda: tile((2**62,), (2,))),
        (tileops.RepeatsTypeError, "int32", lambda: tile((2,), np.array([2], np.int32))),
        (tileops.RepeatsError, "one-dimensional", lambda: tile((2,), 2)),
        (tileops.RepeatsTypeError, "integers.*None is unknown$", lambda: tile((2,), (2.0,))),
        (
            tileops.ShapeError,
            r"Tile-13: axis 0: input shape\[0\] is -1 .*; 0 is an empty axis$",
            lambda: tile((-1,), (2,)),
        ),
        (
            tileops.ShapeError,
            "Expand-13: .*exceed 9223372036854775807",
            lambda: expand((2**63,), (1,)),
        ),
        (tileops.ShapeError, "input shape is 5, a single", lambda: tile(5, (2,))),
        (tileops.ShapeTypeError, "input shape", lambda: tile((2.5,), (2,))),
        (tileops.ShapeError, "Expand-13: axis 0: .*size 2 .*3", lambda: expand((2, "n"), (3, 1))),
        (tileops.ShapeError, "axis 1: .*size 0 .*2", lambda: expand(("n", 0), (2,))),
        (tileops.ShapeError, r"Expand-13: axis 1: shape\[0\]", lambda: expand(("n", 1), (-1,))),
        (tileops.ShapeTypeError, "shape", lambda: expand((2,), "2")),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.library("torch")
def test_torch_exports_the_dialects_with_dynamic_sizes():
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return tileops.onnx.expand(tileops.onnx.tile(x, (2, 1)), (x.shape[0] * 2, 1))

    rows = torch.export.Dim("rows", min=2)
    exported = torch.export.export(Model(), (torch.ones(3, 1),), dynamic_shapes=({0: rows},))
    assert exported.module()(torch.ones(5, 1)).shape == (10, 1)


@pytest.mark.library("torch")
def test_torch_traces_tile_1_with_sizes_as_counts():
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(x):
        return tileops.onnx.tile_1(x, x.shape[0], 0)

    traced = make_fx(call, tracing_mode="symbolic")(torch.ones(3, 2))
    assert traced(torch.ones(5, 2)).shape == (25, 2)


@pytest.mark.library("jax")
def test_jax_traces_the_dialects_and_says_that_counts_are_static():
    import jax
    import jax.numpy as jnp

    x = jnp.ones((1, 2), jnp.float32)
    assert jax.jit(lambda x: tileops.onnx.tile(x, (2, 1)))(x).shape == (2, 2)
    assert jax.jit(lambda x: tileops.onnx.tile_1(x, 2, 0))(x).shape == (2, 2)
    with pytest.raises(
        TypeError, match=r"^Tile-13: repeats is \w+Tracer, whose .*traced.*must be static"
    ):
        jax.jit(tileops.onnx.tile)(x, jnp.array([2, 1]))
    with pytest.raises(
        TypeError, match=r"^Tile-1: tiles is \w+Tracer, whose .*traced.*must be static"
    ):
        jax.jit(tileops.onnx.tile_1)(x, jnp.array(2), 0)


@pytest.mark.library("numpy")
def test_a_refused_rank_leaves_no_plan_behind():
    x = np.ones(1, np.float32)
    counts = (1,) * 100_000
    with pytest.raises(tileops.ShapeError, match="axes"):
        tileops.onnx.expand(x, counts)
    tracemalloc.start()
    for _ in range(3):
        with pytest.raises(tileops.ShapeError, match="axes"):
            tileops.onnx.expand(x, counts)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize(
    "value, text",
    [
        (4, r"s is 4, a single (size|count); it must be one-dim.*a sequence, such as \(4,\)"),
        (None, "s is None; (size|count)s must be integers"),
        ({1, 2}, "s is set {1, 2}; (size|count)s must be integers"),
        (np.ones((2, 2), int), r"s has shape \(2, 2\); it must be one-dimensional"),
        (range(2**40), r"s has \d+ (size|count)s; no array has so many"),
        (memoryview(b"\1\2"), "s is memoryview .*; (size|count)s must be integers"),
    ],
    ids=["int", "none", "set", "table", "range", "bytes"],
)
def test_counts_of_sizes_and_repeats_need_a_sequence(value, text):
    with pytest.raises(tileops.ShapeError, match=f"^DirectML TensorDesc: tensor size{text}"):
        _ = TensorDesc("FLOAT32", value).dimension_count
    tensor = TensorDesc("FLOAT32", (1, 2))
    with pytest.raises(tileops.RepeatsError, match=f"^DirectML Tile: repeat{text}"):
        _ = TileOperatorDesc(tensor, tensor, value).repeats_count


def test_a_tensor_desc_keeps_arrays_that_cannot_be_sizes_as_they_are():
    long, table = np.ones(2**21, np.int8), np.ones((2**20, 2), np.int8)
    for sizes in (long, table):
        assert TensorDesc("FLOAT32", sizes).sizes is sizes
        assert peak_of(lambda sizes=sizes: TensorDesc("FLOAT32", sizes)) < 2**20
    assert TensorDesc("FLOAT32", np.array([1, 2])).sizes == (1, 2)


class Stranger:
    dtype, shape = "float32", ()


class Two:
    def __index__(self):
        return 2


@pytest.mark.library("numpy")
def test_tile_1_takes_objects_with_an_index_method():
    x = np.ones((1, 1), np.float32)
    assert tileops.onnx.tile_1(x, Two(), np.int64(1)).shape == (1, 2)


@pytest.mark.library("numpy")
def test_errors_of_tile_1_name_its_own_arguments():
    x, tile_1 = np.ones(1, np.float32), tileops.onnx.tile_1
    masked = np.ma.array([2], mask=[True], dtype=np.float32)
    for error, text, arguments in (
        (tileops.RepeatsTypeError, "tiles is .*Stranger.* one whole number", (x, Stranger(), 0)),
        (tileops.RepeatsTypeError, "tiles is .* masked", (x, masked, 0)),
        (tileops.ShapeError, "for rank 0 .* a scalar has none to repeat", (x[0], 2, 0)),
        (tileops.DTypeError, "the input has dtype int32", (np.int32(1), np.float32(2), 0)),
    ):
        with pytest.raises(error, match=f"^Tile-1: .*{text}"):
            tile_1(*arguments)


@pytest.mark.library("numpy")
def test_errors_of_directml_use_its_own_terms():
    x, tile = np.ones(1, np.float32), tileops.directml.tile
    with pytest.raises(tileops.UnsupportedError, match="feature_level is list"):
        tile(x, (1,), feature_level=["4.1"])
    with pytest.raises(tileops.ShapeError, match=r"has 9 dimensions .* takes 1 to 8; "):
        tile(x.reshape((1,) * 9), (1,) * 9)
    with pytest.raises(tileops.ShapeError, match=r"has 1 dimension .* takes exactly 4; "):
        tile(x, (1,), feature_level="1.0")
    with pytest.raises(tileops.RepeatsError, match="less than 1; 1 keeps a dimension"):
        tile(x, (0,))

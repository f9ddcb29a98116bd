"""What the error messages of all operators have in common."""

import pickle

import numpy as np
import pytest
from onnx.parser import parse_model

import tileops
from tileops._texts import describe, show

pytestmark = pytest.mark.library("numpy")

LONG = "n" * 10**6
X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "call, ends",
    [
        (
            lambda: tileops.tile(type(LONG, (), {})(), 2),
            ("tile: the input is", "or any Array API library"),
        ),
        (lambda: tileops.tile(X, type(LONG, (), {})()), ("tile: repeats is", "integer array")),
        (lambda: tileops.tile(X, np.ones(2, [(LONG, "i4")])), ("tile: repeats is", "array")),
        (
            lambda: tileops.tile(X, 2, out=np.ones((2, 6), [("n " * 10**6, "i4")])),
            ("tile: out has dtype", "pass an out of float32"),
        ),
        (
            lambda: tileops.onnx.infer_expand_shape((1,), (LONG, -1)),
            ("Expand-13: axis 1: shape[1] is -1", "1 keeps an axis as it is"),
        ),
        (
            lambda: tileops.onnx.backend.for_library(LONG),
            ("the library 'n", "such as 'array_api_strict'"),
        ),
        (
            lambda: tileops.onnx.backend.for_library("numpy").prepare(model(), LONG),
            ("the device is 'n", "numpy has cpu here"),
        ),
        (
            lambda: tileops.onnx.backend.for_library("numpy").run_model(model(), [X, (1, 2)]),
            ("input 'nnn", "pass an array of numpy"),
        ),
        (
            lambda: tileops.onnx.backend.for_library("numpy").run_model(model(), [X, np.array(1)]),
            ("input 'nnn", "the model declares (2,); pass an array of that shape"),
        ),
    ],
    ids=["class", "count", "dtype", "spaces", "symbol", "library", "device", "input", "shape"],
)
def test_long_names_are_shortened_in_errors(call, ends):
    with pytest.raises(tileops.TileOpsError) as caught:
        call()
    text = str(caught.value)
    assert len(text) < 20_000
    assert text.startswith(ends[0])
    assert text.endswith(ends[1])


def model():
    return parse_model(
        '<ir_version: 8, opset_import: ["": 13]> '
        f"g (float[2, 3] x, int64[2] {LONG}) => (float[a, b] y) {{ y = Tile (x, {LONG}) }}"
    )


def test_a_message_of_short_words_is_kept_whole():
    text = " ".join(["word" * 60] * 50)
    error = tileops.RepeatsError(text)
    assert str(error) == text
    assert str(pickle.loads(pickle.dumps(error))) == text
    assert str(tileops.TileOpsError()) == ""
    assert str(tileops.TileOpsError(1, 2)) == "(1, 2)"


@pytest.mark.parametrize(
    "wanted, remedy",
    [
        (2, "pass 1 or 4, or slice the input to drop elements"),
        (8, "pass 1 or 4, or use tile to repeat the axis"),
        (9, "pass 1 or 4"),
        (2**63, "pass 1 or 4"),
    ],
)
def test_sizes_that_do_not_broadcast_are_refused_with_a_remedy(wanted, remedy):
    with pytest.raises(tileops.ShapeError) as caught:
        tileops.expand(np.ones((4, 3)), (wanted, 1))
    assert str(caught.value).endswith(f"one of them 1; {remedy}")


@pytest.mark.parametrize(
    "shape, wanted, remedy",
    [
        ((4,), (4, 3), "pass 1 or 4, or give the input an axis for the last size, as x[..., None]"),
        ((2, 4), (5, 2, 4, 3), "pass 1 or 2, or give the input an axis for the last size"),
        ((4,), (3, 3), "pass 1 or 4, or slice the input"),
        ((4, 4), (4, 3), "pass 1 or 4, or slice the input"),
    ],
)
def test_the_error_suggests_a_last_axis_that_the_input_lacks(shape, wanted, remedy):
    x = np.ones(shape)
    with pytest.raises(tileops.ShapeError) as caught:
        tileops.expand(x, wanted)
    assert f"input shape {shape})" in str(caught.value)
    assert remedy in str(caught.value)
    if "None" in remedy:
        assert tileops.expand(x[..., None], wanted).shape == wanted


@pytest.mark.parametrize("most, remedy", [(0, "raise max_bytes"), (-1, "pass None for no limit")])
def test_a_max_bytes_that_is_too_small_is_refused_with_a_remedy(most, remedy):
    with pytest.raises(tileops.OutputTooLargeError, match=rf"max_bytes={most}; .* or {remedy}$"):
        tileops.tile(np.ones(2), 2, max_bytes=most)


@pytest.mark.parametrize(
    "error, text, call",
    [
        (
            tileops.RepeatsError,
            r"^tile_shape: axis 0: repeats\[0\] is -1",
            lambda: tileops.tile_shape(1, -1),
        ),
        (
            tileops.ShapeError,
            "^expand_shape: .* target asks for 3",
            lambda: tileops.expand_shape(2, 3),
        ),
        (
            tileops.ShapeError,
            r"^expand: axis 1 \(axis 0 of the input\): the input has size 2 and shape asks for 3 ",
            lambda: tileops.expand(X, (2, 3, 1)),
        ),
        (
            tileops.ShapeError,
            "^expand: axis 1: the input has size 3 and shape asks for 4 ",
            lambda: tileops.expand(X, 4),
        ),
        (
            tileops.ShapeError,
            r"^expand: axis 1: shape\[0\] is -1 ",
            lambda: tileops.expand(X, -1),
        ),
        (
            tileops.ShapeError,
            "or use tile to repeat the axis$",
            lambda: tileops.expand_shape(7, 2**63 - 1),
        ),
        (
            tileops.RepeatsError,
            "^Tile-13: repeats has 3 entries for rank 2 ",
            lambda: tileops.onnx.tile_13(X, (1, 1, 1)),
        ),
        (
            tileops.RepeatsError,
            "^Tile-1: axis 1: tiles is -1;",
            lambda: tileops.onnx.tile_1(X, -1, -1),
        ),
        *(
            (error, f"exceed {2**63 - 1};", call)
            for error, call in (
                (tileops.RepeatsError, lambda: tileops.onnx.tile_1(X[:0], 2**63, 0)),
                (tileops.RepeatsError, lambda: tileops.onnx.tile_13(X[:0], (2**63, 1))),
                (tileops.ShapeError, lambda: tileops.onnx.expand_13(X[:1], (2**63, 0))),
            )
        ),
        (
            tileops.OutputTooLargeError,
            rf"multiply to {2**63}, more",
            lambda: tileops.tile_shape(2**32, 2**31),
        ),
        (
            tileops.OutputTooLargeError,
            rf"multiply to {2**62} elements of 2 bytes, more",
            lambda: tileops.tile(np.ones(1, np.int16), 2**62),
        ),
        (
            tileops.OutputTooLargeError,
            rf"multiply to {2**100}, more",
            lambda: tileops.tile_shape((2,) * 100, 1),
        ),
        (
            tileops.OutputTooLargeError,
            r"multiply to 2\*\*126 or more",
            lambda: tileops.tile_shape((2,) * 200, 1),
        ),
        (
            tileops.RepeatsError,
            "an int or one-dimensional; flatten it, or pass it first",
            lambda: tileops.tile(X, np.ones((1, 1), int)),
        ),
        (
            tileops.ShapeError,
            r"pass its \.shape, or flatten it",
            lambda: tileops.expand(X, np.ones((1, 1), int)),
        ),
        (
            tileops.RepeatsError,
            r"must be one-dimensional; reshape it to \(1,\)",
            lambda: tileops.onnx.tile_13(X[0], np.array(2)),
        ),
        *(
            (tileops.RepeatsTypeError, text, lambda count=count: tileops.onnx.tile_13(X[0], count))
            for count, text in (
                (np.float64(2), "is an array of float64; counts must be integers"),
                (np.True_, "is an array of bool; counts must be integers"),
                (np.int32(2), "repeats has dtype int32; Tile-13 takes int64"),
            )
        ),
    ],
)
def test_errors_say_which_values_were_given_and_which_are_accepted(error, text, call):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "counts, text",
    [
        ((), "()"),
        ((3,), "(3,)"),
        ((2, -3), "(2, -3)"),
        ((7,) * 64, f"({'7, ' * 63}7)"),
        ((7,) * 65, f"({'7, ' * 64}...)"),
        ((2**63 - 1) ** 2, "85070591730234615847396907784232501249"),
        ((2**63 - 1) ** 2 + 1, "2**125 or more"),
        ((1, 2**200), "(1, 2**200 or more)"),
        (-(2**200) - 1, "-2**200 or less"),
    ],
)
def test_counts_are_shown_in_full_unless_they_are_long(counts, text):
    assert show(counts) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "None"),
        (True, "bool True"),
        (-(2**200), "int -2**200 or less"),
        ("n" * 198, f"str '{'n' * 198}'"),
        ("n" * 199, f"str '{'n' * 199}..."),
        ([0] * 65, f"list [{'0, ' * 64}...]"[:205]),
    ],
)
def test_other_values_are_described_by_type_and_at_most_200_characters(value, text):
    assert describe(value) == text

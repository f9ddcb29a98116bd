"""What only ndonnx shows: dtypes that the library repeats, but not by its own tile."""

import numpy as np
import pytest

import tileops

pytestmark = pytest.mark.library("ndonnx")


def test_the_reference_evaluator_refuses_a_library_that_numpy_cannot_read():
    text = "^the library 'ndonnx' does not give values to NumPy.*pass another library"
    with pytest.raises(tileops.UnsupportedError, match=text):
        tileops.onnx.reference.ops("ndonnx")


@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([[1, 2]], mask=[[0, 1]]),
        np.ma.array([[1.5, -0.0]], "float32", mask=[[1, 0]]),
        np.array([["2026-11-28", "NaT"]], "datetime64[s]"),
        np.array([[1, 2]], "timedelta64[s]"),
        np.ma.array([["a", "b"]], mask=[[0, 1]]),
    ],
    ids=["nint64", "nfloat32", "datetime64", "timedelta64", "nutf8"],
)
def test_missing_values_and_times_are_tiled(values):
    import ndonnx

    x = ndonnx.asarray(values)
    for result, repeats in (
        (tileops.tile(x, 2), 2),
        (tileops.tile(x, (3, 1, 2)), (3, 1, 2)),
        (tileops.tile(x, (0, 2)), (0, 2)),
        (tileops.expand(x, (3, 2), copy=True), (3, 1)),
    ):
        expected = np.tile(values, repeats)
        assert (result.dtype, result.shape) == (x.dtype, expected.shape)
        assert repr(result.unwrap_numpy().tolist()) == repr(expected.tolist())  # None where masked


def test_text_is_a_string_tensor_of_onnx():
    import ndonnx

    x = ndonnx.asarray(np.array(["a", "bc"]))
    for result in (tileops.onnx.tile(x, [2]), tileops.onnx.tile_6(x, [2])):
        assert result.dtype == x.dtype
        assert result.unwrap_numpy().tolist() == ["a", "bc", "a", "bc"]
    assert tileops.onnx.expand(x, [2, 1]).unwrap_numpy().tolist() == [["a", "bc"]] * 2

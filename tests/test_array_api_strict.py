"""What only the strict library shows: the generic executor uses the standard and no more."""

import numpy as np
import pytest

import tileops

pytestmark = pytest.mark.library("array_api_strict")


def test_every_version_and_device_of_the_standard():
    import array_api_strict as xp

    for version in ("2022.12", "2023.12", "2024.12"):
        with xp.ArrayAPIStrictFlags(api_version=version):
            assert tileops.tile(xp.ones((2, 1)), (2, 3)).shape == (4, 3)
    for name in ("CPU_DEVICE", "device1"):
        device = xp.Device(name)
        x = xp.asarray([1, 2], device=device)
        for result in (tileops.tile(x, 2), tileops.expand(x, (2, 2))):
            assert result.device == device


def test_tile_and_broadcast_to_of_the_library_are_used(monkeypatch):
    """Some libraries reshape only along chunks, and in some, `tile` cannot repeat 0 times."""
    import array_api_strict as xp

    def own(x, repetitions, tile=xp.tile):
        assert 0 not in repetitions
        return tile(x, repetitions)

    x = xp.asarray([[1, 2], [3, 4]])
    monkeypatch.setattr(xp, "tile", own)
    for repeats in (0, 2), (0, 1, 3), (2, 0, 2, 0):
        result = tileops.tile(x, repeats)
        assert result.shape == np.tile(np.asarray(x), repeats).shape
        assert result.dtype == x.dtype
    monkeypatch.delattr(xp, "reshape")
    for repeats in 2, (2, 3), (3, 1, 2):
        result = tileops.tile(x, repeats)
        assert np.array_equal(np.asarray(result), np.tile(np.asarray(x), repeats))
    result = tileops.expand(x[:1, :], (3, 2, 1))
    assert np.array_equal(np.asarray(result), [[[1, 2], [1, 2]]] * 3)
    with xp.ArrayAPIStrictFlags(api_version="2023.12"):  # the first version with `tile`
        assert np.array_equal(np.asarray(tileops.tile(x, 2)), np.tile(np.asarray(x), 2))


@pytest.mark.parametrize("error", [TypeError, RuntimeError, NotImplementedError])
def test_an_array_that_the_tile_of_the_library_lacks_is_reshaped_and_broadcast(error, monkeypatch):
    import array_api_strict as xp

    def fail(*_):
        raise error

    monkeypatch.setattr(xp, "tile", fail)
    x = xp.asarray([[1, 2], [3, 4]])
    for repeats in 2, (2, 3), (3, 1, 2), (2, 0):
        result = tileops.tile(x, repeats)
        assert np.array_equal(np.asarray(result), np.tile(np.asarray(x), repeats))


def test_a_sum_over_all_axes_may_be_a_scalar_unless_axes_are_kept(monkeypatch):
    import array_api_strict as xp

    def own(x, keepdims=False, total=xp.sum, **options):
        result = total(x, keepdims=keepdims, **options)
        return result if result.shape else float(result)

    monkeypatch.setattr(xp, "sum", own)
    g = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    for result, shape in (
        (tileops.tile_adjoint(g, 1, (2, 2)), (1,)),
        (tileops.expand_adjoint(g, (1, 1)), (1, 1)),
        (tileops.expand_adjoint(g, ()), ()),
    ):
        assert (result.shape, result.dtype, float(xp.reshape(result, ()))) == (shape, g.dtype, 10)


def test_an_unknown_size_is_refused():
    class Lazy:
        shape = (2, None)
        dtype = None

        def __array_namespace__(self):
            raise AssertionError

    with pytest.raises(tileops.ShapeError, match="axis 1 of the input has no known size"):
        tileops.tile(Lazy(), 2)


class Text:
    """An array of a library with dtypes that the standard does not have."""

    def __init__(self, values):
        self.values, self.dtype, self.device, self.shape = values, "text", "cpu", (len(values),)

    def __array_namespace__(self, api_version=None):
        return Text

    @staticmethod
    def isdtype(*_):
        return False

    @staticmethod
    def finfo(dtype):
        raise ValueError(dtype)

    @staticmethod
    def reshape(x, shape, **_):  # does not copy, even if asked to
        return Text(np.asarray(x.values).reshape(shape))

    @staticmethod
    def asarray(x, copy):
        return Text(np.array(x.values, copy=copy))

    @staticmethod
    def broadcast_to(x, shape):
        return Text(np.broadcast_to(x.values, shape))


def test_a_dtype_that_the_standard_lacks_is_tiled():
    assert tileops.tile(Text(["a", "b"]), 2).values.tolist() == ["a", "b", "a", "b"]
    with pytest.raises(tileops.OutputTooLargeError, match="takes 64 bytes"):
        tileops.tile(Text(["a", "b"]), 2, max_bytes=63)
    known = Text(["a", "b"])
    known.itemsize = 1
    assert tileops.tile(known, 2, max_bytes=4).shape == (4,)


def test_the_result_is_a_copy_even_if_reshape_makes_none():
    x = Text(np.array(["a", "b"]))
    assert not np.shares_memory(tileops.tile(x, (1, 1)).values, x.values)


def test_an_array_whose_module_cannot_be_imported_is_tiled():
    gone = type("Gone", (Text,), {"__module__": "not_imported.here"})
    assert tileops.tile(gone(["a"]), 2).values.tolist() == ["a", "a"]
    gone = type("Gone", (Text,), {"__module__": None})
    assert tileops.tile(gone(["a"]), 2).values.tolist() == ["a", "a"]


def test_values_that_numpy_does_not_know_are_refused():
    executor = tileops.execute.find_executor(Text([1]))
    with pytest.raises(TypeError, match=r"NumPy does not know .*\.Text as an array"):
        executor.to_numpy(Text([1]))


def test_a_shape_of_numpy_integers_is_accepted():
    import array_api_strict as xp

    class Wide:
        """An array whose shape consists of NumPy integers."""

        def __init__(self, values):
            self.values, self.dtype, self.device = values, values.dtype, values.device
            self.shape = tuple(map(np.int64, values.shape))

        def __array_namespace__(self, api_version=None):
            return xp

    with pytest.raises(tileops.ShapeError, match="must be equal, or one of them 1"):
        tileops.expand(Wide(xp.ones(2)), (3,))
    with pytest.raises(tileops.OutputTooLargeError, match="max_bytes=1"):
        tileops.tile(Wide(xp.ones(2)), 2, max_bytes=1)
    with pytest.raises(tileops.OutputTooLargeError, match=rf"shape \({2**63},\) is larger"):
        tileops.tile(Wide(xp.ones(2)), 2**62)  # NumPy's product of the two is negative


def test_counts_may_be_whole_floats_in_an_array_without_tolist():
    """ONNX Tile-1 takes its counts in the dtype of the input."""
    import array_api_strict as xp

    x = xp.asarray([[1, 2]], dtype=xp.float32)
    for tiles, axis in ((3.0, -1.0), ([3.0], [1.0])):
        counts = (xp.asarray(count, dtype=xp.float32) for count in (tiles, axis))
        result = tileops.onnx.tile_1(x, *counts)
        assert result.dtype == xp.float32
        assert np.asarray(result).tolist() == [[1, 2, 1, 2, 1, 2]]


class Pair:
    """Two integers, in an array of a library of its own."""

    shape, dtype = (2,), "integer"

    def __array_namespace__(self, api_version=None):
        return Pair

    @staticmethod
    def isdtype(dtype, kind):
        return dtype == "integer" and kind == "integral"


def test_counts_with_a_method_named_mask_are_not_masked():
    class Counts(Pair):
        """Their library masks elements by a method."""

        def mask(self):
            raise AssertionError

        def tolist(self):
            return [2, 1]

    assert tileops.tile_shape((3,), Counts()) == (2, 3)


def test_counts_without_tolist_whose_items_are_not_known_must_be_static():
    class Counts(Pair):
        def __iter__(self):
            return iter((2, None))

    with pytest.raises(tileops.RepeatsTypeError, match="Counts, whose values cannot be read here"):
        tileops.tile_shape((3,), Counts())

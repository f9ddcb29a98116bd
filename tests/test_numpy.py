"""What only NumPy has: strings, objects, records, subclasses, scalars, and unusual memory."""

import gc
import math
import mmap
import re
import sys
import warnings
import weakref

import numpy as np
import pytest

import reference
import tileops
import variants
from memory import peak_of
from tileops import execute
from tileops._plan import cached_plan
from tileops._rules import TILE
from tileops.execute import _out, allocating, host

pytestmark = pytest.mark.library("numpy")


def test_strings_and_objects_are_repeated():
    strings = np.array(["", "é", "a long string that is not kept inline"], np.dtypes.StringDType())
    result = tileops.tile(strings, (2, 1))
    assert result.dtype == strings.dtype
    assert result.tolist() == [strings.tolist()] * 2
    missing = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    assert tileops.tile(missing, 2).tolist() == ["a", None, "a", None]
    one, two = object(), [2]
    objects = np.array([one, two], object)
    assert [id(v) for v in tileops.tile(objects, 2)] == [id(one), id(two)] * 2
    assert [id(v) for v in tileops.expand(objects[:1], 3, copy=True)] == [id(one)] * 3


@pytest.mark.parametrize("repeats", [(1, 4), (4, 1), (2, 2), (1, 1), (3, 1, 2), (0, 2)])
@pytest.mark.parametrize("shape", [(3, 4), (4, 1), (1, 3), (1, 1), (0, 3)])
def test_references_are_counted(shape, repeats):
    """References are copied in rows or singly, also from reversed views and read-only arrays."""
    thing = Thing()
    plain = np.full(shape, thing, object)
    records = np.zeros(shape, [("a", "u1"), ("b", object)])
    records["b"] = thing
    frozen = plain.copy()
    frozen.flags.writeable = False
    for x in (plain, plain[::-1].T, frozen, records):
        before = sys.getrefcount(thing)
        result = tileops.tile(x, repeats)
        expected = np.tile(x, repeats)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert sys.getrefcount(thing) == before + 2 * result.size
        assert result.tolist() == expected.tolist()
        del result, expected
        assert sys.getrefcount(thing) == before


class Thing:
    """An object that is equal to no other."""


def test_strings_are_written_into_out():
    out = np.array(["old"] * 4, np.dtypes.StringDType())
    tileops.tile(np.array(["x", "a string past sixteen bytes"], out.dtype), 2, out=out)
    assert out.tolist() == ["x", "a string past sixteen bytes"] * 2


def test_zero_width_strings_and_records_keep_their_dtype():
    for dtype in ("U0", "S0", "V0", np.dtype([])):
        x = np.ndarray((2,), dtype)
        result = tileops.tile(x, 3)
        assert (result.dtype, result.shape) == (x.dtype, (6,))
        scalar = x[0]
        result = tileops.tile(scalar, 3)
        assert (result.dtype, result.shape) == (scalar.dtype, (3,))
        assert tileops.expand(scalar, 3).dtype == scalar.dtype
        out = np.ndarray(3, scalar.dtype)
        assert tileops.tile(scalar, 3, out=out) is out


def test_elements_of_zero_bytes_are_not_visited_one_by_one():
    """NumPy would visit each element, which would take years here."""
    untouchable = None
    host.write(untouchable, cached_plan(TILE, (1,), (2**62,), 0), untouchable)


@pytest.mark.parametrize("dtype", ["i4", [("a", "i4"), ("b", "f8")]])
@pytest.mark.parametrize(
    "call", [lambda x: tileops.expand(x, (2, 3)), lambda x: tileops.tile(x, 2)]
)
def test_to_set_a_fill_value_leaves_that_of_the_input(call, dtype):
    x = np.ma.zeros(3, dtype)
    x.fill_value = 7
    kept = x.fill_value.copy()
    call(x).fill_value = 5
    assert x.fill_value == kept


def test_a_masked_array_keeps_its_mask_and_fill_value():
    x = np.ma.array([[1, 2, 3]], mask=[[0, 1, 0]], fill_value=-7)
    result = tileops.tile(x, (2, 2))
    assert type(result) is np.ma.MaskedArray
    assert result.tolist(-1) == [[1, -1, 3, 1, -1, 3]] * 2
    assert result.fill_value == -7
    assert result.data.tolist() == [[1, 2, 3, 1, 2, 3]] * 2
    expanded = tileops.expand(x, (2, 1))
    assert expanded.tolist(-1) == [[1, -1, 3]] * 2
    assert np.shares_memory(expanded.data, x.data)
    assert x.tolist(-1) == [[1, -1, 3]]


def test_a_masked_array_without_a_mask_has_none():
    result = tileops.tile(np.ma.array([1.0, 2.0]), 2)
    assert result.mask is np.ma.nomask


def test_masks_of_records_and_hard_masks_are_kept():
    x = np.ma.array([(1, 2.0)], dtype="i2,f8", mask=[(True, False)], hard_mask=True)
    result = tileops.tile(x, 2)
    assert result.mask.tolist() == [(True, False)] * 2
    assert result.hardmask


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType()])
@pytest.mark.parametrize("repeats", [2, (3, 1), (1, 2), (2, 2)])
def test_masked_rows_of_references_are_repeated_as_rows(dtype, repeats):
    for shape in ((8,), (9, 8), (16, 9)):
        values = np.arange(np.prod(shape)).reshape(shape)
        x = np.ma.array(values.astype(dtype), mask=values % 2)
        result = tileops.tile(x, repeats)
        assert (result.data == np.tile(x.data, repeats)).all()
        assert (result.mask == np.tile(x.mask, repeats)).all()


@pytest.mark.parametrize("dtype, rows", [("u1", 2), ("i4", 5), ("f8", 9)])
def test_long_rows_of_masked_arrays_are_repeated_with_their_masks(dtype, rows):
    values = np.arange(rows * 20_000).reshape(rows, 20_000).astype(dtype)
    x = np.ma.array(values, mask=values % 7 == 3)
    result = tileops.tile(x, (1, 60))
    assert (result.data == np.tile(x.data, (1, 60))).all()
    assert (result.mask == np.tile(x.mask, (1, 60))).all()


@pytest.mark.parametrize("shape, repeats", [((4096,), (60, 1)), ((1000,), 2330)])
def test_a_masked_result_takes_a_quarter_more_at_most(shape, repeats):
    """Values and mask each lie in memory of their own, for which the plan counts both."""
    x = np.ma.array(np.ones(shape), mask=np.ones(shape, bool))
    nbytes = math.prod(tileops.tile_shape(shape, repeats)) * 9
    assert peak_of(lambda: tileops.tile(x, repeats)) <= nbytes * 5 / 4


def test_objects_that_do_not_lie_side_by_side_take_no_large_temporary():
    x = np.empty((4096, 512), object)[:, ::2]
    x[...] = [[str(i)] for i in range(len(x))]
    result = tileops.tile(x, (1, 2))
    assert (result == np.tile(x, (1, 2))).all()
    assert peak_of(lambda: tileops.tile(x, (1, 2))) <= result.nbytes * 5 / 4


def test_an_unknown_kind_of_masked_array_is_refused():
    class Mine(np.ma.MaskedArray):
        pass

    for call in (
        lambda x: tileops.tile(x, 2),
        lambda x: tileops.tile_adjoint(x, 1, 2),
        lambda x: tileops.expand_adjoint(x, 2),
    ):
        with pytest.raises(tileops.DTypeError, match="Mine, an unknown subclass of masked arrays"):
            call(Mine([1, 2]))


@pytest.mark.parametrize(
    "x, values",
    [
        (np.ma.array([1.0, 2], mask=[1, 1]).sum(), None),
        (np.ma.array([1.0, 2], mask=[0, 1])[1], None),
        (np.ma.array([(1, 2.0)], "i2,f8", mask=[(0, 1)])[0], (1, None)),
        (np.ma.array([(1, 2.0)], "i2,f8", mask=[(1, 1)])[0], (None, None)),
    ],
)
def test_masked_scalars_are_masked_arrays_of_rank_0(x, values):
    """Whether an element or a sum of a masked array is one of these depends on its mask."""
    for result, shape in (
        (tileops.tile(x, 3), (3,)),
        (tileops.tile(x, ()), ()),
        (tileops.expand(x, (2, 2)), (2, 2)),
        (tileops.expand(x, (2,), copy=True), (2,)),
    ):
        assert type(result) is np.ma.MaskedArray
        assert (result.dtype, result.shape) == (x.dtype, shape)
        assert result.ravel().tolist() == [values] * result.size
    with pytest.raises(TypeError, match="out= works between plain NumPy arrays"):
        tileops.tile(x, 2, out=np.zeros(2, x.dtype))


def test_a_masked_scalar_keeps_its_hard_mask():
    x = np.ma.array([(1, 2.0)], "i2,f8", mask=[(0, 1)], hard_mask=True)[0]
    assert tileops.tile(x, 2).hardmask
    assert not tileops.tile(np.ma.masked, 2).hardmask


def test_the_adjoint_of_a_masked_scalar_is_masked():
    assert tileops.tile_adjoint(np.ma.masked, (), ()).tolist() is None


class Tagged(np.ndarray):
    def __array_finalize__(self, source):
        self.tag = getattr(source, "tag", None)


def test_a_subclass_keeps_what_its_class_adds():
    x = np.arange(3).view(Tagged)
    x.tag = "metres"
    for result in (tileops.tile(x, 2), tileops.expand(x, (2, 3))):
        assert type(result) is Tagged
        assert result.tag == "metres"

    class Scalars(Tagged):
        def __array_wrap__(self, array, context=None):  # called by ufuncs, and by NumPy 1
            raise AssertionError

    assert type(tileops.tile(x.view(Scalars), 2)) is Scalars
    records = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    result = tileops.tile(records, 2)
    assert type(result) is np.recarray
    assert result.a.tolist() == [1, 1]


def test_max_bytes_counts_all_bytes_of_an_element_whose_class_names_the_dtype_of_a_part():
    class Samples(np.ndarray):
        dtype = property(lambda _: np.dtype("f8"))

    x = np.arange(30.0).reshape(3, 10).view("V80")[:, 0].view(Samples)
    assert tileops.tile(x, 2, max_bytes=480).tobytes() == x.tobytes() * 2
    with pytest.raises(tileops.OutputTooLargeError, match="takes 480 bytes"):
        tileops.tile(x, 2, max_bytes=479)


class Weighted(np.ndarray):
    """Has a weight for each element, and applies NumPy's functions to both."""

    def __array_function__(self, func, types, args, kwargs):
        x, *counts = args
        assert kwargs == ({} if func is np.tile else {"subok": True})
        result = func(np.asarray(x), *counts).view(Weighted)
        is_whole = func is np.tile and set(counts[0]) == {1}  # some classes do not copy all then
        result.weights = x.weights if is_whole else func(x.weights, *counts)
        return result


def test_a_class_with_an_array_function_method_repeats_its_own_arrays():
    x = np.array([[1.0], [2.0]]).view(Weighted)
    x.weights = np.array([[3], [4]])
    for result in (
        tileops.tile(x, (1, 3)),
        tileops.expand(x, 3),
        tileops.expand(x, 3, copy=True),
        tileops.tile(x, (1, 3), copy=False),
    ):
        assert result.tolist() == [[1, 1, 1], [2, 2, 2]]
        assert result.weights.tolist() == [[3, 3, 3], [4, 4, 4]]
    for result, is_shared in (
        (tileops.tile(x, 1), False),
        (tileops.expand(x, 3, copy=True), False),
        (tileops.expand(x, 3), True),
    ):
        assert np.shares_memory(np.asarray(result), np.asarray(x)) is is_shared
        assert np.shares_memory(result.weights, x.weights) is is_shared
    for copy in (True, None):
        assert tileops.tile(x, (2, 1), copy=copy).weights.tolist() == [[3], [4], [3], [4]]
    assert tileops.tile(x, (0, 1), copy=False).weights.shape == (0, 1)
    with pytest.raises(tileops.OutputTooLargeError):
        tileops.tile(x, 10**12, max_bytes=100)
    x = np.array([[1.0, 2], [3, 4]], order="F").view(Weighted)
    x.weights = np.array(x, order="F")
    assert tileops.tile(x, 1).flags.c_contiguous


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_keeps_its_class_in_two_axes_and_is_refused_in_three():
    x = np.asmatrix([[1, 2]])
    assert type(tileops.tile(x, (2, 1))) is np.matrix
    assert tileops.expand(x, (3, 2)).tolist() == [[1, 2]] * 3
    masked = np.ma.array(x, mask=[[False, True]])
    assert type(tileops.tile(masked, (2, 1)).data) is np.matrix
    for refused, remedy in (
        (x, r"numpy\.asarray\(x\)$"),
        (masked, r"numpy\.ma\.array\(numpy\.asarray\(x\), mask=x\.mask\), which keeps"),
    ):
        with pytest.raises(TypeError, match=rf"numpy\.matrix.*has 3; .*{remedy}"):
            tileops.tile(refused, (2, 1, 1))
    plain = np.ma.array(np.asarray(masked), mask=masked.mask)
    assert tileops.tile(plain, (2, 1, 1)).tolist() == [[[1, None]]] * 2


def test_a_memory_map_gives_a_plain_array(tmp_path):
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "i4", (2,))
    x[:] = [1, 2]
    result = tileops.tile(x, 2)
    assert type(result) is np.ndarray
    assert result.tolist() == [1, 2, 1, 2]
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", "i4", (4,))
    assert tileops.tile(x, 2, out=out) is out
    assert out.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("out", [np.float64(0), [0.0]])
def test_out_must_be_an_array(out):
    with pytest.raises(tileops.DTypeError, match=r"out is .*; for this input it must be numpy.nda"):
        tileops.tile(np.ones(()), (), out=out)


def test_records_with_gaps_between_rows_have_views():
    rows = np.zeros((4, 1), [("a", "i4"), ("b", "i8")])[::2]
    assert np.shares_memory(tileops.expand(rows, (2, 3), copy=False), rows)


def test_out_works_only_between_plain_arrays():
    masked = np.ma.array([1, 2], mask=[0, 1])
    out = np.zeros(4, masked.dtype)
    for x, into, named in ((masked, out, "input"), (out[:2].copy(), np.ma.array(out), "out")):
        with pytest.raises(TypeError, match=rf"between plain NumPy arrays, and the {named} is"):
            tileops.tile(x, 2, out=into)
    assert out.tolist() == [0] * 4
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        tileops.tile(np.arange(2), 2, out=out)


@pytest.mark.skipif(
    not variants.HAS_GIL and sys.version_info < (3, 14),
    reason="Python 3.13 without a GIL frees no class",
)
def test_the_number_of_classes_that_are_remembered_is_limited(monkeypatch):
    monkeypatch.setattr(execute, "_MOST_CLASSES", len(execute._others))
    kind = type("Kind", (np.ndarray,), {})
    assert type(tileops.tile(np.arange(3).view(kind), 2)) is kind
    gone = weakref.ref(kind)
    del kind
    gc.collect()
    assert gone() is None


def test_numpy_scalars_are_arrays_of_rank_zero():
    for scalar in (np.float32(2.5), np.int64(12345), np.complex128(1 + 2j), np.datetime64("2026")):
        for result in (tileops.tile(scalar, (2,)), tileops.expand(scalar, 2)):
            assert (result.dtype, result.tolist()) == (scalar.dtype, [scalar.item()] * 2)
    assert type(tileops.tile(np.int8(1), ())) is np.ndarray


@pytest.mark.parametrize("n", [3, 100, 5000, 100_000])
@pytest.mark.parametrize(
    "read",
    [
        lambda x: tileops.expand(x, (2, 1, x.size)),
        lambda x: tileops.tile(x, 20),
        lambda x: tileops.tile(x, (20, 1)),
        lambda x: tileops.tile(x, 20, out=np.empty((1, 20 * x.size))),
        lambda x: tileops.tile_adjoint(x, (1, 1), (1, x.size)),
    ],
    ids=["expand", "tile", "rows", "out", "adjoint"],
)
def test_to_read_an_array_is_no_write_of_which_numpy_warns(read, n):
    x = np.broadcast_arrays(np.arange(float(n)), np.zeros((1, 1)))[0]
    # As an error, the warning would leave the mark of the array that a write removes.
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        read(x)
    assert not seen
    with pytest.warns(DeprecationWarning, match="overlapping memory"):  # only of the first write
        x[0, 0] = 5


def test_a_view_is_read_only_and_a_copy_is_writable():
    x = np.arange(3)
    assert not tileops.expand(x, (2, 3)).flags.writeable
    assert not tileops.tile(x, 1, copy=None).flags.writeable
    for result in (tileops.expand(x, (2, 3), copy=True), tileops.tile(x, 2)):
        assert result.flags.writeable
        assert result.flags.c_contiguous
    x.flags.writeable = False
    assert tileops.tile(x, 1).flags.writeable


@pytest.mark.parametrize(
    "dtype", [">i4", "M8[s]", "U2", "S0", "V3", "i1,O", object, np.dtypes.StringDType()], ids=str
)
def test_a_view_of_any_dtype_shares_its_memory(dtype):
    x = np.zeros((2, 1), dtype)
    view = tileops.expand(x, (3, 2, 2), copy=False)
    assert (view.dtype, view.shape, view.strides) == (x.dtype, (3, 2, 2), (0, x.strides[0], 0))
    assert view.ctypes.data == x.ctypes.data


def test_misaligned_memory_in_fortran_order_is_tiled():
    raw = np.frombuffer(bytes(range(33)), np.uint8)[1:]
    x = raw.view(">i4").reshape(4, 2).T
    result = tileops.tile(x, (2, 1))
    assert result.dtype == x.dtype
    assert result.tobytes() == x.tobytes() * 2


def test_out_may_be_reversed_and_in_fortran_order():
    out = np.zeros((6, 4), order="F")[::-1, ::-1]
    x = np.arange(6.0).reshape(3, 2)
    assert tileops.tile(x, 2, out=out[:3]).tolist() == np.tile(x, 2).tolist()
    assert tileops.tile(x, (2, 2), out=out).tolist() == np.tile(x, (2, 2)).tolist()


def test_an_out_that_overlaps_itself_is_refused():
    place = np.zeros(5)
    for strides in ((0, 0), (8, 0), (8, 8), (16, 8)):
        out = np.lib.stride_tricks.as_strided(place, (2, 3), strides)
        with pytest.raises(tileops.OutputError, match="overlap or interleave"):
            tileops.tile(np.ones((2, 1)), 3, out=out)
    assert place.tolist() == [0] * 5


def test_out_is_refused_if_its_overlap_is_too_hard_to_decide():
    # These arrays are from NumPy's own tests: whether they share an element takes many minutes to
    # decide.
    x = _out.Memory(2**40, (1049, 1049, 1049), (36674, 61119, 85569), 1, None)
    out = _out.Memory(2**40 + 64023025, (1049, 1049, 1), (12223, 12224, 1), 1, None)
    with pytest.raises(ValueError, match="overlaps"):
        _out.check_memory("tile", x, out)


def test_padding_of_records_is_moved_with_them():
    dtype = np.dtype({"names": ["a"], "formats": ["i1"], "offsets": [2], "itemsize": 8})
    x = np.arange(16, dtype=np.uint8).view(dtype)
    assert tileops.tile(x, 3).view(np.uint8).tolist() == list(range(16)) * 3


@pytest.mark.parametrize("repeats", [(1, 3), (3, 1), (2, 2), (3, 2, 4), (1, 1)])
@pytest.mark.parametrize("kind", ["plain", "read-only", "misaligned", "reversed", "apart"])
@pytest.mark.parametrize(
    "fields",
    [
        {"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8]},
        {"names": [], "formats": []},
    ],
    ids=["padded", "no fields"],
)
def test_padding_is_copied_from_memory_of_any_layout(fields, kind, repeats, rng):
    dtype = np.dtype({**fields, "itemsize": 16})
    for rows in (1, 3, 300, 20_000):
        memory = rng.integers(1, 256, 2 * 16 * rows * 2 + 1, np.uint8)
        start = 1 if kind == "misaligned" else 0
        x = memory[start : memory.size - 1 + start].view(dtype).reshape(2 * rows, 2)
        x = {"reversed": x[rows - 1 :: -1], "apart": x[::2]}.get(kind, x[:rows])
        x.flags.writeable = kind != "read-only"
        expected = np.tile(x.view("V16").copy(), repeats)
        result = tileops.tile(x, repeats)
        assert (result.dtype, result.shape) == (dtype, expected.shape)
        assert result.view("V16").tobytes() == expected.tobytes()


INNER = {"names": ["x"], "formats": ["i2"], "offsets": [1], "itemsize": 5}
SOME_FIELDS = {
    "outer": ("u1,f8,i4", ["f0", "f2"], [0, *range(9, 13)]),
    "inner": ("u1,f8,i4", ["f1"], range(1, 9)),
    "records": ([("a", "u1,f8,i4"), ("b", "i2")], ["a"], range(13)),
    "arrays": ([("a", INNER, 2), ("b", "i2")], ["a"], [1, 2, 6, 7]),
    "gaps in arrays": ([("a", INNER, 2)], ["a"], [1, 2, 6, 7]),
    "gaps in records": ([("a", INNER), ("b", "i2")], ["a", "b"], [1, 2, 5, 6]),
    "none": ("u1,f8,i4", [], []),
    "overlapping": (
        {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2]},
        ["a"],
        range(4),
    ),
    "padded": ({"names": ["a"], "formats": ["i2"], "offsets": [3], "itemsize": 8}, ["a"], [3, 4]),
}
"""Records, the names of some of their fields, and the bytes that these take."""


@pytest.mark.parametrize("rows", [1, 3, 300, 20_000])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("name", SOME_FIELDS)
def test_only_the_fields_of_out_are_written(name, is_transposed, rows, rng):
    """A view of some fields of records has gaps, in which the other fields lie."""
    described, fields, places = SOME_FIELDS[name]
    dtype = np.dtype(described)
    x, whole = (
        rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
        for shape in ((rows, 2), (2 * rows, 6))
    )
    if is_transposed:
        whole = np.ascontiguousarray(whole.swapaxes(0, 1)).swapaxes(0, 1)
    expected = whole.copy()
    expected[..., [*places]] = np.tile(x, (2, 3, 1))[..., [*places]]
    source, out = (array.view(dtype)[..., 0][fields] for array in (x, whole))
    assert tileops.tile(source, (2, 3), out=out) is out
    assert (whole == expected).all()


def test_a_masked_view_shares_its_mask_and_leaves_its_input_unchanged():
    x = np.ma.array([1.0], mask=[True])
    view = tileops.expand(x, 2**40, copy=False, max_bytes=0)
    assert np.shares_memory(view.mask, x.mask)
    assert not view.mask.flags.writeable
    assert tileops.tile(x, 2).astype(int).filled().tolist() == [999999] * 2
    assert x.astype(int).filled().tolist() == [999999]
    records = np.ma.array([(1, 2.0)], "i2,f8", mask=[(True, False)])
    assert tileops.expand(records, 2).mask.tolist() == [(True, False)] * 2
    with pytest.raises(ValueError, match="numpy guarantees no view of this"):
        tileops.expand(records, 2, copy=False)
    with pytest.raises(tileops.OutputTooLargeError, match="16 bytes"):
        tileops.tile(np.ma.array([1, 2], "i1", mask=[0, 1]), 4, max_bytes=15)


def test_masked_counts_are_refused():
    for counts in (np.ma.array([1, 2], mask=[0, 1]), np.ma.array(2, mask=True)):
        with pytest.raises(tileops.RepeatsTypeError, match=r"repeats is .* masked"):
            tileops.tile(np.ones((2, 3)), counts)


def test_ranks_up_to_the_limit_of_numpy():
    x = np.ones((1,) * 63 + (2,))
    assert tileops.tile(x, 2).shape == (1,) * 63 + (4,)
    out = np.zeros((1,) * 63 + (4,))
    assert tileops.tile(x, 2, out=out).sum() == 4
    assert tileops.tile(np.ones((0,) * 40), (0,) * 40).shape == (0,) * 40
    for call in (tileops.tile, tileops.expand):
        with pytest.raises(tileops.ShapeError, match=r"65 axes.*64 at most"):
            call(np.ones(2), (1,) * 65)


@pytest.mark.parametrize(
    "shape, repeats",
    [
        ((0,) * 4 + (2,) * 31, (2,) * 35),
        ((0,) + (2,) * 33, (1,) + (0,) * 33),
        ((2,) * 33, (0,) * 33),
    ],
    ids=["empty", "emptied", "to nothing"],
)
def test_empty_results_need_no_axes_beyond_their_own(shape, repeats):
    x = np.broadcast_to(np.int8(1), shape)
    # np.tile would write out the 2**33 elements of the last input, 8 GB.
    expected = tuple(n * r for n, r in zip(shape, repeats, strict=True))
    out = np.empty(expected, np.int8)
    for result in (
        tileops.tile(x, repeats),
        tileops.tile(x, repeats, copy=False),
        tileops.tile(x, repeats, out=out),
        tileops.openvino.tile(x, repeats),
    ):
        assert (result.shape, result.dtype) == (expected, np.int8)


def test_huge_counts_on_an_empty_axis_do_not_overflow():
    x, out = np.ones((0, 2)), np.ones((0, 4))
    assert tileops.tile(x, (2**62, 2), out=out) is out
    for copy in (None, False):
        assert tileops.tile(x, (2**62, 2), copy=copy).shape == (0, 4)
    assert tileops.tile(np.ma.ones((0, 2)), (2**62, 2)).shape == (0, 4)
    assert tileops.tile_adjoint(out, (0, 2), (2**62, 2)).shape == (0, 2)
    with pytest.raises(MemoryError):  # 2**62 bytes; in float32 they would be more than any array
        tileops.tile_adjoint(np.ones(0, np.float16), 2**61, 0)


def test_elements_of_zero_bytes_count_as_elements():
    with pytest.raises(tileops.OutputTooLargeError, match=r"more than 2\*\*63-1"):
        tileops.tile(np.ndarray(2, "V0"), 2**63)


def test_huge_counts_have_short_errors():
    for count, shown in ((10**5000, "2**16609 or more"), (-(10**5000), "-2**16609 or less")):
        for call in (tileops.tile, tileops.expand):
            with pytest.raises(ValueError, match=f" {re.escape(shown)}") as caught:
                call(np.ones(1), count)
            assert len(str(caught.value)) < 400
    with pytest.raises(tileops.RepeatsError, match=r"\.\.\.") as caught:
        tileops.tile(np.ones(1), (1,) * 10_000 + (-1,))
    assert len(str(caught.value)) < 400


def test_classes_and_unknown_objects_are_refused_as_counts():
    class Stranger:
        dtype, shape = np.dtype(int), (2,)

    for counts in (np.int64, np.ndarray, [np.int64], [np.array([2])], Stranger()):
        with pytest.raises(tileops.RepeatsTypeError, match="must be integers"):
            tileops.tile(np.ones(3), counts)


@pytest.mark.parametrize("step", [40, 64, 24, -32, -64, -40])
def test_wide_elements_may_lie_apart(rng, step):
    rows = 200_000  # too many bytes and too few repeats for a copy of the input
    memory = rng.integers(0, 256, rows * 64 + 32, np.uint8)
    x = np.ndarray((rows, 1), "V32", memory, 0 if step > 0 else rows * 64, (step, 32))
    out = np.zeros((rows, 3), "V32")
    assert tileops.tile(x, (1, 3), out=out) is out
    assert out.tobytes() == np.repeat(x.copy(), 3, axis=1).tobytes()


@pytest.mark.usefixtures("thresholds")
def test_references_are_counted_and_never_copied_as_bytes():
    value = ["kept"]
    x = np.full((5, 3), None)
    x[:] = [[value] * 3] * 5
    before = sys.getrefcount(value)
    result = tileops.tile(x, (100, 70))
    assert sys.getrefcount(value) == before + result.size
    tileops.tile(x, (100, 70), out=result)
    assert sys.getrefcount(value) == before + result.size
    del result
    assert sys.getrefcount(value) == before
    fields = np.zeros((5, 3), [("n", "i4"), ("o", "O")])
    fields["o"] = x
    assert sys.getrefcount(value) == before + 15
    result = tileops.tile(fields, (100, 70))
    assert sys.getrefcount(value) == before + 15 + result.size


@pytest.mark.parametrize("dtype", ["U0", "S0", "V0"])
def test_masked_elements_of_zero_bytes_are_repeated(dtype):
    for n in (4, 3000, 300_000):
        x = np.ma.array(np.ndarray(n, dtype), mask=[True, False] * (n // 2))
        result = tileops.tile(x, (2, 3))
        assert result.dtype == x.dtype
        assert result.shape == (2, 3 * n)
        assert np.array_equal(result.mask, np.tile(x.mask, (2, 3)))
        assert tileops.expand(x[:1], (5, 3), copy=True).dtype == x.dtype


@pytest.mark.usefixtures("thresholds")
def test_strings_of_any_length_own_their_characters():
    words = np.array(["", "short", "long " * 100], np.dtypes.StringDType())
    result = tileops.tile(words, (50, 40))
    out = np.empty((50, 120), np.dtypes.StringDType())
    tileops.tile(words, (50, 40), out=out)
    expected = [["", "short", "long " * 100] * 40] * 50
    words[:] = "gone"
    assert result.tolist() == out.tolist() == expected


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("dtype", ["i2,f8", "(2,3)u1,>u4", "M8[us]", ">c8", "U3", "longdouble"])
def test_large_copies_keep_their_dtype_and_all_bytes(rng, dtype):
    dtype = np.dtype(dtype)
    shape, repeats = (37, 1, 5), (3, 50, 7)
    bits = variants.random_bits(rng, dtype, dtype.itemsize, shape)
    x = bits.view(dtype)
    expected = reference.tiled(bits, repeats)
    result = tileops.tile(x, repeats)
    assert result.dtype == dtype
    assert result.tobytes() == expected.tobytes()
    room = np.zeros((*expected.shape[::-1], 2), dtype)
    out = room[..., 1].T
    assert tileops.tile(x[::-1], repeats, out=out) is out
    assert out.tobytes() == reference.tiled(bits[::-1], repeats).tobytes()
    assert not room[..., 0].view(f"V{dtype.itemsize}").tobytes().strip(b"\0")


@pytest.mark.parametrize("huge", [2**21, 0])
def test_a_large_result_lies_in_huge_pages(monkeypatch, huge):
    memory = np.arange(2**20 + 4096)
    monkeypatch.setattr(allocating, "_huge_page", lambda: huge)
    for nbytes, repeats in ((2**22, 2), (5_000_000, 3), (8_400_000, 2), (2**23, 2), (2**23, 4)):
        x = memory[: nbytes // 8]
        result = tileops.tile(x, repeats)
        assert np.array_equal(result, np.tile(x, repeats))
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert result.flags.aligned
        if huge == 0:
            assert result.flags.owndata
        else:
            assert result.ctypes.data % huge == huge - 4096 + 16
            assert result.base.nbytes - result.nbytes <= result.nbytes / 4


@pytest.mark.parametrize(
    "row, rows, is_copied",
    [
        (2**17, 2**7, True),
        (2**17 + 4, 2**7, True),
        (2**17, 2**7 - 1, False),  # the result has 16 MiB or more
        (2**18, 2**7 - 1, False),  # and is 128 times as large as its source
        (12, 2**21, True),
    ],
)
def test_a_small_source_is_copied_to_where_it_is_read_fast(monkeypatch, row, rows, is_copied):
    copies, copy_apart = [], host.copy_apart
    monkeypatch.setattr(
        host, "copy_apart", lambda *args: copies.append(copy_apart(*args)) or copies[-1]
    )
    x = np.random.default_rng(row).integers(0, 256, (1, row), np.uint8)
    before, out = x.copy(), np.zeros((rows, row), np.uint8)
    assert tileops.tile(x, (rows, 1), out=out) is out
    assert (out == before).all()
    assert (x == before).all()
    assert len(copies) == is_copied
    for copy in copies:
        assert (copy.ctypes.data - out.ctypes.data) % 4096 == 2304
        assert not np.shares_memory(copy, x)


@pytest.mark.parametrize("rows, is_placed", [(4_500_000, False), (9_000_000, True)])
def test_a_result_beside_temporaries_grows_by_an_eighth_at_most(monkeypatch, rows, is_placed):
    monkeypatch.setattr(allocating, "_huge_page", lambda: 2**21)
    x = np.arange(rows, dtype=np.uint8)[:, None]
    result = tileops.tile(x, (1, 3))
    assert np.array_equal(result, np.tile(x, (1, 3)))
    assert (result.base is not None) == is_placed
    assert not is_placed or result.base.nbytes <= result.nbytes * 9 / 8


@pytest.mark.parametrize(
    "nbytes, most_room, room",
    [
        (2**22, 2**22, 2**21),
        (2**22 + 16, 2**22 - 16, 2**22 - 16),
        # Only one more huge page: the last bytes lie in small pages
        (2**22 + 16, 2**22 - 17, 2**21),
        (2**22 + 16, 2**21, 2**21),
        (2**22 + 16, 2**21 - 1, None),
        # Memory that glibc may use again, unless the room makes it too large
        (2**25 - 2**21 - 2, 2**22, None),
        (2**25 - 2**21, 2**22, None),
        (2**25 - 2**22, 2**22, 2**21),
        (2**25, 2**22, 2**21),
    ],
)
def test_huge_pages_take_a_limited_room(monkeypatch, nbytes, most_room, room):
    monkeypatch.setattr(allocating, "_huge_page", lambda: 2**21)
    result = allocating.empty((nbytes // 2,), np.dtype("u2"), most_room)
    assert (result.shape, result.dtype) == ((nbytes // 2,), np.uint16)
    if room is None:
        assert result.flags.owndata
    else:
        assert result.base.nbytes == nbytes + room
        assert result.ctypes.data % 2**21 == 2**21 - 4096 + 16


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="only Linux has such advice")
def test_huge_pages_are_advised_for_4_mib_from_the_first_whole_page(monkeypatch):
    assert callable(allocating._madvise())
    advised, page = [], mmap.PAGESIZE
    monkeypatch.setattr(allocating, "_madvise", lambda: lambda *args: advised.append(args))
    for address, nbytes in ((page, 2**22), (page + 1, 2**22), (page, 2**22 - 1)):
        allocating.prefer_huge_pages(address, nbytes)
    assert advised == [
        (page, 2**22, mmap.MADV_HUGEPAGE),
        (2 * page, 2**22 - page + 1, mmap.MADV_HUGEPAGE),
    ]


def test_the_size_of_huge_pages_is_read_from_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(allocating, "_HUGE_PAGES", tmp_path)
    found = allocating._huge_page.__wrapped__
    assert found() == 0
    (tmp_path / "hpage_pmd_size").write_text("2097152\n")
    for setting, expected in (("always madvise [never]", 0), ("always [madvise] never", 2**21)):
        (tmp_path / "enabled").write_text(setting + "\n")
        assert found() == expected


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c8", "longdouble", "timedelta64[s]"])
def test_adjoints_keep_dtypes_of_numpy_and_refuse_timedeltas(dtype):
    if dtype.startswith("timedelta"):
        with pytest.raises(tileops.DTypeError, match="only numbers can be summed"):
            tileops.tile_adjoint(np.ones(4, dtype), 2, 2)
        return
    for repeats, expected in ((2, [2, 2]), (1, [1, 1, 1, 1])):
        result = tileops.tile_adjoint(np.ones(4, dtype), 4 // repeats, repeats)
        assert result.dtype == np.dtype(dtype)
        assert result.tolist() == expected


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_adjoints_of_masked_arrays_and_matrices_are_sums():
    masked = np.ma.array([1.0, 2, 3, 4], mask=[0, 1, 0, 0])
    assert tileops.tile_adjoint(masked, 2, 2).tolist() == [4, 4]
    assert tileops.tile_adjoint(masked, 4, 1).tolist() == [1, None, 3, 4]
    for mask in (np.ma.nomask, []):  # an empty sum is 0, one of masked values is masked
        nothing = tileops.tile_adjoint(np.ma.array(np.ones(0), mask=mask), 3, 0)
        assert type(nothing) is np.ma.MaskedArray
        assert nothing.tolist() == [0, 0, 0]
    masked = np.ma.array([1.0, 2], mask=[1, 1])
    assert tileops.tile_adjoint(masked, 1, 2).tolist() == [None]
    matrix = np.matrix([[1.0, 2], [3, 4]])
    assert tileops.expand_adjoint(matrix, 2).tolist() == [4, 6]
    assert tileops.tile_adjoint(matrix, (1, 1), (2, 2)).tolist() == [[10]]
    masked = np.ma.array(matrix, mask=[[0, 1], [0, 0]])
    assert tileops.tile_adjoint(masked, (2, 1), 2).tolist() == [[1], [7]]
    many = np.ma.array(np.ones((32, 6)), mask=[[1, 0, 1, 1, 0, 0], *[[1, 1, 0, 1, 0, 0]] * 31])
    assert tileops.tile_adjoint(many, (1, 2), (32, 3)).tolist() == [[63, 33]]
    assert tileops.tile_adjoint(many[:, :2], (1, 2), (32, 1)).tolist() == [[None, 1]]


def test_adjoints_of_scalars_and_files_are_plain_arrays(tmp_path):
    file = np.lib.format.open_memmap(tmp_path / "g.npy", "w+", "f4", (4,))
    for result in (
        tileops.tile_adjoint(np.float32(3), (), ()),
        tileops.expand_adjoint(np.float32(3), ()),
        tileops.tile_adjoint(file, 4, 1),
        tileops.tile_adjoint(file, 2, 2),
    ):
        assert type(result) is np.ndarray
        assert result.dtype == np.float32
        assert not np.shares_memory(result, file)


def test_adjoints_are_contiguous():
    f = np.asfortranarray(np.ones((6, 4)))
    for result in (
        tileops.tile_adjoint(f, (3, 4), (2, 1)),
        tileops.tile_adjoint(f.T, (4, 6), 1),
        tileops.expand_adjoint(np.ones((5, 4, 3)).transpose(0, 2, 1), (3, 4)),
    ):
        assert result.flags.c_contiguous


def test_a_memory_error_names_the_shape_of_the_result():
    with pytest.raises(MemoryError, match=r"with shape \(3000000000000000,\)"):
        tileops.tile(np.ones(3), 10**15)


def test_a_large_masked_result_takes_the_memory_of_its_values_and_mask():
    x = np.ma.array(np.ones(1000), mask=np.zeros(1000, bool))
    result = tileops.tile(x, 25_000)
    assert result.mask.shape == result.shape
    for array in (result.data, result.mask):
        base = array if array.base is None else array.base
        while base.base is not None:
            base = base.base
        assert base.nbytes <= array.nbytes * 9 / 8

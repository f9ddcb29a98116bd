"""Values that are accepted as repeats or a shape, and values that are refused."""

import sys
import weakref
from collections import UserList
from collections.abc import Sequence
from enum import IntEnum

import ml_dtypes
import numpy as np
import pytest

import reference
import tileops
import variants
from memory import peak_of
from tileops import execute

ONE = tileops.directml.TensorDesc("FLOAT32", (1, 1))


class Count(IntEnum):
    TWO = 2


class Index:
    def __index__(self):
        return 2

    def __repr__(self):  # test ids must be the same in every run
        return "Index()"


@pytest.fixture
def x(xp, rng):
    return xp.make(variants.random_bits(rng, "int16", 2, (2, 3)), "int16")


@pytest.mark.parametrize(
    "two",
    [
        2,
        (2,),
        [2],
        range(2, 3),
        UserList([2]),
        np.int8(2),
        np.uint64(2),
        np.array(2),
        np.array([2]),
        np.array([2], ">i4"),
        [np.array(2, np.int8)],
        Count.TWO,
        [Count.TWO],
        Index(),
        (Index(),),
        (np.int64(2),),
    ],
    ids=repr,
)
def test_integers_of_every_kind_are_counts(x, two):
    assert tuple(tileops.tile(x, two).shape) == (2, 6)
    assert tuple(tileops.expand(x[:, :1], two).shape) == (2, 2)
    assert tileops.tile_shape((2, 3), two) == (2, 6)
    assert tileops.tile_shape(two, 3) == (6,)
    assert tileops.expand_shape((2, 1), two) == (2, 2)
    assert all(type(size) is int for size in tileops.tile_shape((2, 3), two))


@pytest.mark.library("numpy")
def test_a_member_of_an_enum_is_refused_where_its_number_is():
    below = IntEnum("Below", {"ZERO": -1}).ZERO
    with pytest.raises(tileops.RepeatsError, match=r"repeats\[0\] is -1 "):
        tileops.tile_shape((2,), (below,))


@pytest.mark.library("numpy")
def test_an_integer_that_gives_items_but_no_length_is_a_count():
    class Bits(Index):
        """Gives its bits, as numbers of some libraries of symbols and of hardware do."""

        def __getitem__(self, i):
            return (2 >> i) & 1

        def __iter__(self):
            return iter((0, 1))

    assert tileops.tile_shape((3,), Bits()) == (6,)


@pytest.mark.library("numpy")
def test_an_object_that_gives_no_iterator_is_no_sequence_of_counts():
    class Named:
        def __len__(self):
            return 1

        def __getitem__(self, name):
            return 2

    with pytest.raises(tileops.RepeatsTypeError, match=r"Named.*; counts must be integers, not"):
        tileops.tile_shape((3,), Named())


@pytest.mark.library("numpy")
@pytest.mark.parametrize("name, most", [("int2", 1), ("uint2", 3), ("int4", 7), ("uint4", 15)])
def test_narrow_integers_are_counts(name, most):
    x = np.arange(3)
    counts = np.array([1, most], getattr(ml_dtypes, name))
    for tile in (tileops.tile, tileops.openvino.tile):
        assert np.array_equal(tile(x, counts), np.tile(x, (1, most)))
    for count in (counts[1], [counts[1]]):
        assert np.array_equal(tileops.tile(x, count), np.tile(x, most))
    with pytest.raises(tileops.RepeatsTypeError, match=name):
        tileops.onnx.tile(x, counts[1:])


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "tile", [tileops.tile, tileops.onnx.tile, tileops.openvino.tile, tileops.directml.tile]
)
def test_a_sequence_of_counts_may_hold_arrays_without_axes(tile):
    x = np.ones((2, 3), np.float32)
    assert tile(x, [np.array(2), np.array(3)]).shape == (4, 9)


def test_integer_arrays_of_the_library_are_counts(xp, x):
    assert tuple(tileops.tile(x, xp.numbers(3, 2)).shape) == (6, 6)
    assert tuple(tileops.tile(x, xp.numbers(3, 2)[1]).shape) == (2, 6)
    assert tuple(tileops.tile(x, [xp.numbers(3, 2)[1], 1]).shape) == (4, 3)
    assert tuple(tileops.expand(x, xp.numbers(4, 1, 1)).shape) == (4, 2, 3)


@pytest.mark.library("numpy", "torch")
def test_a_vector_of_int64_is_read_in_few_steps(xp, x, monkeypatch):
    """Models hold their counts in such vectors; all checks would take as long as a small copy."""
    monkeypatch.setattr("tileops._counts._read_array", None)
    counts = xp.numbers(3, 2)
    for result in (tileops.tile(x, counts), tileops.onnx.tile(x, counts)):
        assert tuple(result.shape) == (6, 6)
    assert tuple(tileops.expand(x, xp.numbers(4, 1, 1)).shape) == (4, 2, 3)


@pytest.mark.library("marray")
def test_masked_counts_of_a_library_of_the_standard_are_refused(xp, x):
    for mask, is_refused in (([False, True], True), ([False, False], False)):
        counts = xp.module.masked_namespace(np).asarray(np.array([1, 2]), mask=np.array(mask))
        for given in (counts, [1, counts[1]]):
            if is_refused:
                with pytest.raises(tileops.RepeatsTypeError, match=r"repeats.* is .* masked"):
                    tileops.tile(x, given)
            else:
                assert tuple(tileops.tile(x, given).shape) == (2, 6)


@pytest.mark.parametrize(
    "counts",
    [
        True,
        [True],
        np.True_,
        np.array([True]),
        1.0,
        [2.0],
        np.float32(2),
        np.array([2.0]),
        np.array([]),
        np.array([2], object),
        "2",
        b"2",
        None,
        [None],
        {2},
        {2: 3},
        2j,
        np.array([2], "m8[s]"),
    ],
    ids=repr,
)
def test_values_that_are_not_integers_are_refused_as_counts(x, counts):
    for error in (TypeError, tileops.RepeatsError, tileops.DTypeError):
        with pytest.raises(error, match=r"^tile: repeats(\[0\])? is .*; counts must be integers"):
            tileops.tile(x, counts)
    for error in (TypeError, tileops.ShapeError, tileops.DTypeError):
        with pytest.raises(error, match=r"^expand: shape(\[0\])? is .*; sizes must be integers"):
            tileops.expand(x, counts)
    with pytest.raises(tileops.RepeatsError):
        tileops.tile_shape((2, 3), counts)
    with pytest.raises(tileops.ShapeError):
        tileops.expand_shape(counts, 1)


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "tile, ways",
    [
        (tileops.tile, "int, a sequence of int or an integer array"),
        (tileops.openvino.tile, "a sequence of int or an integer array"),
        (tileops.onnx.tile, "a sequence of int or an array of int64"),
    ],
)
def test_an_error_names_the_kinds_of_counts_that_an_operator_takes(tile, ways):
    with pytest.raises(tileops.RepeatsTypeError, match=rf"; pass {ways}$"):
        tile(np.ones(3, np.float32), [2.0])


def test_nested_counts_are_refused(xp, x):
    for nested in ([[1, 2]], ((1,), (2,)), [range(2)], [np.array([1, 2])], [xp.numbers(1, 2)]):
        with pytest.raises(
            tileops.RepeatsTypeError, match=r"^tile: repeats\[0\] .*flatten repeats"
        ):
            tileops.tile(x, nested)
        with pytest.raises(tileops.ShapeTypeError, match=r"^expand: shape\[0\] .*flatten shape"):
            tileops.expand(x, nested)
    with pytest.raises(
        tileops.RepeatsError,
        match=r"repeats has shape \(1, 2\); .*one-dimensional; flatten it, or pass it first",
    ):
        tileops.tile(x, np.array([[1, 2]]))
    with pytest.raises(tileops.ShapeError, match=r"shape has shape \(1, 2\).*one-dimensional"):
        tileops.expand(x, np.array([[1, 2]]))


@pytest.mark.library("numpy")
@pytest.mark.parametrize("text", ["2", b"2", bytearray(b"2"), memoryview(b"2")], ids=type)
def test_characters_and_bytes_are_no_sequences_of_counts(text):
    for counts, where in ((text, ""), ([text], r"\[0\]")):
        shown = rf"repeats{where} is {type(text).__name__} [^;]*; counts must be integers, not bool"
        with pytest.raises(tileops.RepeatsTypeError, match=rf"^tile: {shown} or float"):
            tileops.tile(np.ones(3), counts)


@pytest.mark.library("numpy")
def test_a_sequence_need_not_be_registered_as_one():
    """OpenVINO's class of shapes is not; a mapping is no sequence, although it has the methods."""

    class Shape:
        def __len__(self):
            return 2

        def __getitem__(self, axis):
            return (2, 3)[axis]

        def __iter__(self):
            return iter((2, 3))

    assert tileops.tile(np.ones(2), Shape()).shape == (2, 6)
    assert tileops.expand(np.ones(1), Shape()).shape == (2, 3)
    assert tileops.openvino.tile(np.ones(2), Shape()).shape == (2, 6)
    for counts in ({0: 2, 1: 3}, {2, 3}):
        with pytest.raises(tileops.RepeatsTypeError, match="counts must be integers, not bool"):
            tileops.tile(np.ones(2), counts)


class Strange:
    """An array of no known library, of which `numpy.asarray` can make an array."""

    dtype, shape = np.dtype("i8"), ()

    def __array__(self, dtype=None, copy=None):
        return np.array(2, dtype)


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "operator, counts, text",
    [
        (
            tileops.tile,
            [1, np.array(2.0)],
            (
                "tile: repeats[1] is an array of float64; counts must be integers, not bool or "
                "float, even if whole; pass int, a sequence of int or an integer array"
            ),
        ),
        (
            tileops.onnx.tile,
            [np.array(2, np.int32)],
            (
                "Tile-13: repeats[0] has dtype int32; Tile-13 takes int64; pass a tuple of int, "
                "or an array of int64 of any library"
            ),
        ),
        (
            tileops.tile,
            [1, np.ma.masked_array(2, mask=True)],
            (
                "tile: repeats[1] is MaskedArray, whose values cannot be read here (traced, "
                "masked, sparse, with a unit, or without data); repeats must be static: pass "
                "Python's ints in place of the array"
            ),
        ),
        (
            tileops.tile,
            [1, Strange()],
            (
                f"tile: repeats[1] is {__name__}.Strange, an array of no known library; counts "
                "must be integers, not bool or float, even if whole; pass int, a sequence of int "
                "or an integer array, such as numpy.asarray makes of it"
            ),
        ),
        (
            tileops.tile,
            range(2**70),
            (
                "tile: repeats has at least 2**63 counts; no array has so many axes; pass one "
                "for each axis"
            ),
        ),
    ],
    ids=["floats", "dtype", "masked", "no known library", "endless"],
)
def test_an_error_about_counts_names_their_place_and_a_remedy(operator, counts, text):
    with pytest.raises(tileops.TileOpsError) as caught:
        operator(np.ones(3, np.float32), counts)
    assert str(caught.value) == text


class Hostile:
    """An object that raises whatever it is asked, and whose module cannot be looked up."""

    __module__ = None

    def __index__(self):
        raise KeyError("index")

    def __repr__(self):
        raise KeyError("repr")


class Elsewhere:
    """Claims to belong to a library that is not imported."""

    __module__ = "cupy.somewhere"


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "thing, shown",
    [
        (Hostile(), r"\S*\.Hostile <Hostile instance.*>"),
        (Elsewhere(), r"cupy\.somewhere\.Elsewhere <.*>"),
        ({10**5000}, r"set( {<int instance .*>})?"),  # Python 3.14 shows the element
        ("2" * 1000, r"str '2{199}\.\.\."),
    ],
    ids=["hostile", "elsewhere", "set", "text"],
)
def test_an_error_shows_a_short_description_of_any_bad_count(thing, shown):
    x = np.ones(3, np.float32)
    with pytest.raises(tileops.RepeatsTypeError, match=rf"^tile: repeats\[0\] is {shown}; counts"):
        tileops.tile(x, [thing])
    with pytest.raises(tileops.RepeatsTypeError, match=rf"^Tile-1: tiles is {shown}; it must be"):
        tileops.onnx.tile_1(x, thing, 0)
    with pytest.raises(tileops.DTypeError, match=rf"copy is {shown}; it must be True"):
        tileops.tile(x, 2, copy=thing)


def failing(base, **own):
    def fail(*_):
        raise KeyError("anybody's code")

    names = ("__len__", "__iter__", "__getitem__")
    return type("Failing", (base,), dict.fromkeys(names, fail) | own)()


@pytest.mark.library("numpy")
def test_a_sequence_that_goes_on_without_an_end_has_as_many_counts_as_its_length():
    class Endless(Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return 3

    for call in (tileops.tile, tileops.onnx.tile, tileops.openvino.tile):
        assert call(np.ones((1, 2)), Endless()).shape == (3, 6)
    assert tileops.tile_shape(Endless(), Endless()) == (9, 9)
    assert tileops.directml.TensorDesc("FLOAT32", Endless()).sizes == (3, 3)


FAILING = {
    "sequence": failing(Sequence),
    "length below 0": failing(Sequence, __len__=lambda _: -1),
    "length of text": failing(Sequence, __len__=lambda _: "2"),
    "entries": failing(Sequence, __len__=lambda _: 2),
    "list": failing(list),
    "tuple": failing(tuple),
    "dtype": failing(object, dtype=property(lambda _: 1 // 0)),
    "shape": failing(object, dtype="int64", shape=property(lambda _: 1 // 0)),
}


@pytest.mark.library("numpy")
@pytest.mark.parametrize("counts", FAILING.values(), ids=FAILING)
def test_a_sequence_of_counts_that_fails_to_be_read_is_refused(counts):
    x = np.ones((2, 3), np.float32)
    for call in (
        lambda: tileops.tile(x, counts),
        lambda: tileops.tile_shape((2, 3), counts),
        lambda: tileops.tile_adjoint(x, (2, 3), counts),
        lambda: tileops.onnx.tile(x, counts),
        lambda: tileops.onnx.infer_tile_shape((2, 3), counts),
        lambda: tileops.openvino.tile(x, counts),
        lambda: tileops.directml.tile(x, counts),
    ):
        with pytest.raises(tileops.RepeatsTypeError, match=r"repeats is .*; counts must be int"):
            call()
    for call in (
        lambda: tileops.expand(x, counts),
        lambda: tileops.expand_shape(counts, 1),
        lambda: tileops.expand_adjoint(x, counts),
        lambda: tileops.onnx.expand(x, counts),
        lambda: tileops.onnx.infer_expand_shape((2, 3), counts),
        lambda: tileops.directml.TensorDesc("INT64", counts).dimension_count,
    ):
        with pytest.raises(tileops.ShapeTypeError, match=r" is .*; sizes must be integer"):
            call()
    with pytest.raises(tileops.DTypeError, match=r"the input is .*, not an array"):
        tileops.tile(counts, 2)


@pytest.mark.library("numpy")
def test_counts_in_an_array_of_no_known_library_are_refused():
    strange = failing(object, dtype=np.dtype("i8"), shape=(1,))
    with pytest.raises(tileops.RepeatsTypeError, match="Failing, an array of no known library"):
        tileops.tile(np.ones(3), strange)


@pytest.mark.library("numpy")
def test_a_count_whose_value_is_an_array_again_is_refused():
    class Metres(np.ndarray):
        """Keeps its unit in every value that it gives."""

        def tolist(self):
            return self

    count = np.array(2).view(Metres)
    for given in (count, [1, count]):
        with pytest.raises(tileops.RepeatsTypeError, match=r"repeats.* is Metres, .* with a unit"):
            tileops.tile_shape((1, 1), given)


@pytest.mark.library("numpy")
def test_a_memory_error_while_counts_are_read_is_passed_on():
    def fail(_):
        raise MemoryError

    for counts in (
        failing(list, __iter__=fail),
        failing(Sequence, __len__=lambda _: 2, __iter__=fail),
    ):
        with pytest.raises(MemoryError):
            tileops.tile_shape((2, 3), counts)


@pytest.mark.library("numpy")
@pytest.mark.parametrize("shape", [None, ("a", 2), property(lambda _: 1 // 0)], ids=type)
def test_an_array_whose_shape_is_not_a_tuple_of_sizes_is_refused(shape):
    strange = failing(object, dtype=np.dtype("i8"), shape=shape, __array_namespace__=lambda _: np)
    with pytest.raises(
        tileops.ShapeError, match=r"^expand: the input is .*, whose shape is not a tup"
    ):
        tileops.expand(strange, (2, 2))


@pytest.mark.library("numpy")
def test_an_error_formats_only_the_part_of_a_value_that_it_shows():
    nested = [list(range(2**20))] * 2

    def refused():
        with pytest.raises(tileops.RepeatsTypeError, match=r"\[\[0, 1, 2, .*\.\.\.;"):
            tileops.tile(np.ones(3), [nested])

    assert peak_of(refused) < 2**18


def test_bools_and_floats_of_the_library_are_refused_as_counts(xp, x):
    for dtype, itemsize in (("bool", 1), ("float32", 4), ("float64", 8)):
        wrong = xp.plain(np.zeros(2, f"V{itemsize}"), dtype)
        with pytest.raises(tileops.RepeatsTypeError, match="must be integers"):
            tileops.tile(x, wrong)
        with pytest.raises(tileops.RepeatsTypeError, match="must be integers"):
            tileops.tile(x, [wrong[0], 1])
        with pytest.raises(tileops.ShapeTypeError, match="must be integers"):
            tileops.expand(x, wrong)


def test_a_negative_count_is_refused_with_its_axis(x):
    with pytest.raises(tileops.RepeatsError, match=r"tile: axis 1: repeats\[0\] is -2"):
        tileops.tile(x, -2)
    with pytest.raises(tileops.RepeatsError, match=r"tile: axis 0: repeats\[0\] is -1"):
        tileops.tile(x, np.array([-1, 2], np.int8))
    with pytest.raises(tileops.ShapeError, match=r"shape\[1\] is -1 .*1 keeps an axis"):
        tileops.expand(x, (2, -1))
    with pytest.raises(tileops.ShapeError, match=r"input shape\[0\] is -1"):
        tileops.tile_shape((-1, 2), 2)


def test_a_negative_repeat_on_an_empty_array_is_refused(xp):
    x = xp.make(np.zeros((0, 3), "V4"), "float32")
    with pytest.raises(tileops.RepeatsError, match=r"axis 0: repeats\[0\] is -1"):
        tileops.tile(x, (-1, 1))
    with pytest.raises(tileops.RepeatsError, match=r"axis 1: repeats\[1\] is -1"):
        tileops.tile(x, (0, -1))


def test_int8_repeats_do_not_overflow(x):
    assert tuple(tileops.tile(x, np.array([100, 100], np.int8)).shape) == (200, 300)


@pytest.mark.parametrize("shape, target", [((2, 3), (5, 3)), ((0,), (4,)), ((3,), (0,)), ((4,), 2)])
def test_sizes_that_do_not_broadcast_are_refused(xp, shape, target):
    x = xp.make(np.zeros(shape, "V4"), "float32")
    with pytest.raises(tileops.ShapeError, match=r"^expand: axis 0: the input has size \d and"):
        tileops.expand(x, target)
    with pytest.raises(tileops.ShapeError, match=r"must be equal, or one of them 1; pass 1 or"):
        tileops.expand_shape(shape, target)


class Table:
    """Not an array, but `numpy.asarray` makes one of it, as of data frames and files of arrays."""

    dtype = np.dtype("f4")

    def __array__(self, dtype=None, copy=None):
        return np.zeros((2, 3), dtype or self.dtype)


class Picture:
    """Gives its memory to NumPy in the older way, as images of Pillow do."""

    __array_interface__ = np.zeros((2, 3)).__array_interface__


@pytest.mark.parametrize(
    "x",
    [[1, 2], (1, 2), 3, 2.5, 2j, True, "ab", None, {}, object(), np.ndarray, Table(), Picture()],
)
@pytest.mark.usefixtures("xp")
def test_inputs_that_are_not_arrays_are_refused_with_a_remedy(x):
    # NumPy makes an object array of every other value.
    is_made_one = isinstance(x, (list, tuple, int, float, complex, Table, Picture))
    remedy = r", for example numpy\.asarray\(x\)" if is_made_one else ""
    remedy += ", which keeps only its values" if isinstance(x, (Table, Picture)) else ""
    for operator in (tileops.tile, tileops.expand):
        with pytest.raises(
            TypeError, match=rf", not an array; pass an array of .* library{remedy}$"
        ):
            operator(x, 2)


@pytest.mark.library("numpy")
def test_a_count_whose_package_cannot_be_imported_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "blocked", None)
    count = type("Count", (), {"__module__": "blocked"})()
    with pytest.raises(tileops.RepeatsTypeError, match=r"blocked\.Count.*must be integers"):
        tileops.tile_shape((3,), count)


@pytest.mark.library("numpy")
def test_a_class_that_has_no_namespace_is_not_an_array():
    strange = failing(object, dtype=np.dtype("i8"), shape=(1,), __array_namespace__=None)
    with pytest.raises(tileops.DTypeError, match=r"the input is .*Failing, not an array"):
        tileops.tile(strange, 2)


@pytest.mark.library("numpy")
def test_classes_are_remembered_up_to_a_number_and_only_those_of_arrays(monkeypatch):
    """A remembered class is never freed."""
    monkeypatch.setattr(execute, "_others", {})
    monkeypatch.setattr(execute, "_MOST_CLASSES", 2)
    assert execute.find_executor(failing(object, dtype=np.dtype("i8"))) is None
    assert not execute._others
    for _ in range(3):
        array = np.ones(2).view(type("Array", (np.ndarray,), {}))
        assert execute.find_executor(array).library == "numpy"
    assert len(execute._others) == 2


def test_counts_that_numpy_can_convert_are_refused_with_a_remedy(x):
    for counts in (Table(), [Table()]):
        with pytest.raises(tileops.RepeatsTypeError, match=r"as numpy\.asarray makes of it$"):
            tileops.tile(x, counts)
    with pytest.raises(tileops.RepeatsTypeError, match=r"an integer array$"):
        tileops.tile(x, object())


def test_a_list_of_arrays_is_refused_with_advice_to_stack_it(xp):
    x = xp.make(np.zeros((2, 3), "V4"), "float32")
    for given in ([x, x], (x,)):
        with pytest.raises(tileops.DTypeError, match=r"Array API library; stack its arrays first"):
            tileops.tile(given, 2)


def test_a_weak_proxy_is_treated_as_its_array(xp, rng):
    """All proxies have the same class, whatever they refer to."""
    bits = variants.random_bits(rng, "float32", 4, (2, 3))
    mine, plain, no_array = xp.make(bits, "float32"), bits.view(np.float32), Index()
    for repeats in ((2, 1), (1000, 1000)):
        expected = reference.tiled(bits, repeats).tobytes()
        proxied = tileops.tile(weakref.proxy(plain), repeats)
        assert (type(proxied), proxied.tobytes()) == (np.ndarray, expected)
        if xp.library in ("cupy", "dask"):  # these look at the type
            with pytest.raises(tileops.DTypeError, match=r"is weakref\.ProxyType, not an array"):
                tileops.tile(weakref.proxy(mine), repeats)
        else:
            assert xp.bits(tileops.tile(weakref.proxy(mine), repeats)).tobytes() == expected
            if xp.library != "jax":  # whose proxies are taken for arrays of the standard
                assert execute.find_executor(weakref.proxy(mine)) is execute.find_executor(mine)
            # A proxy would be of no use once its array is gone.
            assert type(tileops.expand(weakref.proxy(mine), (2, 3))) is type(mine)
    with pytest.raises(tileops.DTypeError, match=r"is weakref\.ProxyType, not an array"):
        tileops.tile(weakref.proxy(no_array), 2)


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "array",
    [
        np.array(["abc", "d"]),
        np.array([b"abc", b"d"]),
        np.array(["abc", "d"], np.dtypes.StringDType()),
        np.array(["abc", 1], object),
        np.array(["2026-01-02", "NaT"], "M8[ns]"),
        np.array([1, 2], "m8[s]"),
        np.array([1, 2], ml_dtypes.bfloat16),
        np.array([1, 2], ">i4"),
        np.array([(1, 2.0), (3, 4.0)], [("a", "u1"), ("b", "f8")]),
        np.array([(1, 2.0), (3, 4.0)], [("a", "u1"), ("b", "f8")]).view(np.recarray),
        np.ma.array([1, 2], mask=[False, True]),
    ],
    ids=lambda array: f"{type(array).__name__} {array.dtype}",
)
def test_a_weak_proxy_of_any_array_gives_its_dtype_and_class(array):
    for call, counts, expected in (
        (tileops.tile, 3, array.tolist() * 3),
        (tileops.expand, (3, 2), [array.tolist()] * 3),
    ):
        result = call(weakref.proxy(array), counts)
        assert (type(result), result.dtype) == (type(array), array.dtype)
        assert result.tolist() == expected


@pytest.mark.library("numpy")
@pytest.mark.parametrize("make", [UserList, np.array], ids=["sequence", "array"])
def test_as_many_as_1048576_counts_are_read(make):
    assert tileops.tile_shape((), make([1] * 2**20)) == (1,) * 2**20


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "counts",
    [range(2**21), range(2**62), range(2**70), np.broadcast_to(1, 2**30)],
    ids=["range", "long range", "endless range", "array"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda counts: tileops.tile(np.ones(3), counts),
        lambda counts: tileops.expand_shape((3,), counts),
        lambda counts: tileops.onnx.expand(np.ones(3), counts),
        lambda counts: tileops.onnx.infer_tile_shape((2, 3), counts),
        lambda counts: tileops.onnx.infer_expand_shape((2, 3), counts),
        lambda counts: tileops.directml.TileOperatorDesc(ONE, ONE, counts).check(),
        lambda counts: tileops.directml.tile(np.ones((1, 1), np.float32), counts),
    ],
)
def test_more_counts_than_axes_are_possible_are_refused_unread(call, counts):
    def refused():
        with pytest.raises(tileops.TileOpsError, match=r"\d+ (count|size)s; no array has so many"):
            call(counts)

    assert peak_of(refused) < 2**20


@pytest.mark.library("numpy")
def test_64_counts_are_accepted():
    for counts in (np.ones(64, int), UserList([1] * 64)):
        assert tileops.tile(np.ones(1), counts).ndim == 64


@pytest.mark.library("numpy")
def test_the_largest_int64_is_accepted_as_a_size():
    assert tileops.tile_shape(2**63 - 1, 1) == (2**63 - 1,)
    assert tileops.onnx.infer_tile_shape((2**63 - 1,), (1,)) == (2**63 - 1,)

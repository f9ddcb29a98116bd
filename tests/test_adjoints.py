"""The adjoints, compared with sums by index arithmetic that are independent of the package."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reference
import tileops
from tileops._plan import make_plan, sum_groups
from tileops._rules import TILE

WIDE = ("float32", "float64", "complex64", "complex128")
DTYPES = (
    *("float16", "bfloat16", *WIDE),
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
)

UNITS = {
    **dict.fromkeys(("int64", "uint64", "float64", "complex128"), 2**40 + 1),
    **dict.fromkeys(("int32", "uint32", "float32", "complex64"), 2**16 + 1),
}
"""Factors too large for narrower dtypes, so that a sum in a narrower dtype is noticed."""

SHAPES = (
    ((), ()),
    ((), (3,)),
    ((4,), (1,)),
    ((4,), (3,)),
    ((4,), (0,)),
    ((0,), (3,)),
    ((2, 3), (2, 2)),
    ((2, 3), (4, 1, 2)),
    ((3, 1, 2), (2,)),
    ((1, 3, 1), (5, 1, 4)),
    ((2, 1, 3), (0, 2, 1)),
    ((1, 1), (0, 3)),
    ((3, 2), (16, 1, 4)),
    ((2, 3), (3, 17)),
)


def summed(values, shape, index):
    """Add each element of the gradient to the element of the input that it was copied from."""
    result = np.zeros(int(np.prod(shape)), values.dtype)
    np.add.at(result, index.ravel(), values.ravel())
    return result.reshape(shape)


def origins(shape, operator, counts):
    """Return, for each element of the result, its position in the input."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    oracle = reference.tiled if operator is tileops.tile else reference.expanded
    return oracle(places, counts)


def whole(rng, dtype, shape):
    """Draw small whole numbers, whose sums are exact in every dtype and order."""
    values = rng.integers(-2, 3, (2, *shape))
    if not dtype.startswith("complex"):
        return values[0].astype(dtype)
    return (values[0] + 1j * values[1]).astype(dtype)


def values_of(xp, x, dtype):
    return np.ascontiguousarray(xp.host(x)).view(dtype).reshape(x.shape)


def check(xp, rng, dtype, operator, shape, counts):
    index = origins(shape, operator, counts)
    values = whole(rng, dtype, index.shape) * np.dtype(dtype).type(UNITS.get(dtype, 1))
    g = xp.make(values.view(f"V{values.itemsize}"), dtype)
    if operator is tileops.tile:
        result = tileops.tile_adjoint(g, shape, counts)
    else:
        result = tileops.expand_adjoint(g, shape)
    exact = "complex128" if dtype.startswith("complex") else "int64"
    exact = "float64" if "float" in dtype else exact
    expected = summed(values.astype(exact), shape, index).astype(dtype)
    assert xp.is_own(result)
    assert result.dtype == g.dtype
    assert tuple(result.shape) == shape
    assert xp.place(result) == xp.place(g)
    # A sum that is zero may have either sign.
    assert np.array_equal(values_of(xp, result, dtype), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tile_adjoint_sums_the_copies_of_each_element(xp, rng, dtype):
    if dtype not in xp.dtypes or dtype in xp.not_summed:
        pytest.skip(f"{xp!r} has no {dtype}, or sums it in another dtype")
    for shape, repeats in SHAPES:
        check(xp, rng, dtype, tileops.tile, shape, repeats)


@pytest.mark.parametrize("dtype", DTYPES)
def test_expand_adjoint_sums_the_copies_of_each_element(xp, rng, dtype):
    if dtype not in xp.dtypes or dtype in xp.not_summed:
        pytest.skip(f"{xp!r} has no {dtype}, or sums it in another dtype")
    for shape, repeats in SHAPES:
        sizes = [n if r == 1 else 1 for n, r in _aligned(shape, repeats)]
        source = tuple(sizes[len(sizes) - len(shape) :])
        target = tuple(n * r for n, r in _aligned(source, repeats))
        check(xp, rng, dtype, tileops.expand, source, target)


def _aligned(shape, repeats):
    rank = max(len(shape), len(repeats))
    padded = (1,) * (rank - len(shape)) + shape
    return zip(padded, (1,) * (rank - len(repeats)) + repeats, strict=True)


@pytest.mark.parametrize("dtype, count", [("float16", 10_000), ("bfloat16", 1_000)])
def test_narrow_floats_are_summed_in_wider_ones(xp, dtype, count):
    if dtype not in xp.dtypes:
        pytest.skip(f"{xp!r} has no {dtype}")
    for shape in ((count,), (count, 3)):
        ones = np.ones(shape, dtype)
        g = xp.plain(ones.view("V2"), dtype)
        result = tileops.expand_adjoint(g, (1, *shape[1:]))
        assert np.all(values_of(xp, result, dtype) == np.dtype(dtype).type(count))


@pytest.mark.library("numpy")
def test_narrow_complex_numbers_are_summed_in_wider_ones():
    g = np.full(3000, 1 - 1j, ml_dtypes.bcomplex32)
    result = tileops.tile_adjoint(g, 1, 3000)
    assert result.dtype == g.dtype
    assert result.tobytes() == np.array([3000 - 3000j], ml_dtypes.bcomplex32).tobytes()


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "shape, repeats, least, steps",
    [
        ((8, 1), (100, 1, 3), 2, ((0,), (2,))),
        ((8, 1), (3, 1, 100), 2, ((2,), (0,))),
        ((64, 1, 1), (32, 1, 8, 8), 2, ((2, 3), (0,))),
        ((2, 3, 2), (5, 6, 5), 2, ((2,), (0,), (4,))),
        ((8, 1), (4, 1, 3), 5, ((0, 2),)),
        ((8,), (100,), 2, ((0,),)),
        ((8,), (1,), 2, ((),)),
    ],
)
def test_the_axis_with_most_repeats_is_summed_first(shape, repeats, least, steps):
    plan = make_plan(TILE, shape, repeats, 4)
    assert sum_groups(plan, least) == steps


def test_adjoints_refuse_a_shape_larger_than_any_array(xp):
    """JAX would end the process if it were asked for such a shape."""
    for shape in ((2**40, 2**40), (2**62, 1)):
        g = xp.plain(np.zeros((0, 0), np.float32).view("V4"), "float32")
        with pytest.raises(tileops.OutputTooLargeError, match=r"^tile_adjoint: .*2\*\*63-1"):
            tileops.tile_adjoint(g, shape, (0, 0))


def test_the_adjoint_is_the_transpose_of_tile(xp, rng):
    """<tile(x), g> = <x, tile_adjoint(g)>, for numbers whose products and sums are exact."""

    @settings(max_examples=50, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(
        st.lists(st.integers(0, 4), max_size=3).map(tuple),
        st.lists(st.integers(0, 3), max_size=4).map(tuple),
        st.sampled_from([name for name in WIDE if name in xp.dtypes]),
    )
    def check_one(shape, repeats, dtype):
        values = whole(rng, dtype, shape)
        x = xp.make(values.view(f"V{values.itemsize}"), dtype)
        y = tileops.tile(x, repeats)
        weights = whole(rng, dtype, tuple(y.shape))
        g = xp.make(weights.view(f"V{weights.itemsize}"), dtype)
        transposed = values_of(xp, tileops.tile_adjoint(g, shape, repeats), dtype)
        assert np.sum(values_of(xp, y, dtype) * weights) == np.sum(values * transposed)

    check_one()


def test_an_adjoint_without_sums_returns_a_new_array(xp):
    g = xp.plain(np.ones((2, 3), np.float32).view("V4"), "float32")
    for result in (tileops.tile_adjoint(g, (2, 3), 1), tileops.expand_adjoint(g, (2, 3))):
        assert not xp.shares(result, g)
        assert values_of(xp, result, "float32").tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda g: tileops.tile_adjoint(g, (2, 2), 2), tileops.ShapeError, r"g has shape \(2, 3\)"),
        (lambda g: tileops.tile_adjoint(g, (2, 3), -1), tileops.RepeatsError, r"no count may be n"),
        (lambda g: tileops.tile_adjoint(g, (-1,), 1), tileops.ShapeError, r"no size may be negat"),
        (lambda g: tileops.tile_adjoint(g, "ab", 1), TypeError, r"^tile_adjoint: shape"),
        (lambda g: tileops.tile_adjoint(g, (2, 3), 1.5), TypeError, r"^tile_adjoint: repeats"),
        (lambda g: tileops.tile_adjoint(g, (2, 3), None), TypeError, r"^tile_adjoint: repeats"),
        (lambda g: tileops.expand_adjoint(g, (2, 2)), ValueError, r"axis 1.*asks for 2.*size 3"),
        (lambda g: tileops.expand_adjoint(g, (0, 3)), ValueError, r"axis 0.*asks for 0.*size 2"),
        (
            lambda g: tileops.expand_adjoint(g[:, :1], (2, 2)),
            ValueError,
            r"axis 1.*g has size 1.*; pass 1$",
        ),
        (
            lambda g: tileops.expand_adjoint(g, (1, 2, 3)),
            ValueError,
            r"^expand_adjoint: shape=\(1, 2, 3\) has 3 axes and g has 2",
        ),
        (
            lambda g: tileops.expand_adjoint(tileops.expand_adjoint(g, ()), 2),
            tileops.ShapeError,
            r"has 1 axis and g has 0",
        ),
        (lambda _: tileops.expand_adjoint([], 1), tileops.DTypeError, r"g is list, not an array"),
        (
            lambda _: tileops.expand_adjoint([1.0], 1),
            tileops.DTypeError,
            r": g is list, not an array",
        ),
    ],
)
def test_errors_say_what_is_wrong(xp, call, error, message):
    g = xp.plain(np.ones((2, 3), np.float32).view("V4"), "float32")
    with pytest.raises(error, match=message):
        call(g)


def test_adjoints_of_empty_gradients_add_no_axes(xp):
    if xp.max_rank < 34:
        pytest.skip(f"{xp!r} has {xp.max_rank} axes at most")
    g = xp.plain(np.zeros((0,) * 34, "V4"), "float32")
    total = tileops.tile_adjoint(g, (0,) + (2,) * 33, (1,) + (0,) * 33)
    assert tuple(total.shape) == (0,) + (2,) * 33
    assert total.dtype == g.dtype


def test_adjoints_refuse_dtypes_that_are_not_numbers(xp):
    g = xp.plain(np.ones(2, bool).view("V1"), "bool")
    with pytest.raises(
        tileops.DTypeError, match=r"^tile_adjoint: g has dtype .*bool.*only numbers"
    ):
        tileops.tile_adjoint(g, 1, 2)


def test_a_shape_of_too_many_axes_is_refused_before_it_is_planned():
    with pytest.raises(tileops.ShapeError, match="the result has 100000 axes; numpy arrays can"):
        tileops.tile_adjoint(np.ones(1), (1,) * 100_000, 1)

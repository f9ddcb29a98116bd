"""Tile and Expand move every bit of every dtype of every library to the right place."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reference
import tileops
import variants

CASES = 2_000
MOST_ELEMENTS = 100_000


@st.composite
def tiles(draw):
    """Draw a shape and repeats of shorter, equal or longer length, with a bounded result."""
    rank = draw(st.integers(0, 6))
    length = draw(st.integers(0, 6))
    shape, repeats, room = [], [], MOST_ELEMENTS
    for i in range(max(rank, length)):
        n = draw(st.integers(0, 5)) if i < rank else 1
        r = draw(st.integers(0, 4)) if i < length else 1
        if n * r > room:
            n = r = 1
        room //= max(n * r, 1)
        shape.append(n)
        repeats.append(r)
    return tuple(shape[:rank][::-1]), tuple(repeats[:length][::-1])


@st.composite
def expands(draw):
    """Draw a shape and a target that broadcast: where they differ, one of them is 1."""
    rank, length = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    shape, target, room = [], [], MOST_ELEMENTS
    for _ in range(max(rank, length)):
        size = draw(st.integers(0, 5))
        size = 1 if size > room else size
        room //= max(size, 1)
        kept, asked = draw(st.sampled_from([(size, size), (1, size), (size, 1)]))
        shape.append(kept)
        target.append(asked)
    return tuple(shape[:rank][::-1]), tuple(target[:length][::-1])


def in_library(xp):
    """Return each variant's share of the cases, among the variants that can run here."""
    found = [v for v in variants.ALL[xp.library] if not v.missing()]
    return math.ceil(CASES / len(found))


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("operator", ["tile", "expand"])
def test_random_cases_equal_the_reference_bit_for_bit(xp, operator):
    names = sorted(xp.dtypes)
    cases = {"tile": tiles(), "expand": expands()}[operator]

    @settings(
        max_examples=in_library(xp),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases, st.sampled_from(names), st.sampled_from([True, None]), st.integers(0, 2**32))
    def check(case, dtype, copy, seed):
        shape, counts = case
        bits = variants.random_bits(np.random.default_rng(seed), dtype, xp.dtypes[dtype], shape)
        x = xp.make(bits, dtype)
        result = getattr(tileops, operator)(x, counts, copy=copy)
        expected = {"tile": reference.tiled, "expand": reference.expanded}[operator](bits, counts)
        variants.assert_moved(xp, x, result, expected)
        assert xp.bits(x).tobytes() == bits.tobytes()
        assert getattr(tileops, f"{operator}_shape")(shape, counts) == expected.shape

    check()


@pytest.mark.usefixtures("thresholds")
def test_every_dtype_is_tiled_and_expanded(xp, rng):
    for dtype, itemsize in xp.dtypes.items():
        bits = variants.random_bits(rng, dtype, itemsize, (2, 1, 3))
        x = xp.make(bits, dtype)
        variants.assert_moved(xp, x, tileops.tile(x, (2, 3, 2)), reference.tiled(bits, (2, 3, 2)))
        for copy in (None, True):
            result = tileops.expand(x, (2, 2, 4, 1), copy=copy)
            variants.assert_moved(xp, x, result, reference.expanded(bits, (2, 2, 4, 1)))


def test_signalling_nans_payloads_and_negative_zero_survive(xp):
    for dtype, unsigned, patterns in (
        ("float32", "u4", [0x7F800001, 0xFFC12345, 0x80000000, 0x00000001]),
        ("float64", "u8", [0x7FF0000000000001, 0xFFF8123456789ABC, 1 << 63, 1]),
    ):
        bits = np.array(patterns, unsigned).view(f"V{unsigned[1]}")
        x = xp.make(bits, dtype)
        variants.assert_moved(xp, x, tileops.tile(x, (3, 2)), reference.tiled(bits, (3, 2)))


@pytest.mark.parametrize(
    "shape, repeats",
    [
        ((), ()),
        ((), 3),
        ((), (2, 0, 3)),
        ((0,), 3),
        ((3,), 0),
        ((0, 3), (2, 2)),
        ((2, 3), ()),
        ((2, 3), 1),
        ((2, 3), (1, 1)),
        ((2, 3), (2,)),
        ((2,), (2, 1, 3)),
        ((1,) * 12, (2, 1) * 6),
        ((2, 1) * 6, (1, 3) * 6),
        ((2,) * 12, (1,) * 11 + (2,)),
        ((1,) * 11 + (2,), (2,) * 12),
    ],
)
def test_repeats_may_be_shorter_or_longer_than_the_shape(xp, rng, shape, repeats):
    bits = variants.random_bits(rng, "int32", 4, shape)
    x = xp.make(bits, "int32")
    counts = (repeats,) if isinstance(repeats, int) else repeats
    expected = reference.tiled(bits, counts)
    variants.assert_moved(xp, x, tileops.tile(x, repeats), expected)
    assert expected.tobytes() == np.tile(bits.view("i4"), counts).tobytes()


@pytest.mark.parametrize(
    "shape, target, expected",
    [
        ((3, 1), (2, 1, 6), (2, 3, 6)),
        ((3, 1), (3, 4), (3, 4)),
        ((2, 3, 4), (4,), (2, 3, 4)),
        ((2, 3, 4), 1, (2, 3, 4)),
        ((2, 3), (), (2, 3)),
        ((), (2, 0), (2, 0)),
        ((1, 3), (0, 1), (0, 3)),
        ((0, 1), (1, 4), (0, 4)),
        ((0,), (0,), (0,)),
    ],
)
def test_expand_broadcasts_both_ways(xp, rng, shape, target, expected):
    bits = variants.random_bits(rng, "float32", 4, shape)
    x = xp.make(bits, "float32")
    result = tileops.expand(x, target)
    assert tuple(result.shape) == expected == tileops.expand_shape(shape, target)
    sizes = (target,) if isinstance(target, int) else target
    variants.assert_moved(xp, x, result, reference.expanded(bits, sizes))


def test_huge_counts_on_an_empty_axis_do_not_overflow(xp, rng):
    bits = variants.random_bits(rng, "int64", 8, (0, 0, 2))
    x = xp.make(bits, "int64")
    assert tuple(tileops.tile(x, (2**62, 2**62, 3)).shape) == (0, 0, 6)

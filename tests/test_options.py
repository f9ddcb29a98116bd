"""copy=, out= and max_bytes=: where a result lies, and how large it may be."""

import numpy as np
import pytest

import reference
import tileops
import variants

BOTH = pytest.mark.parametrize("operator", [tileops.tile, tileops.expand])


@pytest.fixture
def bits(rng):
    return variants.random_bits(rng, "float32", 4, (2, 1))


@pytest.fixture
def x(xp, bits):
    return xp.make(bits, "float32")


@BOTH
@pytest.mark.parametrize("counts", [(1, 1), (), (1, 1, 1), (1, 2), (0, 1)])
def test_a_copy_owns_its_memory_and_is_contiguous(xp, x, operator, counts):
    if operator is tileops.expand and counts == (0, 1):
        counts = (3, 1, 1)
    result = operator(x, counts, copy=True)
    assert not xp.shares(result, x)
    assert xp.is_contiguous(result)


def test_tile_copies_by_default(xp, x):
    assert not xp.shares(tileops.tile(x, 1), x)


def test_expand_is_a_view_by_default_where_the_library_has_views(xp, x):
    assert xp.shares(tileops.expand(x, (1, 5)), x) is xp.broadcasts_views


@BOTH
def test_copy_false_gives_a_view_or_an_error(xp, x, operator):
    if xp.has_views:
        assert xp.shares(operator(x, (3, 1, 4), copy=False), x)
    else:
        with pytest.raises(tileops.OutputError, match=r"copy=False.*guarantees no view"):
            operator(x, (3, 1, 4), copy=False)
    assert xp.shares(operator(x, (1, 1), copy=False), x)


def test_copy_none_copies_where_no_view_gives_the_result(xp, x, bits):
    result = tileops.tile(x, (2, 3), copy=None)
    assert xp.bits(result).tobytes() == reference.tiled(bits, (2, 3)).tobytes()
    assert not xp.shares(result, x)


def test_arrays_without_axes_or_elements_have_views(xp, bits):
    one, none = (xp.make(of, "float32") for of in (bits[0, 0, ...], bits[:0]))
    for copy in (None, False):
        assert xp.bits(tileops.tile(one, (), copy=copy)).tobytes() == bits[0].tobytes()
        assert xp.bits(tileops.expand(one, (), copy=copy)).tobytes() == bits[0].tobytes()
    if xp.has_views:
        assert tuple(tileops.expand(none, (1, 0, 5), copy=False).shape) == (1, 0, 5)
        assert tuple(tileops.tile(none, (2, 1, 3, 4), copy=False).shape) == (2, 1, 0, 4)


def test_copy_false_names_the_axis_that_needs_a_copy(x):
    with pytest.raises(ValueError, match=r"^tile: copy=False.*axis 0 has size 2.*repeated 3 times"):
        tileops.tile(x, (3, 2), copy=False)


@pytest.mark.library("numpy")
def test_copy_false_names_no_axis_that_is_a_view():
    with pytest.raises(tileops.OutputError, match="axis 2 has size 3 and is repeated 2 times"):
        tileops.tile(np.ones((1, 2, 3)), (5, 1, 2), copy=False)


@BOTH
@pytest.mark.parametrize("copy", [0, 1, "yes", np.True_])
def test_copy_must_be_true_false_or_none(x, operator, copy):
    with pytest.raises(TypeError, match=r"copy is .*must be True"):
        operator(x, 1, copy=copy)


@BOTH
def test_max_bytes_limits_the_bytes_written(x, operator):
    assert tuple(operator(x, (2, 5), copy=True, max_bytes=80).shape)[-1] == 5
    with pytest.raises(
        tileops.OutputTooLargeError, match=r"shape \(2, 6\) takes 48 bytes.*max_bytes=47"
    ):
        operator(x, (1, 6), copy=True, max_bytes=47)
    with pytest.raises(tileops.OutputTooLargeError):
        operator(x, (2**30, 1, 1), copy=True, max_bytes=2**30)


def test_max_bytes_counts_the_bytes_of_every_dtype(xp, rng):
    for dtype, itemsize in xp.dtypes.items():
        x = xp.make(variants.random_bits(rng, dtype, itemsize, (2, 1)), dtype)
        assert tuple(tileops.tile(x, 3, max_bytes=6 * itemsize).shape) == (2, 3), dtype
        with pytest.raises(tileops.OutputTooLargeError, match=f"takes {6 * itemsize} bytes"):
            tileops.tile(x, 3, max_bytes=6 * itemsize - 1)


def test_max_bytes_does_not_count_a_view(xp, x):
    if xp.has_views:
        assert tuple(tileops.expand(x, (2**40, 1, 1), max_bytes=0).shape) == (2**40, 2, 1)
    else:
        with pytest.raises(tileops.OutputTooLargeError):
            tileops.expand(x, (2**40, 1, 1), max_bytes=0)


class BadIndex:
    def __index__(self):
        raise KeyError("bad")


@pytest.mark.parametrize(
    "limit", [1.5, True, np.True_, "1", [3], np.array(3), np.array([3, 4]), BadIndex()]
)
def test_max_bytes_must_be_an_integer(x, limit):
    for call in (
        lambda: tileops.tile(x, 1, max_bytes=limit),
        lambda: tileops.expand(x, 1, max_bytes=limit),
    ):
        with pytest.raises(tileops.DTypeError, match=r"max_bytes is .*must be an int"):
            call()


def test_max_bytes_may_be_any_integer(x):
    class Index:
        def __index__(self):
            return 47

    for most in (Index(), np.int8(47)):
        with pytest.raises(
            tileops.OutputTooLargeError, match="takes 48 bytes, more than max_bytes=47"
        ):
            tileops.tile(x, (1, 6), max_bytes=most)


@pytest.mark.parametrize(
    "repeats", [2**62, (2**32, 2**32), (2**63,), (2**200,), (0, 2**63), (2**40, 0, 2**40)]
)
def test_sizes_past_int64_never_reach_the_library(x, repeats):
    with pytest.raises(tileops.OutputTooLargeError, match=r"2\*\*63-1"):
        tileops.tile(x, repeats)
    with pytest.raises(tileops.OutputTooLargeError, match=r"2\*\*63-1"):
        tileops.tile(x, repeats, copy=False)


@pytest.mark.library("numpy")
def test_a_million_sizes_are_refused_before_they_are_multiplied():
    """To multiply all of them takes many minutes, in which nothing can interrupt Python."""
    counts = (2**62,) * 2**20
    for shape in (tileops.tile_shape, tileops.expand_shape):
        with pytest.raises(tileops.OutputTooLargeError, match=r"multiply to 2\*\*\d+ or more"):
            shape((1,), counts)


@pytest.mark.library("numpy")
def test_large_sizes_after_many_ones_are_counted():
    with pytest.raises(tileops.OutputTooLargeError, match=r"multiply to 18446744073709551616, "):
        tileops.tile_shape((1,) * 200 + (2**32, 2**32), 1)


@pytest.mark.parametrize("shape", [(2**62, 1, 1), (2**63, 1, 1), (2**33, 0, 2**33, 1, 1)])
def test_views_past_int64_never_reach_the_library(x, shape):
    with pytest.raises(tileops.OutputTooLargeError, match=r"2\*\*63-1"):
        tileops.expand(x, shape)
    with pytest.raises(tileops.OutputTooLargeError, match=r"2\*\*63-1"):
        tileops.expand_shape((2, 1), (*shape, 8))


@pytest.mark.library("array_api_strict", "jax", "dask")
def test_out_is_refused_by_libraries_that_cannot_write_to_it(xp, x):
    out = xp.make(np.zeros((2, 2), "V4"), "float32")
    with pytest.raises(TypeError, match=rf"out= takes arrays of NumPy.* an array of {xp.library};"):
        tileops.tile(x, 2, out=out)


WRITES = pytest.mark.library("numpy", "torch", "cupy")


def holding(xp, bits, layout):
    """Make a writable array in the given layout that holds these bits."""
    return {"plain": xp.plain, "strided": xp.strided}[layout](bits, "float32")


@WRITES
@pytest.mark.parametrize("layout", ["plain", "strided"])
@pytest.mark.parametrize(
    "shape, repeats",
    [((2, 1), (3, 4)), ((2, 3), (2, 1, 2)), ((), ()), ((0, 2), (2, 2)), ((3,), 0), ((2, 3), 1)],
)
def test_out_receives_the_result(xp, rng, layout, shape, repeats):
    bits = variants.random_bits(rng, "float32", 4, shape)
    counts = (repeats,) if isinstance(repeats, int) else repeats
    expected = reference.tiled(bits, counts)
    out = holding(xp, np.zeros(expected.shape, "V4"), layout)
    assert tileops.tile(xp.make(bits, "float32"), repeats, out=out) is out
    assert xp.bits(out).tobytes() == expected.tobytes()


@WRITES
@pytest.mark.parametrize("layout", ["plain", "strided"])
def test_out_receives_an_expansion(xp, bits, layout):
    out = holding(xp, np.zeros((3, 2, 4), "V4"), layout)
    assert tileops.expand(xp.make(bits, "float32"), (3, 1, 4), out=out) is out
    assert xp.bits(out).tobytes() == reference.expanded(bits, (3, 1, 4)).tobytes()


@WRITES
def test_a_refused_call_leaves_out_as_it_was(xp, bits, rng):
    x = xp.make(bits, "float32")
    before = variants.random_bits(rng, "float32", 4, (2, 3))
    out = xp.plain(before, "float32")
    narrow = xp.plain(before.view("V2").reshape(2, 6), "int16")
    refusals = [
        (tileops.ShapeError, "out has shape", lambda: tileops.tile(x, 2, out=out)),
        (tileops.DTypeError, "out has dtype", lambda: tileops.tile(x, 6, out=narrow)),
        (tileops.RepeatsError, "repeats", lambda: tileops.tile(x, -3, out=out)),
        (tileops.RepeatsError, "repeats", lambda: tileops.tile(x, 3.0, out=out)),
        (tileops.ShapeError, "axis 0", lambda: tileops.expand(x, (3, 3), out=out)),
        (
            tileops.OutputTooLargeError,
            "max_bytes",
            lambda: tileops.tile(x, 3, out=out, max_bytes=23),
        ),
        (tileops.OutputError, "copy=False", lambda: tileops.tile(x, 3, out=out, copy=False)),
        (tileops.DTypeError, "out", lambda: tileops.tile(x, 3, out=[0])),
    ]
    for error, text, call in refusals:
        with pytest.raises(error, match=text):
            call()
        assert xp.bits(out).tobytes() == before.tobytes()
        assert xp.bits(narrow).tobytes() == before.tobytes()


@WRITES
def test_overlapping_out_is_refused(xp, rng):
    before = variants.random_bits(rng, "float32", 4, (4, 6))
    buffer = xp.plain(before, "float32")
    for x, out, repeats in (
        (buffer, buffer, 1),
        (buffer[:2], buffer, (2, 1)),
        (buffer[:, :3], buffer, 2),
        (buffer[1:3, 1:3], buffer[:2, :4], 2),
        (buffer[0], buffer[0:1], (1, 1)),
        (buffer[:, 0], buffer[1, :4], 1),
        (buffer[1, :4], buffer[:, 0], 1),
    ):
        with pytest.raises(tileops.OutputError, match="out overlaps the input"):
            tileops.tile(x, repeats, out=out)
        assert xp.bits(buffer).tobytes() == before.tobytes()


@WRITES
def test_interleaved_out_that_shares_no_element_is_written(xp, rng):
    bits = variants.random_bits(rng, "float32", 4, (2, 6))
    buffer = xp.plain(bits, "float32")
    out = tileops.tile(buffer[:, ::2], 1, out=buffer[:, 1::2])
    assert xp.bits(out).tobytes() == np.ascontiguousarray(bits[:, ::2]).tobytes()
    assert xp.bits(buffer[:, ::2]).tobytes() == np.ascontiguousarray(bits[:, ::2]).tobytes()


@WRITES
def test_an_axis_of_one_index_may_have_any_stride(xp, rng):
    bits = variants.random_bits(rng, "float32", 4, (3,))
    out = xp.plain(np.zeros(6, "V4"), "float32")[None, ::2]
    tileops.tile(xp.make(bits, "float32"), (1, 1), out=out)
    assert xp.bits(out).tobytes() == bits.tobytes()


@WRITES
def test_an_out_that_overlaps_itself_is_refused(xp, bits):
    base = xp.plain(np.zeros((1, 1), "V4"), "float32")
    out = tileops.expand(base, (2, 3), copy=False)
    with pytest.raises(tileops.OutputError, match=r"overlap or interleave|read-only"):
        tileops.tile(xp.make(bits, "float32"), 3, out=out)


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "x, out",
    [
        (slice(3, 0, -1), slice(0, 3)),
        (slice(3, 0, -1), slice(2, 5)),
        (slice(0, 3), slice(4, 1, -1)),
        (slice(2, 5), slice(3, 0, -1)),
        (slice(0, 3), slice(2, 5)),
        (slice(2, 5), slice(0, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_overlap_is_detected_to_the_byte_in_either_direction(x, out, dtype):
    memory = np.arange(6, dtype=dtype)
    with pytest.raises(tileops.OutputError, match="overlaps the input"):
        tileops.tile(memory[x], 1, out=memory[out])
    assert memory.tolist() == [*range(6)]

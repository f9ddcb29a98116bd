"""Plans of copies: which bytes they move, and how they are cut."""

import ctypes
import math
import mmap
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import kernels
import tileops
from tileops._copies import cpu
from tileops._copies.job import make_parts
from tileops._copies.steps import Nest, blocks
from tileops._plan import cached_plan, contiguous
from tileops._rules import TILE
from tileops.execute import host
from tileops.execute._memory import Memory, address_of

pytestmark = pytest.mark.library("numpy")

CASES = 5_000  # per set of thresholds
MOST_REPEATS = 9_000


@st.composite
def strides(draw, shape, itemsize):
    """Draw steps of an array that nowhere overlaps itself, in any order, with gaps or reversed."""
    steps, step = [0] * len(shape), itemsize
    for axis in draw(st.permutations(range(len(shape)))):
        steps[axis] = step * draw(st.sampled_from([1, 1, 1, -1]))
        step *= shape[axis]
        step += draw(st.sampled_from([0, 0, 0, 1, itemsize]))
    return tuple(steps)


@st.composite
def copies(draw):
    """Draw a shape, repeats, an element size, the steps of source and target, and their offsets."""
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(draw(st.integers(0, rank))))
    repeats = tuple(draw(st.sampled_from([1, 2, 3, 4, 5, 8, 16])) for _ in range(rank))
    itemsize = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 12, 16, 24]))
    source = draw(strides(shape, itemsize))
    kept = tuple(draw(st.sampled_from([1, 1, 1, 0])) for _ in shape)
    source = tuple(step * k for step, k in zip(source, kept, strict=True))
    padded = (1,) * (rank - len(shape)) + shape
    result = tuple(n * r for n, r in zip(padded, repeats, strict=True))
    target = draw(strides(result, itemsize))
    offsets = draw(st.tuples(st.integers(0, 17), st.integers(0, 17)))
    return shape, repeats, itemsize, source, target, offsets


def addresses(start, shape, steps, itemsize):
    """Return the address of each byte of an array; the last axis counts the bytes of an element."""
    places = np.full((*shape, itemsize), start) + np.arange(itemsize)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        places += (np.arange(n) * step).reshape((n,) + (1,) * (len(shape) - axis))
    return places


def room(shape, steps, itemsize):
    """Return how many bytes lie before and after the first element's address."""
    ends = [step * (n - 1) for n, step in zip(shape, steps, strict=True)]
    return -sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + itemsize


def host_copy(plan, memories):
    """Copy as between memories of a CPU."""
    host._write_strided(plan, *memories, None)


def device_copy(plan, memories):
    """Copy with the GPU's kernel, or as the host does where the kernel is not worth launching."""
    if not kernels.run(plan, *memories):
        host._write_strided(plan, *memories, None)


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("copy", [host_copy, device_copy])
def test_random_copies_write_the_bytes_of_the_model_and_no_others(copy):
    @settings(
        max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(copies(), st.integers(0, 2**32))
    def check(case, seed):
        shape, repeats, itemsize, source, target, offsets = case
        plan = cached_plan(TILE, shape, repeats, itemsize)
        rng = np.random.default_rng(seed)
        places, buffers, starts = [], [], []
        for sizes, steps, offset in ((shape, source, offsets[0]), (plan.shape, target, offsets[1])):
            before, after = room(sizes, steps, itemsize)
            buffers.append(rng.integers(0, 256, offset + before + after + 16, dtype=np.uint8))
            starts.append(offset + before)
            places.append(addresses(offset + before, sizes, steps, itemsize))
        (x, out), (read, written) = buffers, places
        before = x.tobytes()
        index = [np.arange(m) % n for m, n in zip(plan.shape, plan.padded, strict=True)]
        read = read.reshape(*plan.padded, itemsize)
        expected = out.copy()
        expected[written] = x[read[np.ix_(*index)] if index else read]
        memories = [
            Memory(address_of(buffer) + start, sizes, steps, itemsize, buffer)
            for buffer, start, sizes, steps in zip(
                buffers, starts, (shape, plan.shape), (source, target), strict=True
            )
        ]
        copy(plan, memories)
        assert out.tobytes() == expected.tobytes()
        assert x.tobytes() == before

    check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fault ends a process, so a child's is used")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12: has threads
@pytest.mark.parametrize("place", ["begins", "ends"])
@pytest.mark.parametrize(
    "shape, repeats, itemsize",
    [
        *(((n, 1), (1, 3), itemsize) for n in (1000, 1001) for itemsize in (1, 2, 4)),
        *(((101, n), (3, 5), 1) for n in (3, 5, 15, 17, 31, 33)),
        *(((5, n), (1, 2), itemsize) for n in (101, 333) for itemsize in (1, 2)),
        *(((n,), (30,), 1) for n in (1, 7, 15, 16, 17, 1001)),
    ],
)
def test_a_kernel_reads_nothing_outside_its_source(shape, repeats, itemsize, place):
    """The pages around the source are protected, so that reading one byte of them is fatal."""
    size = math.prod(shape) * itemsize
    page = mmap.PAGESIZE
    inside = -(-size // page) * page
    pages = mmap.mmap(-1, inside + 2 * page)
    start = address_of(np.frombuffer(pages, np.uint8))
    first = page + (0 if place == "begins" else inside - size)
    x = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    pages[first : first + size] = x.tobytes()
    plan = cached_plan(TILE, shape, repeats, itemsize)
    result = np.empty(plan.nbytes + 16, np.uint8)
    result = result[-address_of(result) % 16 :][: plan.nbytes]
    source = Memory(start + first, shape, contiguous(shape, itemsize), itemsize, pages)
    target = Memory(
        address_of(result), plan.shape, contiguous(plan.shape, itemsize), itemsize, result
    )
    prepared = kernels.prepare(plan, source, target)
    kernels.library(prepared.variant)  # compiled before the fork
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for edge in (start, start + page + inside):
                protect = ctypes.CDLL(None).mprotect
                assert protect(ctypes.c_void_p(edge), ctypes.c_size_t(page), 0) == 0
            kernels.launch(prepared, source.address, target.address)
            x = x.view(f"V{itemsize}").reshape(shape)
            status = int(result.tobytes() != np.tile(x, repeats).tobytes())
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "shape, repeats, itemsize, steps, variant",
    [
        # outer, inner, crosses, is_run, bits, inner_bits
        ((2**33,), (5, 1), 1, (1,), (0, 1, False, False, 32, 32)),
        ((2**40,), (9, 1), 2, (2,), (0, 1, False, False, 64, 64)),
        ((2**30 + 1, 1), (1, 3), 1, (1, 1), (1, 2, False, False, 64, 32)),
        ((2**31 + 5, 3), (1, 5), 1, (3, 1), (1, 3, False, False, 64, 32)),
        ((2**31 + 5, 3), (1, 5), 1, (-7, -1), (1, 3, False, False, 64, 32)),
        ((2**33 + 5, 3), (1, 5), 1, (3, 1), (1, 3, False, False, 64, 32)),
        ((2**31 + 5, 3), (1, 5), 1, (2**28, 1), (1, 3, False, False, 64, 64)),
        ((2**20, 999), (3, 5), 1, (999, 1), (2, 1, True, True, 64, 32)),
        ((2**22, 2, 999), (3, 1, 5), 1, (1998, 999, 1), (2, 1, True, True, 64, 32)),
        ((3, 2**31 + 1), (2, 1), 1, (2**31 + 1, 1), (1, 1, True, True, 64, 64)),
        ((2**9, 2**23 + 1), (1, 3), 2, (2**25 + 4, 2), (2, 1, True, True, 64, 32)),
        ((2**6, 2**26), (2, 1), 4, (2**28, -4), (1, 1, True, False, 64, 32)),
        ((7, 2**30), (3, 1), 4, (-(2**32) - 16, -4), (1, 1, True, False, 64, 64)),
        ((5, 2**20), (2, 1), 1, (1, -(2**30)), (1, 1, True, False, 32, 64)),
        ((2**14, 2**20), (2**18, 1), 16, (2**24, 16), (0, 1, False, False, 64, 64)),
    ],
)
def test_a_kernel_computes_the_addresses_of_sizes_that_no_memory_holds(
    shape, repeats, itemsize, steps, variant
):
    """Check stores near powers of two that numbers may exceed, at both ends, and at random."""
    source, target = 2**52, 2**56
    plan = cached_plan(TILE, shape, repeats, itemsize)
    strides = contiguous(plan.shape, itemsize)
    prepared = kernels.prepare(
        plan,
        Memory(source, shape, steps, itemsize, None),
        Memory(target, plan.shape, strides, itemsize, None),
    )
    assert prepared.variant[2:] == variant
    stores = int(prepared.launch["stores"])
    rng = np.random.default_rng(stores)
    near = [2**power + d for power in (24, 27, 28, 29, 30, 31, 32, 35) for d in range(-2, 3)]
    found = [0, 1, *near, *rng.integers(0, stores, 100).tolist(), stores - 2, stores - 1]
    last = prepared.grid[1] - 1
    step, repeats, at_once = (
        int(prepared.launch[name]) for name in ("stride", "repeats", "at_once")
    )
    written = 0
    for store in (n for n in found if n < stores):
        block = int(rng.integers(0, last + 1)) if store % 2 else last
        above, place = divmod(store * prepared.variant.store, step or 2**64)
        first = target + above * step * repeats + place
        addresses = [first + n * step for n in range(repeats)[block * at_once :][:at_once]]
        written_by = kernels.stores_of(prepared, source, target, store, block)
        if len(written_by[0][1]) < prepared.variant.store:  # a tail, stored in pieces
            written_by = [(written_by[0][0], b"".join(values for _, values in written_by))]
        assert [address for address, _ in written_by] == addresses
        for address, values in written_by:
            for place, value in enumerate(values, address - target):
                assert 0 <= place < plan.nbytes
                index = np.unravel_index(place // itemsize, plan.shape)
                where = source + place % itemsize
                own = index[len(index) - len(shape) :]
                for n, i, stride in zip(shape, own, steps, strict=True):
                    where += int(i) % n * stride
                assert value == kernels.read(where)
                written += 1
    assert written > 1000


@pytest.mark.parametrize("dtype", ["?", "f2", ">u2", "f4", "M8[us]", "S5", "S32"])
@pytest.mark.parametrize("repeats", [2, 3, 4, 5, 6, 8, 9, 12, 16, 20, 24, MOST_REPEATS])
def test_each_element_is_followed_by_its_repeats(dtype, repeats, thresholds):
    rng = np.random.default_rng(repeats)
    dtype = np.dtype(dtype)
    many = (331,) if thresholds == "tiny" else (2047, 32769)  # more rows take no other steps
    for rows in (1, 2, 63, *(many if repeats < MOST_REPEATS else (64,))):
        memory = rng.integers(0, 2 if dtype.kind == "b" else 256, rows * dtype.itemsize, np.uint8)
        expected = memory.reshape(rows, 1, -1)[np.arange(rows), np.zeros((repeats, 1), int)]
        expected = expected.swapaxes(0, 1).tobytes()
        for offset in (0, 1):
            room = np.zeros(memory.size + offset, np.uint8)
            room[offset:] = memory
            x = room[offset:].view(dtype).reshape(rows, 1)
            result = tileops.tile(x, (1, repeats))
            assert (result.dtype, result.shape) == (dtype, (rows, repeats))
            assert result.flags.c_contiguous
            assert result.flags.writeable
            assert result.tobytes() == expected
            filled = np.full(len(expected) + offset + 3, 7, np.uint8)
            out = filled[offset : len(expected) + offset].view(dtype).reshape(rows, repeats)
            assert tileops.tile(x, (1, repeats), out=out) is out
            assert filled.tobytes() == bytes([7] * offset) + expected + bytes([7] * 3)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_pairs_are_cut_at_even_places(threads):
    assert cpu.cut(Nest((2_000_003, 3), (1, 0), (3, 1), 1), threads)[0] % 2 == 0


@pytest.mark.parametrize("repeats", [33, 40, 50])
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_cut_no_row_where_there_are_enough_rows(repeats, threads):
    nest = Nest((repeats, 2**16), (0, 8), (2**19, 8), 8)
    assert cpu.cut(nest, threads)[1] == 2**16


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    steps=st.lists(st.booleans(), min_size=4, max_size=4),
    threads=st.integers(2, 8),
)
@example(sizes=[4, 4, 512, 4], steps=[True, False, True, False], threads=2)  # a wall of images
@example(sizes=[9, 3], steps=[False] * 4, threads=3)  # two axes, both cut to single rounds
def test_parts_of_long_rows_are_contiguous_and_enough_for_the_threads(sizes, steps, threads):
    sizes = [*sizes, 100]
    steps = [*steps[: len(sizes) - 1], True]
    source = tuple(width * step for width, step in zip(contiguous(sizes, 8), steps, strict=True))
    nest = Nest(tuple(sizes), source, contiguous(sizes, 8), 8)
    block = cpu.cut(nest, threads)
    inner = next((i for i, size in enumerate(block) if size > 1), len(block))
    assert block[inner + 1 :] == nest.sizes[inner + 1 :]
    assert block[:inner] == (1,) * inner
    parts = math.prod(math.ceil(n / size) for n, size in zip(sizes, block, strict=True))
    assert parts < 12 * threads
    assert parts >= 4 * threads or block == (1,) * len(block)


def test_an_outer_axis_of_short_rows_is_cut_however_few_rounds_it_has():
    nest = Nest((10, 1000, 4, 3), (4000, 3, 0, 1), (16_000, 12, 3, 1), 1)
    assert cpu.cut(nest, 5) == (2, 1000, 4, 3)


@pytest.mark.parametrize("threads", range(2, 9))
def test_each_thread_has_one_part_of_short_rows(threads):
    for rows in (1000, 1001, 100_003):
        nest = Nest((rows, 4, 3), (3, 0, 1), (12, 3, 1), 1)
        parts = blocks(nest.sizes, cpu.cut(nest, threads))
        taken = [along.stop - along.start for along, *_ in parts]
        assert len(taken) == threads
        assert max(taken) - min(taken) <= 2 * threads


def test_each_part_is_planned_for_its_own_sizes():
    nest = Nest((4, 2048), (18, 0), (2048 * 18, 18), 18)
    for part in make_parts(nest, 2):
        sizes = np.broadcast_to(np.uint8(0), nest.sizes)[part.slices].shape
        assert part.steps == cpu.plan_steps(nest._replace(sizes=sizes))
        assert part.steps != cpu.plan_steps(nest)


@pytest.mark.parametrize("threads", range(2, 9))
def test_threads_end_at_about_the_same_time(threads):
    for rows in (*range(2, 200), 1000):
        nest = Nest((rows, 2**16), (0, 8), (2**19, 8), 8)
        ends = [0] * threads
        for part in blocks(nest.sizes, cpu.cut(nest, threads)):
            first = min(range(threads), key=ends.__getitem__)
            ends[first] += math.prod(along.stop - along.start for along in part)
        assert max(ends) <= 1.25 * sum(ends) / threads, rows


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize(
    "dtype, repeats", [("u1", 16), ("u2", 8), ("f4", 4), ("u1", 12), ("u1", 4), ("f4", 2)]
)
def test_repeats_of_elements_are_read_from_rows_with_gaps(dtype, repeats):
    rng = np.random.default_rng(repeats)
    x = rng.integers(0, 200, (50000, 5, 1)).astype(dtype)[:, :3]
    expected = b"".join(element.tobytes() * repeats for element in x.reshape(-1))
    out = np.zeros((50000, 3, repeats), dtype)
    assert tileops.tile(x, (1, 1, repeats), out=out) is out
    assert out.tobytes() == expected
    assert tileops.tile(x, (1, 1, repeats)).tobytes() == expected


def test_repeats_of_bytes_are_written_to_rows_with_gaps():
    x = np.random.default_rng(0).integers(1, 256, (20_001, 1), np.uint8)
    room = np.zeros((20_001, 5), np.uint8)
    tileops.tile(x, (1, 3), out=room[:, :3])
    assert room.tobytes() == b"".join(bytes([byte] * 3 + [0, 0]) for byte in x[:, 0])


@pytest.mark.parametrize("dtype, repeats", [("u1", 2), ("u1", 4), ("u2", 4), ("f4", 2), ("u1", 24)])
def test_repeats_are_written_with_gaps_between_them_and_in_another_order(dtype, repeats):
    """Only repeats that lie side by side can be combined into wide words."""
    x = np.random.default_rng(0).integers(0, 200, (5000, 1)).astype(dtype)
    room = np.full((5000, 3 * repeats), 7, dtype)
    tileops.tile(x, (1, repeats), out=room[:, ::3])
    rows = ([value, 7, 7] * repeats for value in x[:, 0].tolist())
    assert room.tolist() == list(rows)
    columns = np.full((repeats, 5000), 7, dtype)
    tileops.tile(x, (1, repeats), out=columns.T)
    assert columns.tolist() == [x[:, 0].tolist()] * repeats


def test_repeats_of_bytes_are_written_in_four_threads_at_once():
    rng = np.random.default_rng(0)
    sources = [rng.integers(0, 256, (700_001, 1), np.uint8) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda x: tileops.tile(x, (1, 3)), sources))
    for x, result in zip(sources, results, strict=True):
        assert result.tobytes() == x[:, [0, 0, 0]].tobytes()

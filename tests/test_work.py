"""The work of copies, counted instead of timed: words, calls, bytes written and staged."""

import math
import mmap
import os
import re
from ast import literal_eval
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from benchmarks.gpu.workloads import workloads_at
from benchmarks.workloads import WORKLOADS, random_array

import tileops
from memory import peak_of
from tileops._copies import job
from tileops._copies.chains import plan_chain
from tileops._copies.cost import threads_for
from tileops._copies.cpu import column_axes, cut, host_words, plan_steps
from tileops._copies.gpu import plan_device
from tileops._copies.job import is_assigned, make_contiguous_job
from tileops._copies.steps import Copy, Nest, Pairs, make_nest
from tileops._plan import cached_plan, contiguous
from tileops._rules import TILE
from tileops.execute import host, moving
from tileops.execute._memory import address_of

pytestmark = pytest.mark.library("numpy")


class Work(NamedTuple):
    """The work that a plan does."""

    word: int
    """The bytes of an element that is moved."""
    calls: int
    """The number of assignments."""
    passes: float
    """Bytes written to the result or to a temporary, per byte of the result."""
    temporary: int
    """The bytes of all temporaries."""


def nest_between(shape, repeats, itemsize):
    """Describe a copy between contiguous arrays."""
    plan = cached_plan(TILE, shape, repeats, itemsize)
    steps = (contiguous(sizes, itemsize) for sizes in (shape, plan.shape))
    return make_nest(plan, *steps, itemsize)


def chain_between(shape, repeats, itemsize, is_new=True):
    """Plan the repetitions of rows between contiguous arrays."""
    return plan_chain(cached_plan(TILE, shape, repeats, itemsize), itemsize, is_new)


def nest_of(workload):
    return nest_between(workload.shape, workload.repeats, workload.itemsize)


def assert_takes_a_quarter(x, repeats, more=0):
    """Check the peak memory beyond a result, new or given, of a copy that was planned before."""
    out = np.tile(x, repeats)
    for kept, call in (
        (out.nbytes, lambda: tileops.tile(x, repeats)),
        (0, lambda: tileops.tile(x, repeats, out=out)),
    ):
        call()
        assert peak_of(call) - kept <= out.nbytes / 4 + more


def work_of(nest, steps):
    """Carry out steps on arrays with sizes but a single element, and count the work."""
    result, other = np.zeros(1), np.zeros(1)
    written, stages = {True: [], False: []}, {}

    class Counting(moving.Mover):
        def assign(self, target, source):
            assert np.broadcast_shapes(target.shape, source.shape) == target.shape
            written[np.shares_memory(target, result)].append(target.size)

        def empty(self, sizes, dtype):
            stages[sizes] = math.prod(sizes) * nest.word
            return np.broadcast_to(other, sizes)

        def pair(self, target, source, most):
            *outer, rows, n = target.shape
            self.empty((2 * most,), None)
            doubled = np.broadcast_to(other, (*outer, 2 * rows))
            self.assign(doubled, doubled)
            for i in range(n):
                self.assign(target[..., i], source[..., i])

    ghosts = [np.broadcast_to(array, nest.sizes) for array in (result, other)]
    Counting().carry_out(steps, *ghosts)
    assert sum(written[True]) * nest.word == nest.nbytes, "each byte of the result once"
    sizes = [*written[True], *written[False]]
    return Work(nest.word, len(sizes), sum(sizes) * nest.word / nest.nbytes, sum(stages.values()))


ON_A_CPU = {
    # bytes of an element, calls
    "repeat_kv": (8, 1),
    "beam": (8, 1),
    "mask": (8, 1),
    "positional": (8, 1),
    "gather": (8, 1),
    "grid_t": (1024, 1),
    "grid_h": (1024, 1),
    "grid_w": (8, 1),
    "channels": (8, 1),
    "images_512": (1536, 1),
    "images_500": (1500, 1),
    "images_333": (999, 1),
    "gray_to_rgb": (1, 196),
    "rows_of_3": (1, 435),
}

COMPUTED = {"gray_to_rgb": 5 / 3}
"""Passes where a temporary holds doubled bytes, which are two of the three repeats."""

ON_A_GPU = {
    # bytes of a load, repeats that a thread writes, repeats
    "repeat_kv": (16, 4, 4),
    "beam": (16, 5, 5),
    "mask": (16, 1, 1),
    "positional": (16, 4, 64),
    "gather": (8, 1, 1),
    "grid_t": (16, 1, 1),
    "grid_h": (16, 4, 16),
    "grid_w": (16, 4, 704),
    "channels": (16, 4, 4),
    "images_512": (16, 4, 4),
    "images_500": (4, 4, 4),
    "images_333": (1, 1, 1),
    "gray_to_rgb": (1, 1, 1),
    "rows_of_3": (1, 1, 1),
}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_the_work_of_a_workload_on_a_cpu(workload):
    nest = host_words(nest_of(workload), 16)
    work = work_of(nest, plan_steps(nest))
    assert (work.word, work.calls) == ON_A_CPU[workload.name]
    assert work.passes == COMPUTED.get(workload.name, 1)
    if workload.name in COMPUTED:
        assert work.temporary <= min(workload.result_bytes / 4, 2**20)
    else:
        assert work.temporary == 0


@pytest.mark.parametrize("workload", list(workloads_at(1.0)), ids=lambda workload: workload.name)
def test_the_work_of_a_workload_on_a_gpu(workload):
    """Every store has 16 bytes, which are loaded once for all repeats that a thread writes."""
    launch = plan_device(nest_of(workload), 16, 16, workload.itemsize)
    variant = launch.variant
    assert (variant.load, launch.at_once, launch.repeats) == ON_A_GPU[workload.name]
    assert variant.store == 16
    assert variant.bits == 32
    assert launch.stores * launch.repeats * 16 == workload.result_bytes
    assert launch.tail == 0


@pytest.mark.parametrize(
    "shape, repeats, itemsize, expected",
    [
        # rows of at least 16 bytes: those of 999 as one run each, at any address
        ((1000, 1000), (1, 2), 1, (8, 16, False)),
        ((1000, 999), (1, 2), 1, (1, 16, True)),
        ((1000, 999), (1, 2), 2, (2, 16, True)),
        ((1000, 999), (1, 2), 4, (4, 16, False)),
        # narrower rows, piece by piece
        ((1000, 3), (1, 5), 1, (1, 16, False)),
        ((1000, 1), (1, 3), 2, (2, 16, False)),
    ],
)
def test_stores_on_a_gpu_are_put_together_from_what_divides_the_rows(
    shape, repeats, itemsize, expected
):
    variant = plan_device(nest_between(shape, repeats, itemsize), 16, 16, itemsize).variant
    assert (variant.load, variant.store, variant.is_run) == expected


@pytest.mark.parametrize("of, to, load, store", [(1, 16, 1, 16), (4, 16, 4, 16), (16, 4, 4, 4)])
def test_addresses_limit_loads_and_stores_separately_on_a_gpu(of, to, load, store):
    variant = plan_device(nest_between((1000, 64), (1, 3), 1), of, to, 1).variant
    assert (variant.load, variant.store) == (load, store)


def test_the_last_store_on_a_gpu_need_not_be_full():
    launch = plan_device(nest_between((2**20 + 1, 1), (1, 3), 1), 16, 16, 1)
    assert (launch.variant.store, launch.tail) == (16, 3)
    assert launch.stores == 3 * 2**16 + 1


@pytest.mark.parametrize(
    "shape, repeats, at_once",
    [
        *(((2**20,), (8, 1), 8), ((2**20,), (9, 1), 4)),
        # more repeats than blocks along an axis
        ((2**14,), (2**19, 1), 9),
        # repeats 2**16 bytes apart; if they are closer, each has a thread of its own
        *(((2**12,), (2**10, 1), 4), ((2**12 - 1,), (2**10, 1), 1)),
    ],
)
def test_a_thread_on_a_gpu_writes_several_repeats(shape, repeats, at_once):
    launch = plan_device(nest_between(shape, repeats, 16), 16, 16, 16)
    assert launch.at_once == at_once
    assert launch.repeats == (1 if at_once == 1 else repeats[0])


@pytest.mark.parametrize(
    "itemsize, alignment, is_worth_it",
    [
        *((1, 2, False), (1, 4, True), (2, 4, False), (2, 8, True), (4, 8, False), (4, 16, True)),
        *((8, 8, False), (16, 16, True)),
    ],
)
def test_stores_of_few_elements_are_left_to_the_library(itemsize, alignment, is_worth_it):
    launch = plan_device(nest_between((2**20,), (4, 1), itemsize), 16, alignment, itemsize)
    assert (launch is not None) == is_worth_it


@pytest.mark.parametrize(
    "shape, repeats, itemsize, steps, bits",
    [
        *(((2**29,), (3, 1), 4, (4,), (32, 32)), ((2**31 - 4,), (4, 1), 16, (16,), (32, 32))),
        # 2**31 pieces in all, and more
        *(((2**29, 1), (1, 4), 1, (1, 1), (32, 32)), ((2**29 + 4, 1), (1, 4), 1, (1, 1), (64, 32))),
        # pieces of a period that lie 2**31 bytes apart in the source, and more
        *(((2**6, 20), (3, 1), 1, (2**5, 2**26), (32, 32)),),
        *(((2**6, 20), (3, 1), 1, (2**5, 2**28), (32, 64)),),
        # steps of the outermost loop, of which a store takes only a few rounds
        ((2**24, 3), (1, 5), 1, (2**20, 1), (32, 32)),
        # negative steps
        ((2**6, 20), (3, 1), 1, (-(2**5), -(2**28)), (32, 64)),
    ],
)
def test_gpu_indices_have_64_bits_only_where_32_are_too_few(shape, repeats, itemsize, steps, bits):
    plan = cached_plan(TILE, shape, repeats, itemsize)
    nest = make_nest(plan, steps, contiguous(plan.shape, itemsize), itemsize)
    variant = plan_device(nest, 16, 16, itemsize).variant
    assert (variant.bits, variant.inner_bits) == bits


def test_a_short_period_is_widened_twice():
    plan = cached_plan(TILE, (3,), (2**24,), 1)
    nest = host_words(make_nest(plan, (1,), (1,), 1), 1)
    work = work_of(nest, plan_steps(nest))
    assert work.calls < 10
    assert work.passes < 1.02


@pytest.mark.parametrize(
    "itemsize, repeats, word", [(1, 12, 4), (1, 16, 8), (1, 24, 8), (2, 6, 4), (2, 8, 8), (4, 6, 8)]
)
def test_repeats_are_combined_into_words_before_they_are_written(itemsize, repeats, word):
    """Each word holds some repeats, and is written as often as its row holds it."""
    in_bytes = nest_between((2**20, 1), (1, repeats), itemsize)
    for alignment in (16, itemsize):
        nest = host_words(in_bytes, alignment)
        assert (nest.word, nest.repeats_per_word) == (word, word // itemsize)
        work = work_of(nest, plan_steps(nest))
        assert (work.passes, work.temporary) == (1, 0)


@pytest.mark.parametrize(
    "shape, repeats, itemsize, passes",
    [
        ((100, 16, 1), (1, 40, 8), 4, 1 + 1 / 40),
        ((300, 64, 1), (1, 40, 8), 4, 1 + 1 / 40),
        ((256, 512, 1), (1, 4, 3), 4, 1 + 1 / 4),
        ((139808, 1), (5, 3), 4, 1 + 1 / 5),
        ((689, 4), (8, 100), 8, 1 + 1 / 8 + 20 / (8 * 100)),
        ((16, 1), (20_000, 2), 4, 1 + 3333 / 20_000),
        ((29, 2), (7, 2048), 3, 1 + 1 / 7 + 64 / (7 * 2048)),
        ((3,), (10_000,), 1, 1 + 1666 / 10_000),
        ((20, 20), (20, 1000), 1, 1 + 1 / 20 + 20 / (20 * 1000)),
    ],
)
def test_short_rows_are_put_together_once_and_then_repeated(shape, repeats, itemsize, passes):
    nest = host_words(nest_between(shape, repeats, itemsize), 16)
    work = work_of(nest, plan_steps(nest))
    assert work.passes == passes
    assert work.calls < 64
    assert work.temporary <= nest.nbytes / 4


def test_rows_of_several_passes_are_put_together_even_for_two_repeats():
    nest = host_words(nest_between((20_000, 1, 3), (2, 2, 1), 4), 16)
    assert nest.sizes == (2, 20_000, 2, 3)
    assert work_of(nest, plan_steps(nest)).passes == 1.5


@pytest.mark.parametrize("row, repeats, word", [(3, 8, 1), (6, 4, 2), (12, 2, 4)])
def test_rows_are_written_in_passes_up_to_24_bytes_wide(row, repeats, word):
    for n, is_passed in ((repeats, True), (repeats + 1, False)):
        nest = host_words(nest_between((2**15, row), (1, n), 1), 16)
        assert (column_axes(nest) == 2) == is_passed
        assert nest.word == word or not is_passed


@pytest.mark.parametrize("row, word", [(6, 2), (12, 4)])
def test_wider_rows_are_moved_as_one_element_until_they_are_repeated_often(row, word):
    """Three passes down six repeats of each row begin half as many loops as there are rows."""
    for n, moved in ((5, row), (6, word)):
        assert host_words(nest_between((2**15, row), (1, n), 1), 16).word == moved


def test_rows_of_elements_are_written_in_passes_up_to_48_bytes_wide():
    for repeats, axes in ((9, 1), (10, 0)):
        nest = host_words(nest_between((2**15, 5), (1, repeats), 1), 16)
        assert nest.word == 5
        assert column_axes(nest) == axes


@pytest.mark.parametrize(
    "repeats, itemsize, copies",
    [(6, 4, 2), (8, 4, 1), (2, 1, 2), (6, 1, 1), (28, 1, 1), (2, 16, 1)],
)
def test_words_are_computed_for_repeats_of_up_to_24_bytes(repeats, itemsize, copies):
    nest = host_words(nest_between((2**15, 1), (1, repeats), itemsize), 16)
    assert nest.repeats_per_word == copies


def test_computed_words_divide_the_steps_from_row_to_row():
    plan = cached_plan(TILE, (2**15, 1), (1, 4), 1)
    for step, copies in ((4, 4), (8, 4), (6, 1), (5, 1)):
        nest = host_words(make_nest(plan, (1, 1), (step, 1), 1), 16)
        assert nest.repeats_per_word == copies


@pytest.mark.parametrize(
    "run, repeats, is_staged",
    [(47, 9000, True), (48, 9000, False), (35, 8192, True), (35, 8191, False)],
)
def test_many_runs_of_less_than_48_bytes_are_put_together(run, repeats, is_staged):
    nest = host_words(nest_between((run,), (repeats,), 1), 16)
    assert (work_of(nest, plan_steps(nest)).temporary > 0) == is_staged


@pytest.mark.parametrize(
    "row, repeats, some",
    [
        # An element in each row: about the root of twice its repeats, and a divisor of them
        *[(7, 47, None), (7, 48, 8), (7, 999, 37), (17, 50, 10), (5, 256, 32)],
        # The repeats have about 512 bytes
        *[(5, 20_000, 80), (35, 48, 8), (35, 1000, 20), (35, 997, 12)],
        # They have to have 48 bytes
        *[(5, 49, None), (5, 50, 10), (3, 127, None), (3, 128, 16)],
    ],
)
def test_some_repeats_of_each_row_are_put_together(row, repeats, some):
    nest = host_words(nest_between((10_000, row), (1, repeats), 1), 16)
    steps = plan_steps(nest)
    while isinstance(steps, moving.Slices):
        steps = steps.body
    assert (steps.sizes[1] if isinstance(steps, moving.Stage) else None) == some


def test_runs_are_moved_as_elements_up_to_2_kib():
    for run, word in ((2048, 2048), (2064, 8)):
        assert host_words(nest_between((1000, run), (1, 3), 1), 16).word == word


@pytest.mark.parametrize(
    "source, target, alignment, word",
    [(4096, 8192, 16, 8), (4096, 8192, 4, 4), (4098, 8192, 16, 2), (4096, 8196, 16, 4)],
)
def test_words_of_long_runs_divide_addresses_and_steps(source, target, alignment, word):
    nest = Nest((1000, 2064), (source, 1), (target, 1), 1)
    assert host_words(nest, alignment).word == word


def test_repeats_of_bytes_are_written_in_pairs_in_each_part_that_has_many():
    for rows, is_paired in ((2**16, True), (2**16 - 1, False)):
        nest = Nest((2, rows, 3), (2**17, 1, 0), (2**19, 3, 1), 1)
        assert ("Pairs" in repr(plan_steps(nest))) == is_paired


def test_pairs_are_written_in_blocks_of_an_even_number_of_rows():
    """So each block begins with a pair; its temporary has no more words than the block has rows."""
    for rows in range(2**16, 2**16 + 100):
        steps = plan_steps(Nest((rows, 3), (1, 0), (3, 1), 1))
        assert steps.axis == 0
        assert steps.width % 2 == 0
        assert steps.body == Pairs(steps.width)


@pytest.mark.parametrize(
    "sizes, axes",
    [
        *[((1024, 3), 1), ((1023, 3), 0)],
        *[((1000, 10, 5), 1), ((1000, 9, 5), 0)],
        *[((64, 48, 4, 6), 2), ((64, 47, 4, 6), 0)],
        *[((1024, 12), 1), ((1024, 13), 0)],
        *[((1024, 4, 6), 2), ((1024, 5, 5), 0)],
    ],
)
def test_passes_need_1024_rows_and_half_as_many_loops(sizes, axes):
    """There is one pass for each word of a row: up to 12 words, and 24 of them in several axes."""
    assert column_axes(Nest(sizes, contiguous(sizes, 2), contiguous(sizes, 1), 1)) == axes


def test_loops_over_repeats_of_short_rows_are_cut_where_each_part_has_many():
    """Each part puts its rows together again, so rows are cut where a part has few repeats."""
    for repeats, block in ((63, (63, 500)), (64, (32, 1000))):
        nest = host_words(nest_between((1000, 12), (repeats, 10), 1), 16)
        assert cut(nest, 2)[:2] == block


@pytest.mark.parametrize("itemsize, few, more", [(8, 2, 3), (4, 4, 5), (2, 4, 5), (1, 9, 10)])
def test_few_repeats_of_a_number_are_written_in_passes(itemsize, few, more):
    """Each pass goes down all rows; NumPy's own repetition starts again for each row."""
    for repeats, is_passed in ((2, True), (few, True), (more, False)):
        assert (not chain_between((2**17, 1), (1, repeats), itemsize)) == is_passed
    assert chain_between((2**12, 1), (1, few), itemsize) == ((2**12, few),)


@pytest.mark.parametrize(
    "row, most",
    [(1, 12280), (8, 12280), (32, 12280), (3, 32), (5, 64), (12, 128), (48, 12280), (128, 12280)],
)
def test_one_row_is_repeated_by_the_library_while_that_costs_less_than_blocks(row, most):
    for kib, is_repeated in ((most, True), (2 * most, False)):
        assert bool(chain_between((row,), (kib * 1024 // row, 1), 1)) == is_repeated


@pytest.mark.parametrize(
    "shape, repeats, itemsize, new, used",
    [
        ((2048, 8), (3, 2), 8, ((2048, 2), (1, 3)), ((2048, 2), (1, 3))),
        # From the inside out, the temporary would have 1 MiB
        ((256, 16), (2, 32), 8, ((1, 2), (512, 32)), ()),
        ((4096, 16), (3, 2), 8, (), ()),
        # A temporary would take longer to write and read than a plan of one copy
        ((48, 3530), (4, 4), 1, (), ()),
        # A plan of one copy would start its innermost loop for each row of six bytes
        ((6280, 2, 1), (1, 11, 3), 1, ((12_560, 3), (6280, 11)), ((12_560, 3), (6280, 11))),
        # Many words are faster to compute
        ((3000, 1), (3, 2), 1, ((3000, 2), (1, 3)), ((3000, 2), (1, 3))),
        ((400_000, 1), (3, 2), 1, (), ()),
        # Few rows, repeated so often that each repetition costs more than its bytes in a plan
        ((498, 3), (2, 2720), 1, (), ()),
        # From the inside out, the last row would have 136 KiB; out= is repeated in that order only
        ((17, 64), (16, 16), 8, ((1, 16), (272, 16)), ((17, 16), (1, 16))),
        # Many rows would take longer to repeat than by a plan
        ((15_522, 3, 1), (1, 3, 4), 2, (), ()),
        ((956, 10, 1), (1, 7, 4), 2, ((9560, 4), (956, 7)), ((9560, 4), (956, 7))),
        # A temporary would have 4 MiB, which only a source may have
        ((7448, 35, 1), (2, 1, 8), 2, (), ()),
        ((141_884, 15), (1, 2), 2, ((141_884, 2),), ()),
        # One repetition would be a copy, and threads share the copy of 800 bytes
        ((100, 3), (1, 50), 1, ((100, 50),), ()),
        ((8, 4), (37_620, 25), 1, ((8, 25), (1, 37_620)), ()),
    ],
)
def test_repetitions_follow_each_other_where_that_costs_less_than_a_plan(
    shape, repeats, itemsize, new, used
):
    chains = [chain_between(shape, repeats, itemsize, is_new) for is_new in (True, False)]
    assert chains == [new, used]


def test_repetitions_of_a_job_are_those_into_given_memory():
    plan = cached_plan(TILE, (100, 3), (1, 50), 1)
    assert plan_chain(plan, 1, is_new=True) == ((100, 50),)
    assert make_contiguous_job(plan, 1, 16).chain == ()
    plan = cached_plan(TILE, (1000, 3, 1), (2, 3, 4), 1)
    assert plan_chain(plan, 1, is_new=True) == make_contiguous_job(plan, 1, 16).chain
    assert plan_chain(plan, 1, is_new=True) == ((3000, 4), (1000, 3), (1, 2))


def test_repeats_without_rows_between_them_are_one_repetition():
    assert chain_between((1, 1, 3), (5, 4, 2), 1) == ((1, 40),)
    assert chain_between((2, 1, 1, 3), (1, 5, 4, 2), 1) == ((2, 40),)


@pytest.mark.parametrize(
    "rows, row, repeats, is_repeated",
    [
        *[(200, 5, 100, True), (200, 5, 200, False), (40, 5, 400, True), (40, 5, 600, False)],
        *[(200, 24, 100, True), (200, 24, 150, False), (200, 16, 2000, True)],
    ],
)
def test_short_rows_that_are_repeated_often_are_put_together(rows, row, repeats, is_repeated):
    assert chain_between((rows, row), (1, repeats), 1) == ((rows, repeats),) * is_repeated


@pytest.mark.parametrize(
    "rows, row, repeats, chain",
    [
        # NumPy has a loop for these elements, and two threads are not faster than that loop
        (2000, 32, (1, 250), ((2000, 250),)),
        # For other elements, two threads are faster
        (1000, 48, (2, 150), ()),
        (1000, 24, (1, 600), ()),
    ],
)
def test_a_result_that_two_threads_write_in_less_time_is_not_repeated(rows, row, repeats, chain):
    assert nest_between((rows, row), repeats, 1).nbytes > 13 * 2**20
    assert chain_between((rows, row), repeats, 1) == chain
    assert not chain_between((rows, row), repeats, 1, is_new=False)


@pytest.mark.parametrize(
    "shape, repeats, itemsize, gap, expected",
    [
        # Few rows, or many long ones
        ((128, 16), (1, 4), 1, 0, True),
        ((129, 16), (1, 4), 1, 0, False),
        ((8192, 512), (1, 2), 1, 0, False),
        ((8192, 513), (1, 2), 1, 0, True),
        ((512, 1024), (4, 1), 4, 0, True),
        # If the target has gaps, more rows count as few
        ((1024, 16), (1, 4), 1, 8, True),
        ((1025, 16), (1, 4), 1, 8, False),
        ((4096, 1), (1, 3), 2, 2, True),
        ((4097, 1), (1, 3), 2, 2, False),
        # Two threads write in less time than one assignment
        ((3 * 2**20 - 1,), (4,), 1, 0, True),
        ((3 * 2**20,), (4,), 1, 0, False),
        # Elements that no instruction moves are put together from 8192 on, narrow ones
        *[((1023, 1), (1, 8), 12, 0, True), ((1025, 1), (1, 8), 12, 0, False)],
        *[((1025, 1), (1, 8), 47, 0, False), ((1025, 1), (1, 16), 48, 0, True)],
        ((7,), (1,), 4, 0, True),
        ((1,), (1,), 4, 0, True),
    ],
)
def test_few_rows_and_long_ones_are_assigned_without_a_plan(
    shape, repeats, itemsize, gap, expected
):
    plan = cached_plan(TILE, shape, repeats, itemsize)
    wide = (*plan.shape[:-1], plan.shape[-1] + gap)
    target = contiguous(wide, itemsize)
    assert is_assigned(plan, contiguous(shape, itemsize), target, itemsize) == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_scattered_elements_are_assigned_without_a_plan(order):
    plan = cached_plan(TILE, (100, 100), (1, 2), 4)
    source = contiguous((100, 100), 4) if order == "C" else (4, 400)
    target = (4, 400) if order == "C" else contiguous((100, 200), 4)
    assert is_assigned(plan, source, target, 4)


@pytest.mark.parametrize(
    "shape, repeats, itemsize, source",
    [
        ((512, 2047), (1, 1), 1, (1, 512)),  # scattered bytes
        ((511, 1), (1, 2047), 1, (1, 1)),  # a byte in each row
        ((2, 1023), (512, 1), 1, (1023, 1)),  # long rows
    ],
)
def test_no_job_is_planned_for_few_or_long_rows_below_1_mib(shape, repeats, itemsize, source):
    plan = cached_plan(TILE, shape, repeats, itemsize)
    target = contiguous(plan.shape, itemsize)
    call = (plan, source, target, itemsize)
    is_assigned.cache_clear()
    before = job.make_job.cache_info()
    assert is_assigned(*call)
    assert job.make_job.cache_info() == before
    assert job.make_job(*call, 16).threads == 1  # as planning it would have found


def test_rows_of_several_references_are_repeated_by_the_library():
    """The library's result is reshaped and so is a view; an assigned result is not."""
    x = np.array([[1, "a"], [None, 2.0]], object)
    assert tileops.tile(x, (1, 4)).base is not None
    assert tileops.tile(x[:, :1], (1, 4)).base is None


@pytest.mark.parametrize(
    "shape, repeats, itemsize, threads",
    [
        # Long rows are shared for their bytes
        ((12_000, 256), (1, 4), 1, 1),
        ((12_300, 256), (1, 4), 1, 2),
        # Short rows are shared for what they cost, whether in passes, in pairs or in a loop
        ((200_000, 3), (1, 4), 1, 1),
        ((270_000, 3), (1, 4), 1, 2),
        ((400_000, 3), (1, 4), 1, 3),
        ((1_500_000, 1), (1, 3), 1, 1),
        ((2_000_000, 1), (1, 3), 1, 2),
        ((21_900, 5), (1, 13), 1, 1),
        ((22_100, 5), (1, 13), 1, 2),
        # Passes start again for each repeat
        ((50_000, 3), (1, 16), 1, 2),
        # Elements of 7 and 32 bytes, and computed words
        ((300_000, 7), (1, 2), 1, 2),
        ((120_000, 16), (1, 2), 2, 1),
        ((200_000, 16), (1, 2), 2, 3),
        ((300_000, 1), (1, 4), 4, 1),
        ((500_000, 1), (1, 4), 4, 2),
        # A megabyte that costs little more than its bytes
        ((300_000, 2), (1, 2), 1, 1),
    ],
)
def test_copies_are_shared_for_their_bytes_or_for_what_they_cost(shape, repeats, itemsize, threads):
    nest = host_words(nest_between(shape, repeats, itemsize), 16)
    assert threads_for(nest) == threads


def test_copies_of_scattered_elements_are_shared_for_what_their_elements_cost():
    """Transposed bytes cost as much each as wider elements, which lie as far apart."""
    for rows, threads in ((380, 1), (400, 2)):
        nest = make_nest(cached_plan(TILE, (4096, rows), (1, 1), 1), (1, 4096), (rows, 1), 1)
        assert threads_for(host_words(nest, 16)) == threads


def test_repetitions_are_not_given_up_for_threads_where_bytes_are_few():
    call = ((18_268, 1, 2, 1), (2, 8, 1, 5), 2)
    assert threads_for(host_words(nest_between(*call), 16)) == 2
    assert chain_between(*call)
    assert chain_between(*call, is_new=False)


def test_a_small_new_result_of_many_short_rows_is_repeated_axis_by_axis(monkeypatch):
    monkeypatch.setattr(host, "write", None)
    x = np.arange(60, dtype="u1").reshape(20, 3)
    assert tileops.tile(x, (4, 8)).tobytes() == np.tile(x, (4, 8)).tobytes()
    for assigned in (x.reshape(5, 12), x[:2], x.view([("a", "u1")])):
        with pytest.raises(TypeError, match="not callable"):
            tileops.tile(assigned, (4, 8))


def test_consecutive_elements_of_any_width_are_a_run_even_if_the_target_has_gaps():
    """Repeats of a run are copied from where it lies: put together first, they are copied twice.

    The repeats of a single element do not lie side by side in the source, and are put together.
    """
    for shape, repeats, is_run in (((1, 1000), (300, 1), True), ((100, 1), (1, 3000), False)):
        plan = cached_plan(TILE, shape, repeats, 40)
        target = tuple(2 * stride for stride in contiguous(plan.shape, 40))
        nest = host_words(make_nest(plan, contiguous(shape, 40), target, 40), 16)
        assert (plan_steps(nest) == Copy()) == is_run


def test_a_transposed_target_is_written_in_the_order_of_its_memory():
    plan = cached_plan(TILE, (100, 3), (1, 4), 8)
    nest = make_nest(plan, (24, 8), (8, 800), 8)
    assert nest.sizes == (4, 3, 100, 8)
    assert host_words(nest, 16).sizes == (4, 3, 100)


def test_axes_without_effect_make_no_loops():
    plan = cached_plan(TILE, (2, 1, 3, 4), (5, 1, 1, 1), 4)
    assert make_nest(plan, (48, 48, 16, 4), (48, 48, 16, 4), 4).sizes == (5, 96)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_copy_takes_a_quarter_of_its_result_at_most(workload, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    x = random_array(workload.shape, workload.dtype)
    assert_takes_a_quarter(x, workload.repeats)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    "dtype, rows, repeats",
    [
        ("u1", (13308, 1, 1), (1, 4, 6)),
        ("u1", (1, 500, 1), (1, 37, 32)),
        ("u1", (65536, 1, 1), (1, 1, 16)),
        ("u1", (70000, 1, 1), (1, 1, 4)),
        ("u1", (1398092, 1, 1), (1, 1, 3)),
        ("u2", (40000, 1, 1), (1, 1, 8)),
        ("u4", (128, 512, 1), (1, 4, 8)),
        ("c16", (34952, 1, 1), (5, 1, 3)),
    ],
)
def test_computed_words_take_a_quarter_of_the_result_at_most(
    dtype, rows, repeats, step, monkeypatch
):
    monkeypatch.setattr(job, "_COPIED", 0)
    monkeypatch.setattr(job, "_READ_ONCE", 2**63)
    x = np.ones((rows[0], rows[1] * step, rows[2]), dtype)[:, ::step]
    assert_takes_a_quarter(x, repeats, more=2**16)  # NumPy 2.0 has larger buffers than later ones


def test_a_large_copy_of_scattered_elements_takes_a_quarter_of_its_result(monkeypatch):
    """The quarter is a copy of the input; in addition, each thread has a block."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    x = np.ones((3, 8 * 2**20), np.uint8).T
    out = np.empty((2 * x.shape[0], 6), np.uint8)
    assert peak_of(lambda: tileops.tile(x, (2, 2), out=out)) <= out.nbytes / 4 + 5 * 2**20


@pytest.mark.parametrize("repeats", [(1, 2), (2, 1), (3, 3), (2, 5), (2, 2, 2), (2, 2, 2, 2)])
@pytest.mark.parametrize("size", [1000, 2**16, 100_000, 390_000, 780_000, 2**20, 2**22])
@pytest.mark.parametrize("kind", ["apart", "read-only", "contiguous"])
def test_little_memory_is_taken_beyond_the_result(kind, size, repeats):
    shape = (1, 8, 2, size // 512, 64) if len(repeats) > 2 else (16, size // 8)
    x = np.ones(shape, np.uint8)[..., ::2]
    if kind != "apart":
        x = x.copy()
        x.flags.writeable = kind == "contiguous"
    assert_takes_a_quarter(x, repeats, more=4 * 2**20)


@pytest.mark.parametrize(
    "make, repeats, is_copied",
    [
        (lambda rng: rng.integers(0, 256, (1500, 3000), np.uint8).T, (2, 2), True),
        (lambda rng: rng.integers(0, 256, (1500, 3000), np.uint8).T, (1, 3), False),
        (lambda rng: rng.integers(0, 256, (2, 8 * 2**20, 1), np.uint8)[:, ::2], (2, 2, 1), True),
        (lambda rng: rng.integers(0, 256, (1500, 3001), np.uint8)[:, 1:], (2, 2), False),
        (lambda rng: rng.integers(0, 256, (3000, 1500), np.uint8)[:, ::-1], (2, 2), False),
        (lambda rng: rng.integers(0, 256, (300, 250, 64), np.uint8).view("V64").T, (1, 2, 2), True),
        (lambda rng: rng.integers(0, 256, (2, 3 * 2**20), np.uint8).T, (2, 2), True),
        (lambda _: np.broadcast_to(np.uint8(7), (2, 3 * 2**20)), (2, 2), False),
        (lambda rng: rng.integers(0, 256, (1024, 1024), np.uint8).T, (2, 1), True),
        (lambda rng: rng.integers(0, 256, (1025, 1024), np.uint8).T, (2, 1), False),
    ],
    ids=[
        *("transposed", "few repeats", "apart", "rows", "reversed"),
        *("wide", "pairs", "one element", "1 MiB", "more"),
    ],
)
def test_scattered_elements_are_copied_first_if_repeated_often(
    make, repeats, is_copied, rng, monkeypatch
):
    copied, contiguous = [], host._contiguous

    def spy(x, most_threads):
        copied.append(x.shape)
        return contiguous(x, most_threads)

    monkeypatch.setattr(host, "_contiguous", spy)
    x = make(rng)
    result = tileops.tile(x, repeats)
    assert result.tobytes() == np.tile(x, repeats).tobytes()
    assert copied == [x.shape] * is_copied


def test_several_long_rows_are_repeated(rng):
    x = rng.integers(0, 256, (2, 2**15), np.uint8)
    out = np.zeros((2, 520 * 2**15), np.uint8)
    tileops.tile(x, (1, 520), out=out)
    assert (out.reshape(2, 520, -1) == x[:, None]).all()


def test_a_long_row_is_repeated_without_much_memory():
    x = np.ones((1, 8192), np.uint8)
    out = np.ones((8192, 8192), np.uint8)
    tileops.tile(x, (8192, 1), out=out)
    assert peak_of(lambda: tileops.tile(x, (8192, 1), out=out)) < 2**16


@pytest.mark.parametrize(
    "shape, repeats",
    [((5, 3, 40), (300, 2, 4)), ((5, 7, 7), (300, 1, 4)), ((5, 5, 5, 1), (1, 3, 5000, 2))],
)
def test_a_copy_into_another_order_takes_a_quarter_of_its_result_at_most(shape, repeats):
    x = np.ones(shape, np.uint8)
    plan = cached_plan(TILE, shape, repeats, 1)
    for target in (plan.shape, plan.shape[::-1]):
        steps = contiguous(target, 1)
        steps = steps if target is plan.shape else steps[::-1]
        nest = host_words(make_nest(plan, x.strides, steps, 1), 16)
        work = work_of(nest, plan_steps(nest))
        assert work.temporary <= nest.nbytes / 4


def named(steps):
    """Name the steps of a plan as docs/copies.md does."""
    name = type(steps).__name__
    match steps:
        case moving.Slices(_, _, body):
            return f"{name} ({named(body)})"
        case moving.Stage(_, fill):
            return f"{name} ({named(fill)})"
        case _:
            return name


def test_the_page_about_copies_matches_the_plans():
    text = (Path(__file__).parents[1] / "docs" / "copies.md").read_text()
    rows = re.findall(r"^\| (\(.*\)) \| (\(.*\)) \| (\d+) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 5
    for shape, repeats, itemsize, word, steps in rows:
        sizes, counts = map(literal_eval, (shape, repeats))
        nest = host_words(nest_between(sizes, counts, int(itemsize)), 16)
        assert word == f"{nest.word}{', computed' if nest.repeats_per_word > 1 else ''}"
        assert steps == named(plan_steps(nest)), (shape, repeats)


@pytest.mark.parametrize(
    "rows, columns, repeats, is_shifted",
    [
        (16, 1024, (8, 1), True),
        (16, 1023, (8, 1), False),  # the source has no whole pages
        (16, 1024, (7, 1), False),  # less than 128 KiB
        (64, 1024, (1, 2), False),  # rows of 1 KiB
        (32, 512, (4, 2), True),  # the temporary has whole pages
    ],
)
def test_long_rows_of_whole_pages_are_copied_to_half_a_page(rows, columns, repeats, is_shifted):
    """Right after its source, at 16 bytes modulo a page, memory is written many times slower."""
    x = np.arange(rows * columns, dtype=np.uint32).astype(np.uint8).reshape(rows, columns)
    result = tileops.tile(x, repeats)
    assert result.tobytes() == np.tile(x, repeats).tobytes()
    memory = result
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    assert address_of(result) - address_of(memory) == (mmap.PAGESIZE // 2 if is_shifted else 0)

"""How a copy in the CPU's memory is made: at once, by steps or by repetitions of rows."""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from tileops._copies.chains import Chain, chain_cost, plan_chain
from tileops._copies.cost import steps_cost, threads_for
from tileops._copies.cpu import ALIGNMENT, DIRECT, MANY_RUNS, cut, host_words, plan_steps
from tileops._copies.steps import (
    WORDS,
    Nest,
    Pairs,
    Slices,
    Stage,
    Steps,
    blocks,
    contiguous_strides,
    make_nest,
)
from tileops._plan import Plan, cached_plan, contiguous
from tileops._rules import TILE

_COPIED = 2**20
"""An input that is not contiguous is copied first if it has up to this many bytes."""
_READ_ONCE = 4
"""A larger input whose elements lie apart is also copied first if it is repeated at least this many
times."""

_FEW = 512
"""Up to this many rows are copied by one assignment in less time than by planned steps."""
_FEW_APART = 4096
"""The same where the target has gaps or another order: there planned steps take longer to begin."""
_LONG = 512
"""Rows of more bytes than this also take less time by one assignment, however many there are."""
_MANY = 320
"""Small new results of more rows than this are made by `repeat`, one axis after the other."""
_ALONE = 2**20
"""Fewer bytes in few or long rows are never worth a second thread."""


class Job(NamedTuple):
    """A planned copy: all that is decided about it."""

    nest: Nest
    steps: Steps
    """The steps of the whole copy, for a single thread."""
    threads: int
    """How many threads the copy is worth."""
    chain: Chain = ()
    """The repetitions that replace the steps if they cost less. Only copies between contiguous
    arrays can have a chain; otherwise it is empty."""


class Part(NamedTuple):
    """A part of a copy that one thread carries out."""

    slices: tuple[slice, ...]
    steps: Steps


def is_copied(plan: Plan, strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether an input that is not contiguous is copied first, and then repeated."""
    if not plan.repeated:
        return False
    nbytes = prod(plan.padded) * itemsize
    if nbytes <= _COPIED:
        return True
    if plan.nbytes < _READ_ONCE * nbytes:
        return False
    axes = zip(reversed(plan.padded), reversed(strides), strict=False)
    return next((abs(stride) for n, stride in axes if n > 1 and stride), itemsize) != itemsize


def copy_plan(shape: tuple[int, ...], itemsize: int) -> Plan:
    """Plan the copy of an input that is not contiguous."""
    return cached_plan(TILE, shape, (1,) * len(shape), itemsize)


@lru_cache(maxsize=4096)
def make_job(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int, alignment: int
) -> Job:
    """Plan a repetition between arrays of these strides, in bytes, and of this alignment."""
    nest = host_words(make_nest(plan, source, target, itemsize), alignment)
    return Job(nest, plan_steps(nest), threads_for(nest))


@lru_cache(maxsize=4096)
def is_assigned(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int
) -> bool:
    """Whether one assignment copies between arrays of these strides as fast as planned steps.

    It does if one thread copies few rows or long ones. Steps save some ns for each row, but take 3
    to 40 µs to begin: the more Python the data have driven out of the caches, the longer.
    """
    nest = make_nest(plan, source, target, itemsize)
    row = nest.sizes[-1]
    few = _FEW if nest.target == contiguous(nest.sizes, 1) else _FEW_APART
    if row == itemsize:  # elements that do not lie side by side
        if row in WORDS or row >= DIRECT:
            row = prod(nest.sizes[-2:])
        else:
            few = MANY_RUNS  # steps also move fewer than that one by one
    if row <= _LONG and nest.nbytes > few * row:
        return False
    return nest.nbytes < _ALONE or make_job(plan, source, target, itemsize, ALIGNMENT).threads == 1


@lru_cache(maxsize=4096)
def has_many_rows(plan: Plan) -> bool:
    """Whether a small result has so many rows that `repeat` takes less time than an assignment."""
    return prod(plan.shape) > _MANY * max(plan.row_size, plan.spread[-1])


def copy_cost(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int, most_threads: int
) -> float:
    """Return what a copy between arrays of these strides, in bytes, costs beyond its bytes."""
    job = make_job(plan, source, target, itemsize, ALIGNMENT)
    in_order = contiguous(plan.padded, itemsize)
    is_in_order = job.nest == make_job(plan, in_order, target, itemsize, ALIGNMENT).nest
    if not is_in_order and is_copied(plan, source, itemsize):
        first = copy_cost(
            copy_plan(plan.padded, itemsize), source, in_order, itemsize, most_threads
        )
        return first + copy_cost(plan, in_order, target, itemsize, most_threads)
    ordered = make_contiguous_job(plan, itemsize, ALIGNMENT)
    if ordered.chain and ordered.nest == job.nest:
        return chain_cost(plan.nbytes, ordered.chain)
    return steps_cost(job.nest) / min(job.threads, most_threads)


@lru_cache(maxsize=4096)
def make_contiguous_job(plan: Plan, itemsize: int, alignment: int) -> Job:
    """Plan a copy between contiguous arrays."""
    job = make_job(plan, *contiguous_strides(plan, itemsize), itemsize, alignment)
    return job._replace(chain=plan_chain(plan, itemsize, is_new=False))


def has_temporaries(plan: Plan, itemsize: int) -> bool:
    """Whether the steps of a copy between contiguous arrays need temporaries."""
    steps = make_contiguous_job(plan, itemsize, ALIGNMENT).steps
    while isinstance(steps, Slices):
        steps = steps.body
    return isinstance(steps, Stage | Pairs)


@lru_cache(maxsize=256)
def make_parts(nest: Nest, threads: int) -> tuple[Part, ...]:
    """Plan the parts of a copy that threads share.

    Parts are kept, because planning them takes 0.05 ms in a call that finds the caches full of
    other data.
    """
    parts = []
    for part in blocks(nest.sizes, cut(nest, threads)):
        sizes = tuple(along.stop - along.start for along in part)
        parts.append(Part(part, plan_steps(nest._replace(sizes=sizes))))
    return tuple(parts)

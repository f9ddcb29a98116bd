"""Repetitions of rows, one axis after the other: where a library's own loops beat our steps.

`np.repeat` has a loop for words of each size, which is hard to beat while the result stays in the
cache; but it takes no `out=` and uses one thread only. The estimated costs lie between those
measured on an AMD EPYC (Zen 4) and on an Intel Xeon.
"""

from functools import lru_cache
from math import inf, prod

from tileops._copies.cost import PER_BYTE, no_steps_cost_less, steps_cost, threads_for_bytes
from tileops._copies.cpu import ALIGNMENT, host_words
from tileops._copies.steps import WORDS, contiguous_strides, make_nest
from tileops._plan import Plan

Chain = tuple[tuple[int, int], ...]
"""The number of rows and of repeats in each repetition, in the order in which they are made."""

_LOOPED = (*WORDS, 32)
"""The sizes, in bytes, of the rows for which `np.repeat` has a loop."""

# What repetitions cost, in ns of one thread; in addition, each byte of the result costs `PER_BYTE`
_PER_ROW = 2.5
"""Each repeat of a row; or all repeats of a row whose size NumPy has a special loop for."""
_SOURCE = 16 * 1024
"""A row up to this large stays in a core's innermost cache while it is repeated."""
_PER_FAR_BYTE = 0.01
"""Each byte that is written from a larger row."""
_PER_TEMPORARY_BYTE = 0.08
"""Each byte of a temporary, whose memory may be new or in use."""

# Bytes
_LARGEST = 3 * 2**20
"""The most bytes of a temporary between repetitions; it is low because two exist at a time."""


@lru_cache(maxsize=4096)
def plan_chain(plan: Plan, itemsize: int, is_new: bool) -> Chain:
    """Return the chain of repetitions, or () if our steps are faster.

    Chains are only for copies between contiguous arrays. A library's own repetition writes all
    repeats of a row before the next row. In a chain of several repetitions, all but the last make
    temporaries. A new result is repeated from the innermost axis outwards or the other way round,
    whichever is estimated to cost less. If the result is not new, the last repetition is that of
    the outermost axis and is written by broadcasting. A single such repetition would be a plain
    copy, which is left to our steps, as is every copy into existing memory that has enough bytes to
    be shared by threads.
    """
    chain = _repetitions(plan, is_outwards=True)
    threads = min(2, threads_for_bytes(plan.nbytes))
    if not chain or (not is_new and (len(chain) == 1 or threads > 1)):
        return ()
    cost = chain_cost(plan.nbytes, chain)
    if is_new and len(chain) > 1:
        inwards = _repetitions(plan, is_outwards=False)
        cost, chain = min((cost, chain), (chain_cost(plan.nbytes, inwards), inwards))
    if threads == 1 and no_steps_cost_less(cost):
        return chain
    nest = make_nest(plan, *contiguous_strides(plan, itemsize), itemsize)
    steps = steps_cost(host_words(nest, ALIGNMENT))
    written = plan.nbytes * PER_BYTE
    return chain if cost + written <= (steps + written) / threads else ()


def _repetitions(plan: Plan, *, is_outwards: bool) -> Chain:
    """Return the repetition along each axis, the innermost axis first or last.

    Neighbours without rows between them are one.
    """
    chain: list[tuple[int, int]] = []
    rows = 1
    for axis, n in enumerate(plan.spread):
        if axis not in plan.repeated:
            rows *= n
            continue
        if axis - 1 in plan.repeated:
            chain[-1] = (chain[-1][0], chain[-1][1] * n)
        else:
            chain.append((rows, n))
        if not is_outwards:  # the repeats of this axis are rows of the next one
            rows *= n
    return tuple(reversed(chain) if is_outwards else chain)


def chain_cost(nbytes: int, chain: Chain) -> float:
    """Return what a chain to so many bytes costs: infinity if a temporary exceeds `_LARGEST`."""
    cost, nbytes = 0.0, nbytes // prod(repeats for _, repeats in chain)
    for i, (rows, repeats) in enumerate(chain):
        if i and nbytes > _LARGEST:
            return inf
        if i:
            cost += nbytes * _PER_TEMPORARY_BYTE
        row = nbytes // rows
        cost += rows * (1 if row in _LOOPED else repeats) * _PER_ROW
        nbytes *= repeats
        if row > _SOURCE:
            cost += nbytes * _PER_FAR_BYTE
    return cost

"""Estimates of what the steps of a copy cost on a CPU, in ns of one thread.

The figures are those of NumPy 2.4 on an AMD EPYC (Zen 4), except that words in passes cost what
they do on an Intel Xeon, where they take longer. The estimates lie a little above what most steps
cost, so that a library keeps its own loops where both are equally fast.
"""

from math import ceil, prod

from tileops._copies.cpu import NUMBERS, plan_steps, times_written
from tileops._copies.steps import WORDS, Columns, Copy, Nest, Pairs, Slices, Stage, Steps

_LEAST_COST = 20_000.0
"""Steps that are a single `Copy`; no steps cost less."""
_STEPS = 40_000.0
"""Several steps, which Python carries out."""
_PER_STEP = 3_000.0
"""Each round of a loop of such steps."""
_PER_ENTRY = 4.0
"""Each entry into the innermost loop of a copy; also each word whose size is not in `WORDS`."""
_PER_WORD, _PER_WORD_BYTE = 0.25, 0.1
"""Each word of up to 8 bytes that is written in a pass down the rows, and each byte of it."""
_PER_COMPUTED_WORD = 1.0
"""Each word that is computed in a pass."""
_PER_ELEMENT = 2.0
"""Each element of any other width that is written in a pass."""
PER_APART = 0.7
"""Each word of a copy that does not lie beside the one before it in the source."""
_PER_SPREAD_BYTE = 0.02
"""Each byte that is written from a temporary."""
PER_BYTE = 0.025
"""Each byte of the result, which two threads write in half the time."""

# Threads
_SHARED = 6 * 2**20
"""The fewest bytes for each thread: with fewer, a thread saves no more time than it takes to wake.

Threads also wait for each other, because Python runs in only one of them at a time and copies of
short rows take many steps.
"""
_SHARED_COST = 600_000.0
"""The least cost of steps and bytes that is worth a thread, however few bytes there are."""


def steps_cost(nest: Nest) -> float:
    """Return what the steps of a copy cost, without the cost of the result's bytes."""
    steps = plan_steps(nest)
    return (_LEAST_COST if isinstance(steps, Copy) else _STEPS) + _cost(nest, steps)


def no_steps_cost_less(cost: float) -> bool:
    """Whether this is so little that no steps need to be planned in order to compare them."""
    return cost <= _LEAST_COST


def threads_for(nest: Nest) -> int:
    """Return how many threads a copy is worth, by its bytes or by the cost of its steps."""
    cost = steps_cost(nest) + nest.nbytes * PER_BYTE
    return max(threads_for_bytes(nest.nbytes), int(cost // _SHARED_COST))


def threads_for_bytes(nbytes: int) -> int:
    """Return how many threads a copy is worth, whatever its steps cost."""
    return max(1, nbytes // _SHARED)


def _cost(nest: Nest, steps: Steps) -> float:
    """Return what it costs to carry out a copy by these steps."""
    words = prod(nest.sizes)
    match steps:
        case Copy():
            if not nest.sizes or nest.word not in WORDS:
                return words * _PER_ENTRY
            apart = 0 if nest.source[-1] in (0, nest.source_word) else words
            return words / nest.sizes[-1] * _PER_ENTRY + apart * PER_APART
        case Columns(axes):
            entries = words / nest.sizes[-axes - 1]
            return words * _pass_cost(nest.word, nest.repeats_per_word) + entries * _PER_ENTRY
        case Pairs():
            return words / 2 * _pass_cost(2)
        case Slices(axis, width, body):
            return _cost(nest, body) + ceil(nest.sizes[axis] / width) * _PER_STEP
        case Stage(sizes, fill):
            block = nest.block(sizes)
            blocks = nest.nbytes / (block.nbytes * times_written(nest, sizes))
            return blocks * _cost(block, fill) + nest.nbytes * _PER_SPREAD_BYTE


def _pass_cost(word: int, repeats: int = 1) -> float:
    """Return what a pass costs for each word of this many bytes, which holds these repeats."""
    if repeats > 1:
        return _PER_COMPUTED_WORD
    return _PER_WORD + word * _PER_WORD_BYTE if word in NUMBERS else _PER_ELEMENT

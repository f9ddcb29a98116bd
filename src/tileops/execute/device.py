"""Copies in the memory of a GPU, for the libraries whose arrays lie there.

All of it is queued in the library's current stream, and nothing waits for it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from tileops._moves import blocks, make_nest
from tileops._plan import Plan
from tileops._plan_device import Step, plan_device
from tileops.execute._memory import Memory

LEAST = 16 * 2**20
"""Results of at least this many bytes are worth a plan's time on the host. Not measured yet."""


class Kernels(NamedTuple):
    """What a library copies with."""

    words: Callable[[Any, tuple[int, ...], tuple[int, ...], int], Any]
    """Gives an array's memory, from its first element on, in a shape, with strides, of words."""
    empty: Callable[[int, Any], Any]
    """Gives an array of this many bytes, aligned to 16 of them, where another array is."""
    assign: Callable[[Any, Any], object]
    """Copies the second array into the first."""


def repeat(kernels: Kernels, plan: Plan, source: Memory, target: Memory, alignment: int) -> bool:
    """Write the repetition of an array into another; False if the library itself is as fast.

    `alignment` divides all addresses, and so limits how wide the words can be.
    """
    x = source.owner
    steps = _steps(plan, source.strides, target.strides, target.itemsize, alignment)
    for i, (nest, block) in enumerate(steps):
        written = target.owner if i == len(steps) - 1 else kernels.empty(nest.nbytes, x)
        to = kernels.words(written, nest.sizes, nest.target, nest.word)
        of = kernels.words(x, nest.sizes, nest.source, nest.word)
        if block == nest.sizes:
            kernels.assign(to, of)
        else:
            for part in blocks(nest.sizes, block):
                kernels.assign(to[part], of[part])
        x = written
    return bool(steps)


@lru_cache(maxsize=4096)
def _steps(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int, alignment: int
) -> tuple[Step, ...]:
    return plan_device(make_nest(plan, source, target, itemsize), alignment, itemsize)

"""Copies in the memory of a GPU, for the libraries whose arrays lie there.

All of it is queued in the library's current stream, and nothing waits for it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from tileops._moves import make_nest
from tileops._plan import Plan
from tileops._plan_device import Step, Traits, plan_device

Strides = tuple[int, ...]


class Kernels(NamedTuple):
    """What a library copies with."""

    traits: Traits
    words: Callable[[Any, tuple[int, ...], Strides, int, int], Any]
    """Gives an array's memory, from its first element on, in a shape, with strides in bytes, of
    words of some bytes, each of which is to hold so many repeats of a narrower one."""
    empty: Callable[[int, Any], Any]
    """Gives an array of this many bytes, aligned to 16 of them, where another array is."""
    assign: Callable[[Any, Any], object]
    """Copies the second array into the first."""

    def pay(self, plan: Plan, itemsize: int) -> bool:
        """Whether a result is large enough for a plan."""
        return plan.nbytes >= self.traits.least * itemsize


def repeat(
    kernels: Kernels,
    plan: Plan,
    source: tuple[Any, Strides],
    target: tuple[Any, Strides],
    itemsize: int,
    alignment: int,
) -> bool:
    """Write the repetition of an array into another; False if the library itself is as fast.

    The arrays come with their strides in bytes. `alignment` divides all addresses, and so limits
    how wide the words can be.
    """
    (x, strides), (out, out_strides) = source, target
    steps = _steps(kernels, plan, strides, out_strides, itemsize, alignment)
    for i, (nest, launches) in enumerate(steps, 1):
        written = out if i == len(steps) else kernels.empty(nest.nbytes, x)
        to = kernels.words(written, nest.sizes, nest.target, nest.word, nest.repeats_per_word)
        of = kernels.words(x, nest.sizes, nest.source, nest.source_word, 1)
        if launches == 1:
            kernels.assign(to, of)
        else:
            for part, chunk in zip(to, of, strict=True):
                kernels.assign(part, chunk)
        x = written
    return bool(steps)


@lru_cache(maxsize=4096)
def _steps(
    kernels: Kernels, plan: Plan, source: Strides, target: Strides, itemsize: int, alignment: int
) -> tuple[Step, ...]:
    nest = make_nest(plan, source, target, itemsize)
    return plan_device(nest, alignment, itemsize, kernels.traits)

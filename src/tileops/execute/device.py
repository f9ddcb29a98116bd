"""Copies in the memory of a GPU, for the libraries whose arrays lie there.

All of it is queued in the library's current stream, and nothing waits for it.
"""

from collections.abc import Callable
from typing import Any

from tileops._moves import make_nest
from tileops._plan import Plan
from tileops._plan_device import plan_device
from tileops.execute._memory import Memory
from tileops.execute.moving import Means, carry_out

LEAST = 16 * 2**20
"""The bytes of a result from which on a plan is worth its time on the host. Not measured yet."""

Words = Callable[[Any, tuple[int, ...], tuple[int, ...], int], Any]
"""Gives an array's memory, from its first element on, in a shape, with steps, of words."""


def repeat(
    plan: Plan,
    x: Any,
    source: Memory,
    out: Any,
    target: Memory,
    words: Words,
    empty: Callable[[int], Any],
    assign: Callable[[Any, Any], object],
) -> bool:
    """Write the repetition of `x` into `out`, or say that the library's own way is as good.

    `empty` gives an array of so many bytes, aligned to 16 of them.
    """
    nest = make_nest(plan, source.strides, target.strides, target.itemsize)
    alignment = (source.address | target.address) % 16 or 16
    steps = plan_device(nest, alignment, target.itemsize)
    means = Means(assign)
    for i, (step, move) in enumerate(steps):
        written = out if i == len(steps) - 1 else empty(step.nbytes)
        carry_out(
            move,
            words(written, step.sizes, step.target, step.word),
            words(x, step.sizes, step.source, step.word),
            means,
        )
        x = written
    return bool(steps)

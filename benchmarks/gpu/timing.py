"""The sides of a comparison, and the rounds in which they are timed."""

import contextlib
import functools
import itertools
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import tileops
from benchmarks.gpu.libraries.base import Call, Library
from benchmarks.gpu.patterns import Shape

Sides = dict[str, Call]
"""The sides of a comparison, by name."""

Around = Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]]
"""Functions that make the context in which a side is called, for the sides that need one."""

ROUNDS = 8
"""An even number, so that each side is as often first as last."""

ROUND_SECONDS = 5e-3
"""About how long the calls of one side take in a round."""

MOST_CALLS = 500
"""The most calls in a round. CUDA queues about 1000 launches before it makes the host wait."""


def tile_sides(library: Library, x: Any, repeats: Shape) -> Sides:
    """Return sides that tile natively, into new memory, and into two buffers in turn."""
    sides: Sides = {
        "native": functools.partial(library.tile, x, repeats),
        "tileops": functools.partial(tileops.tile, x, repeats),
    }
    if library.has_out:
        shape = tileops.tile_shape(tuple(x.shape), repeats)
        buffers = itertools.cycle([library.empty(shape, x) for _ in range(2)])
        sides["out="] = lambda: tileops.tile(x, repeats, out=next(buffers))
    return sides


def expand_sides(library: Library, x: Any, shape: Shape) -> Sides:
    """Return sides that expand and copy natively, and that expand into new memory."""
    return {
        "native": functools.partial(library.expand, x, shape),
        "tileops": functools.partial(tileops.expand, x, shape, copy=True),
    }


def compare(
    library: Library, sides: Mapping[str, Call], around: Around | None = None
) -> dict[str, float]:
    """Time all sides in turn, in reverse every second round; return median seconds per call."""
    contexts = {side: (around or {}).get(side, contextlib.nullcontext) for side in sides}
    values: dict[str, list[float]] = {side: [] for side in sides}
    calls = {}
    order = list(sides)
    for side in order:
        with contexts[side]():
            calls[side] = calls_of_a_round(library, sides[side])
    for _ in range(ROUNDS):
        for side in order:
            with contexts[side]():
                values[side].append(library.seconds(sides[side], calls[side]))
        order.reverse()
    return {side: rounded(statistics.median(seconds)) for side, seconds in values.items()}


def calls_of_a_round(library: Library, call: Call) -> int:
    """Warm a side up, and count the calls that fill a round."""
    library.seconds(call, 2)
    seconds = library.seconds(call, 2)
    return min(MOST_CALLS, max(1, round(ROUND_SECONDS / seconds)))


def rounded(value: float) -> float:
    """Keep as many digits as the clock is good for."""
    return float(f"{value:.4g}")

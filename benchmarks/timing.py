"""How time is taken: rounds that alternate between the sides of a comparison."""

import contextlib
import ctypes
import dataclasses
import gc
import itertools
import mmap
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from pyperf import perf_counter

Call = Callable[[], Any]
"""One side of a comparison: a function without arguments that returns its result."""

LEAST_ROUNDS = 6
"""An even number, so that each side is as often first as last."""

MOST_ROUNDS = 60

BATCH_SECONDS = 2e-3
"""Calls shorter than this are timed in an inner loop that takes about as long."""

PAUSE_SECONDS = 2e-3
"""Rest before a call is timed, where threads of the library that ran before spin for a while."""

TOUCHED_BYTES = 256 * 2**20
"""Memory that is touched before a comparison, more than its new results take at a time."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD_BYTES = 128 * 1024
_HEAP_BLOCKS = 512
_MOST_THRESHOLD_BYTES = 32 * 2**20


@dataclasses.dataclass
class Timing:
    """Seconds per call of one side, a value for each round."""

    loops: int
    values: list[float] = dataclasses.field(default_factory=list)


def compare(
    sides: Mapping[str, Call], seconds: float, *, has_pauses: bool = False
) -> dict[str, Timing]:
    """Time all sides in turn, in reverse every second round, for about this many seconds.

    All have as many calls in their inner loops as the slowest of them fills a batch with, or none
    has a loop: the first call after another side's costs more than the next.

    The median over rounds is what counts: whatever else the machine does then falls on all sides
    alike. A result is dropped before the next call is timed, and a side that makes a new result
    allocates it inside the timed call.

    Every pair of rounds has an order of its own, because a call depends on the one before it: after
    1 GB of small pages has been freed, the system may take several times as long to find huge ones.
    For the same reason, sides that make large new results in NumPy and in PyTorch are better kept
    in comparisons of their own.
    """
    _touch_memory()
    in_the_way = _fill_heap()
    loops = min(map(_calibrate, sides.values()))
    timings = {name: Timing(loops) for name in sides}
    order = list(sides)
    shuffle = np.random.default_rng(0).shuffle
    gc.collect()
    gc.disable()
    try:
        end = perf_counter() + seconds
        for round_number in range(MOST_ROUNDS):
            if round_number % 2 == 1:
                order.reverse()
            elif round_number >= LEAST_ROUNDS and perf_counter() > end:
                break
            else:
                shuffle(order)
            for name in order:
                timing = timings[name]
                if has_pauses:
                    time.sleep(PAUSE_SECONDS)
                timing.values.append(_seconds_per_call(sides[name], timing.loops))
    finally:
        gc.enable()
        in_the_way.clear()
    return timings


def take_large_memory_from_the_system() -> None:
    """Keep the C library from reusing the memory of an earlier large result.

    By default glibc learns from each large block that is freed to serve the next ones, up to
    32 MB, from memory that is in use already. Whether a result of 15 MB is new memory or old would
    then depend on what ran before. With a fixed threshold every large block is new.
    """
    _set_thresholds(_MMAP_THRESHOLD_BYTES)


@contextlib.contextmanager
def with_memory_used_again() -> Iterator[None]:
    """Let the C library serve results below 32 MiB from memory that it has, as it learns to do."""
    _set_thresholds(_MOST_THRESHOLD_BYTES)
    try:
        yield
    finally:
        take_large_memory_from_the_system()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)  # What is free by now would serve the results of other sections.


def _set_thresholds(nbytes: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, nbytes)
        mallopt(_M_TRIM_THRESHOLD, 4 * nbytes)


def _touch_memory() -> None:
    """Have the host of a virtual machine give back the memory that it took while none used it.

    That takes milliseconds for each huge page, many times what a new page costs otherwise, and
    falls on whoever happens to get it.
    """
    np.empty(TOUCHED_BYTES, np.uint8)[:: mmap.PAGESIZE] = 1


def _fill_heap() -> list[Any]:
    """Take what is free in the C library's heap, where results of some MiB may find room.

    Before it asks the system it looks there, whatever its thresholds are.
    """
    return [np.empty(_MMAP_THRESHOLD_BYTES, np.uint8) for _ in range(_HEAP_BLOCKS)]


def _calibrate(call: Call) -> int:
    """Warm the side up, and count the calls that fill a batch."""
    call()
    seconds = min(_seconds_per_call(call, 1) for _ in range(2))
    if seconds > BATCH_SECONDS / 10:
        return 1
    seconds = _seconds_per_call(call, 10)
    return max(1, round(BATCH_SECONDS / seconds))


def _seconds_per_call(call: Call, loops: int) -> float:
    if loops == 1:
        start = perf_counter()
        result = call()
        stop = perf_counter()
        del result  # after the clock has stopped: freeing is not what is measured
        return stop - start
    numbers = itertools.repeat(None, loops)
    start = perf_counter()
    for _ in numbers:
        call()
    return (perf_counter() - start) / loops

"""How calls are timed: in rounds that alternate between the sides of a comparison."""

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
"""Calls shorter than this are timed in an inner loop that takes about this long."""

PAUSE_SECONDS = 2e-3
"""Rest before each timed call, because threads of the library that ran before spin for a while."""

TOUCHED_BYTES = 256 * 2**20
"""Memory touched before a comparison: more than its new results take at any one time."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD_BYTES = 128 * 1024
_HEAP_BLOCKS = 512
_MOST_THRESHOLD_BYTES = 32 * 2**20


@dataclasses.dataclass
class Timing:
    """Seconds per call of one side, with a value for each round."""

    loops: int
    values: list[float] = dataclasses.field(default_factory=list)


def compare(
    sides: Mapping[str, Call], seconds: float, *, has_pauses: bool = False
) -> dict[str, Timing]:
    """Time all sides in turn, in reverse every second round, for about this many seconds.

    All sides have the same number of calls in their inner loops: as many as the slowest side needs
    to fill a batch, or one. The first call after another side's call costs more than the next ones.

    The median over rounds counts, because other work of the machine then affects all sides alike.
    A result is dropped before the next call is timed, and a side that makes a new result allocates
    it inside the timed call.

    The order changes with every pair of rounds, because a call depends on the one before it: after
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

    By default, each large block that is freed teaches glibc to serve later blocks, up to 32 MB,
    from memory that is already in use. Whether a result of 15 MB gets new or old memory would then
    depend on what ran before. With a fixed threshold, every large block is new.
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
            trim(0)  # Memory that is free by now would serve the results of other sections.


def _set_thresholds(nbytes: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, nbytes)
        mallopt(_M_TRIM_THRESHOLD, 4 * nbytes)


def _touch_memory() -> None:
    """Have the host of a virtual machine return the memory that it took while nothing used it.

    That takes milliseconds for each huge page, many times the usual cost of a new page, and would
    fall on whichever call happens to get the page.
    """
    np.empty(TOUCHED_BYTES, np.uint8)[:: mmap.PAGESIZE] = 1


def _fill_heap() -> list[Any]:
    """Take the free memory of the C library's heap, where results of some MiB may find room.

    Whatever its thresholds are, the C library looks there before it asks the system.
    """
    return [np.empty(_MMAP_THRESHOLD_BYTES, np.uint8) for _ in range(_HEAP_BLOCKS)]


def _calibrate(call: Call) -> int:
    """Warm up a side, and count the calls that fill a batch."""
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
        del result  # after the clock has stopped, because freeing is not measured
        return stop - start
    numbers = itertools.repeat(None, loops)
    start = perf_counter()
    for _ in numbers:
        call()
    return (perf_counter() - start) / loops

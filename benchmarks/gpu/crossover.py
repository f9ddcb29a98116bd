"""The step ``crossover``: what a small call costs, and the size from which a plan pays."""

import functools
import itertools
import statistics
from typing import Any

import tileops
from benchmarks.gpu.libraries.base import Library, host_seconds
from benchmarks.gpu.patterns import N, Pattern
from benchmarks.gpu.planning import always_planned
from benchmarks.gpu.run import Run, say
from benchmarks.gpu.timing import ROUNDS, Sides, compare, rounded, tile_sides
from benchmarks.workloads import numpy_dtype

CASES = {
    "rows of 3 bytes, x5": ("uint8", Pattern((N, 3), (1, 5))),
    "gray to RGB, uint8": ("uint8", Pattern((N, 1), (1, 3))),
    "repeat_kv, bfloat16": ("bfloat16", Pattern((2, 1, N, 128), (1, 4, 1, 1))),
    "RGB images, uint8": ("uint8", Pattern((1, N, 500, 3), (1, 4, 4, 1))),
    "(N, 64) x (1, 4), float32": ("float32", Pattern((N, 64), (1, 4))),
}

SIZES = (*(4**power for power in range(5, 17)), 2**33)
"""Bytes of the results at full scale: 1 KiB to 4 GiB in powers of 4, and 8 GiB."""


def measure(run: Run) -> None:
    """Time small calls, and results of 1 KiB to 8 GiB, to find where each way becomes faster."""
    calls: list[dict[str, Any]] = []
    run.results["calls"] = calls
    for library in run.libraries:
        with run.attempt(f"calls of {library.name}"):
            costs = call_costs(library)
            calls.append({"library": library.name, "seconds": costs})
            shown = ", ".join(f"{name} {cost * 1e6:.1f} us" for name, cost in costs.items())
            say(f"  {library.name}: {shown}")
    rows: list[dict[str, Any]] = []
    run.results["crossover"] = rows
    largest = SIZES[-1] * min(run.scale, 1.0)
    for library, name in itertools.product(run.libraries, CASES):
        say(f"  {library.name}, {name}")
        with run.attempt(f"crossover of {library.name}, {name}"):
            for nbytes in (size for size in SIZES if size <= largest):
                if not run.has_time(f"crossover of {library.name}, {name}, {nbytes} bytes"):
                    break
                rows += cross(run, library, name, nbytes)
                run.save()
        library.release()


def cross(run: Run, library: Library, name: str, nbytes: int) -> list[dict[str, Any]]:
    """Time one pattern at one size, unless its smallest result is larger or memory is short.

    The side "planned" is tileops with every copy planned, however small.
    """
    dtype, pattern = CASES[name]
    itemsize = numpy_dtype(dtype).itemsize
    pattern = pattern.sized(nbytes // itemsize)
    if pattern.elements * itemsize > nbytes:
        return []
    if nbytes >= 2**28:
        library.release()
    if library.free_bytes() < 5 * nbytes:
        run.leave_out(f"crossover of {library.name}, {name}: 5 x {nbytes} bytes are not free")
        return []
    x = library.random(pattern.shape, dtype)
    row: dict[str, Any] = {"library": library.name, "pattern": name, "shape": pattern.shape}
    row |= {"repeats": pattern.repeats, "bytes": pattern.elements * itemsize, "at most": nbytes}
    sides = tile_sides(library, x, pattern.repeats)
    if library.has_out:
        sides["planned"] = sides["tileops"]
    around = {"planned": functools.partial(always_planned, run.device)}
    return [row | {"seconds": compare(library, sides, around)}]


def call_costs(library: Library) -> dict[str, float]:
    """Time calls on at most 16 elements by the host's clock, without waiting for the device."""
    x = library.random((4, 4), "float32")
    row = library.random((1, 4), "float32")
    calls: Sides = {
        "native tile": lambda: library.tile(x, (2, 2)),
        "tileops.tile": lambda: tileops.tile(x, (2, 2)),
        "native expand": lambda: library.xp.broadcast_to(row, (4, 4)),
        "tileops.expand": lambda: tileops.expand(row, (4, 4)),
        "native expand, copied": lambda: library.expand(row, (4, 4)),
        "tileops.expand, copied": lambda: tileops.expand(row, (4, 4), copy=True),
    }
    if library.has_out:
        out = library.empty((8, 8), x)
        calls["tileops.tile, out="] = lambda: tileops.tile(x, (2, 2), out=out)
    values: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):
        for name, call in calls.items():
            library.synchronize()
            values[name].append(host_seconds(call, 200))
    library.synchronize()
    return {name: rounded(statistics.median(seconds[1:])) for name, seconds in values.items()}

"""The workloads, at the scale of a run."""

import dataclasses
import math
from collections.abc import Iterator, Sequence

from benchmarks.workloads import WORKLOADS, Workload

LEAST_RESULT = 256 * 10**6
"""The least bytes of a workload's result at full scale, several times the size of a cache."""


def workloads_at(scale: float) -> Iterator[Workload]:
    """Return all workloads at a fraction of their full size."""
    return (at_scale(workload, scale) for workload in WORKLOADS)


def at_scale(workload: Workload, scale: float) -> Workload:
    """Return a workload at a fraction of its full size, which is made large enough to measure.

    A workload grows along its first axis. It shrinks along that axis down to 2, and then along its
    longest axis except the last, so that rows keep their length.
    """
    full = workload.full()
    sizes = [list(full.shape), list(full.repeats)]
    wanted = max(full.result_bytes, LEAST_RESULT) * scale
    if full.result_bytes < wanted:
        grow(sizes, 0, math.ceil(wanted / full.result_bytes))
    while (now := result_bytes(sizes, full)) > wanted and scale < 1:
        axes = range(len(full.shape) - 1)
        lengths = [max(n, r) for n, r in zip(*sizes, strict=True)]
        axis = 0 if lengths[0] > 2 else max(axes, key=lengths.__getitem__)
        if lengths[axis] < 2:
            break
        grow(sizes, axis, max(0.5, wanted / now))
    return dataclasses.replace(full, shape=tuple(sizes[0]), repeats=tuple(sizes[1]))


def grow(sizes: list[list[int]], axis: int, factor: float) -> None:
    """Multiply an axis's size in place, or its repeats where those are more."""
    part = 1 if sizes[1][axis] > sizes[0][axis] else 0
    sizes[part][axis] = max(1, int(sizes[part][axis] * factor))


def result_bytes(sizes: Sequence[Sequence[int]], workload: Workload) -> int:
    """Count the bytes of a result."""
    return math.prod(sizes[0]) * math.prod(sizes[1]) * workload.itemsize

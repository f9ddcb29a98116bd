"""How much memory a call takes beyond its result."""

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.libraries import COMPARISONS
from benchmarks.results import Key, Recorder, Results
from benchmarks.tables import Table, number
from benchmarks.timing import Call
from benchmarks.workloads import WORKLOADS, random_array

TITLE = "Peak memory"
SECTION = "memory"
TIMES = 3

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_RESET_PEAK = "5"


def traced_peak(call: Call) -> int:
    """Return the most bytes that a call has allocated at once, as NumPy and Python report them."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        result = call()
        _, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        tracemalloc.stop()
    return peak - before


def resident_peak(call: Call) -> int:
    """Return the most bytes by which a call has grown the process, whoever allocated them.

    Linux keeps the highest resident size of a process and lets the process reset it. Large blocks
    must come from the system and go back to it, else memory that is kept from an earlier call
    hides what this one needs.
    """
    _CLEAR_REFS.write_text(_RESET_PEAK)
    before = _status_bytes("VmRSS")
    result = call()
    peak = _status_bytes("VmHWM")
    del result
    return peak - before


def _status_bytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{_STATUS} does not have {name}")


class Group(NamedTuple):
    """A way to measure the calls of one library."""

    title: str
    comparison: str
    peak: Callable[[Call], int]
    text: str


_TRACED = "tracemalloc counts what NumPy and Python allocate."
_RESIDENT = (
    "The peak of the process's resident memory during the call counts the memory of every "
    "allocator, to within about 0.1 MB."
)

GROUPS = {
    "numpy_traced": Group("NumPy, as tracemalloc sees it", "numpy", traced_peak, _TRACED),
    "numpy": Group("NumPy, as the system sees it", "numpy", resident_peak, _RESIDENT),
    "torch": Group("PyTorch, as the system sees it", "torch", resident_peak, _RESIDENT),
    "jax": Group("JAX, eager, as the system sees it", "jax", resident_peak, _RESIDENT),
}


def measure(recorder: Recorder) -> None:
    """Take the peak of each workload's calls; the system's only on Linux."""
    for workload in WORKLOADS:
        x = random_array(workload.shape, workload.dtype)
        for name, group in GROUPS.items():
            if group.peak is resident_peak and not _CLEAR_REFS.exists():
                continue
            sides = COMPARISONS[group.comparison].make(workload, x)
            for side, call in sides.items():
                call()
                gc.collect()
                recorder.results.add(
                    Key(SECTION, name, workload.name, side),
                    [max(group.peak(call), 1) for _ in range(TIMES)],
                    {"bytes": workload.result_bytes},
                    unit="byte",
                )


def tables(results: Results) -> list[Table]:
    """Show the peak beyond the result, as a fraction of the result."""
    return [_table(results, name) for name in results.groups(SECTION)]


def _table(results: Results, name: str) -> Table:
    group = GROUPS[name]
    table = Table(
        group.title,
        f"The most memory that a call making a new result takes beyond the result, as a fraction "
        f"of the result: 0 means that the call needed nothing else, 1 that it needed as much "
        f"again. {group.text}",
        ("workload", "result MB", COMPARISONS[group.comparison].native, "tileops"),
    )
    beyond: dict[str, list[float]] = {"native": [], "tileops": []}
    for case in results.cases(SECTION, name):
        size = float(results.fact(SECTION, name, case, "native", "bytes"))
        for side, values in beyond.items():
            values.append(max(0.0, results.median(SECTION, name, case, side) / size - 1))
        last = (number(values[-1], 3) for values in beyond.values())
        table.rows.append((case, number(size / 1e6), *last))
    highest = (number(float(np.max(values)), 3) for values in beyond.values())
    table.summary = [("highest", "", *highest)]
    return table

"""The step ``speed``: every workload, with the libraries' own functions and with tileops."""

from typing import Any

import numpy as np

from benchmarks.gpu.assertions import is_repeated, require
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.run import Run, say
from benchmarks.gpu.timing import compare, expand_sides, tile_sides
from benchmarks.gpu.workloads import workloads_at
from benchmarks.workloads import Workload, random_array


def measure(run: Run) -> None:
    """Time every workload with the library's own function and with tileops."""
    rows: list[dict[str, Any]] = []
    run.results["speed"] = rows
    for workload in workloads_at(run.scale):
        if not run.has_time(workload.name):
            return
        values = random_array(workload.shape, workload.dtype)
        for library in run.libraries:
            with run.attempt(f"speed of {library.name}, {workload.name}"):
                rows += measure_workload(run, library, workload, values)
            library.release()


def measure_workload(
    run: Run, library: Library, workload: Workload, values: np.ndarray
) -> list[dict[str, Any]]:
    """Time the sides of a workload, after comparing their results with the source."""
    need = 5 * workload.result_bytes
    if library.free_bytes() < need:
        run.leave_out(f"speed of {library.name}, {workload.name}: {need} bytes are not free")
        return []
    x = library.from_numpy(values)
    operators = {"tile": tile_sides(library, x, workload.repeats)}
    if workload.operator == "expand":
        operators["expand"] = expand_sides(library, x, workload.target)
    rows = []
    for operator, sides in operators.items():
        for side, call in sides.items():
            is_right = is_repeated(x, call(), workload.repeats)
            require(is_right, f"{operator}, {side}: a repeat differs from its source")
        seconds = compare(library, sides)
        row: dict[str, Any] = {"library": library.name, "workload": workload.name}
        row |= {
            "operator": operator,
            "dtype": workload.dtype,
            "shape": workload.shape,
            "repeats": workload.repeats,
        }
        rows.append(row | {"bytes": workload.result_bytes, "seconds": seconds})
        times = ", ".join(f"{side} {s * 1e6:.0f} us" for side, s in seconds.items())
        say(f"  {library.name} {workload.name} {operator}: {times}")
    return rows

"""The workloads in each library: its own operation against tileops."""

import statistics

import numpy as np

from benchmarks.libraries import ASSIGNMENT, COMPARISONS, as_bytes, check
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, gigabytes_per_second, number, ratio
from benchmarks.workloads import WORKLOADS, random_array

TITLE = "Workloads"
SECTION = "workloads"

_FILL = (
    "The fill writes a constant byte to as many bytes as the result has, in memory of the same "
    "kind and in the same rounds. "
)
_ASSIGNMENT = (
    " {0} writes a broadcast view of the array into the same memory in one call; the last column "
    "is its time divided by that of tileops."
)
_TWIN = (
    "Both sides run the same kernel. So that the noise can be seen, each round times the native "
    "call twice: the last column is the ratio of these two times, which would be 1 on a silent "
    "machine. "
)


def measure(recorder: Recorder) -> None:
    """Run every workload in every library."""
    for workload in WORKLOADS:
        x = random_array(workload.shape, workload.dtype)
        expected = as_bytes(np.tile(x, workload.repeats))
        for group, comparison in COMPARISONS.items():
            if comparison.is_expand and workload.operator != "expand":
                continue
            sides = comparison.make(workload, x)
            check(sides, expected, workload.name)
            if comparison.limit is not None:
                sides["fill"] = comparison.limit(workload)
            if comparison.has_twin:
                sides["twin"] = sides["native"]
            recorder.compare(
                SECTION,
                group,
                workload.name,
                sides,
                patience=2 if comparison.has_pauses else 1,
                has_pauses=comparison.has_pauses,
                bytes=workload.result_bytes,
            )


def tables(results: Results) -> list[Table]:
    """Show what the workloads are, and a table for each library."""
    return [_description(), *(_table(results, group) for group in results.groups(SECTION))]


def _description() -> Table:
    table = Table(
        "What is repeated",
        "The sizes are for a CPU. Inputs are random and never zero.",
        ("workload", "operator", "shape", "dtype", "repeats", "result MB", "what it is"),
        is_wide=True,
    )
    for workload in WORKLOADS:
        table.rows.append(
            (
                workload.name,
                workload.operator,
                "×".join(map(str, workload.shape)),  # noqa: RUF001 (a multiplication sign)
                workload.dtype,
                "×".join(map(str, workload.repeats)),  # noqa: RUF001
                number(workload.result_bytes / 1e6),
                workload.source,
            )
        )
    return table


def _table(results: Results, group: str) -> Table:
    comparison = COMPARISONS[group]
    is_assigned = any(key.side == ASSIGNMENT for key in results.keys(SECTION, group))
    table = Table(
        comparison.title,
        f"{comparison.native} against tileops on the same array. The ratio is the time of "
        f"{comparison.native} divided by the time of tileops: above 1, tileops is faster. "
        f"{_FILL if comparison.limit else ''}{_TWIN if comparison.has_twin else ''}"
        f"{comparison.note}{_ASSIGNMENT.format(comparison.assignment) if is_assigned else ''}",
        (
            *("workload", "MB", "native GB/s", "tileops GB/s"),
            *((f"{comparison.assignment} GB/s",) if is_assigned else ()),
            *(("fill GB/s",) if comparison.limit else ()),
            *("ratio", "of all rounds"),
            *((f"to {comparison.assignment}",) if is_assigned else ()),
            *(("of equal calls",) if comparison.has_twin else ()),
        ),
    )
    ratios = []
    for case in results.cases(SECTION, group):
        size = float(results.fact(SECTION, group, case, "native", "bytes"))
        native = results.calm(SECTION, group, case, "native")
        ours = results.calm(SECTION, group, case, "tileops")
        medians = (results.median(SECTION, group, case, side) for side in ("tileops", "native"))
        ratios.append([ratio(ours, native), ratio(*medians)])
        speeds = [native, ours]
        if is_assigned:
            speeds.append(results.calm(SECTION, group, case, ASSIGNMENT))
            ratios[-1].append(ratio(ours, speeds[-1]))
        if comparison.limit:
            speeds.append(results.calm(SECTION, group, case, "fill"))
        if comparison.has_twin:
            ratios[-1].append(ratio(results.calm(SECTION, group, case, "twin"), native))
        table.rows.append(
            (
                case,
                number(size / 1e6),
                *(number(gigabytes_per_second(size, seconds)) for seconds in speeds),
                *(number(value, 2) for value in ratios[-1]),
            )
        )
    columns = list(zip(*ratios, strict=True))
    between = [""] * (len(table.header) - 1 - len(columns))
    for name, summary in (("lowest", min), ("geometric mean", statistics.geometric_mean)):
        table.summary.append((name, *between, *(number(summary(column), 2) for column in columns)))
    return table

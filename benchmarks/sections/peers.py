"""tileops beside other libraries that repeat arrays on a CPU, workload by workload."""

import functools
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tileops
from benchmarks import peers
from benchmarks.libraries import Sides, as_bytes, check, to_torch, used_memory
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, gigabytes_per_second, number, ratio
from benchmarks.workloads import WORKLOADS, Workload, random_array

TITLE = "Peers"
SECTION = "peers"


class Group(NamedTuple):
    """One comparison of all peers that can do it."""

    title: str
    text: str


GROUPS = {
    "new": Group(
        "Peers, results in new memory",
        "GB/s. Every call returns a new result, which later calls leave unchanged. einops returns "
        "a view for some workloads; the view is then copied. onnxruntime runs without its memory "
        "arena here, because the arena would hand out memory in use. OpenVINO computes into memory "
        "of its own and copies the result out.",
    ),
    "used": Group(
        "Peers, results in memory in use",
        "GB/s. tileops writes into `out=`. onnxruntime by default takes memory from its arena, "
        "which is already in use as long as earlier results are dropped; it can also write into a "
        "buffer that is bound to the session. OpenVINO leaves the result in its own memory, where "
        "the next call overwrites it.",
    ),
}

NOTES = (
    "onnxruntime and OpenVINO run models of one node with constant counts in two threads; the "
    "threads of onnxruntime do not spin. onnxruntime has no kernel for bfloat16 and gets the same "
    "bits as int16. OpenVINO converts int64 to 32 bits and back, and widens bool and float16 "
    "internally."
)


def measure(recorder: Recorder) -> None:
    """Run every workload with every peer."""
    for workload in WORKLOADS:
        x = random_array(workload.shape, workload.dtype)
        expected = as_bytes(np.tile(x, workload.repeats))
        for group, make in (("new", _new), ("new", _new_in_torch), ("used", _used)):
            sides = make(workload, x)
            check(sides, expected, workload.name)
            size = workload.result_bytes
            recorder.compare(
                SECTION, group, workload.name, sides, patience=2, has_pauses=True, bytes=size
            )


def _new(workload: Workload, x: np.ndarray) -> Sides:
    operator, argument = _operator(workload)
    return {
        "tileops, NumPy": functools.partial(operator, x, argument, copy=True),
        **peers.einops_numpy(workload, x),
        **peers.onnxruntime_fresh(workload, x),
        **peers.openvino_fresh(workload, x),
    }


def _new_in_torch(workload: Workload, x: np.ndarray) -> Sides:
    operator, argument = _operator(workload)
    return {
        "tileops, PyTorch": functools.partial(operator, to_torch(x), argument, copy=True),
        **peers.einops_torch(workload, x),
    }


def _used(workload: Workload, x: np.ndarray) -> Sides:
    operator, argument = _operator(workload)
    array, tensor = used_memory(workload), to_torch(used_memory(workload))
    return {
        "tileops, NumPy": functools.partial(operator, x, argument, out=array),
        "tileops, PyTorch": functools.partial(operator, to_torch(x), argument, out=tensor),
        **peers.onnxruntime_reused(workload, x),
        **peers.openvino_reused(workload, x),
    }


def _operator(workload: Workload) -> tuple[Callable[..., Any], tuple[int, ...]]:
    if workload.operator == "tile":
        return tileops.tile, workload.repeats
    return tileops.expand, workload.target


def tables(results: Results) -> list[Table]:
    """Show GB/s side by side, and how often tileops is ahead of whom."""
    groups = results.groups(SECTION)
    return [*(_table(results, group) for group in groups), _count(results, groups)]


def sides_of(results: Results, group: str) -> list[str]:
    """List who was compared, in order."""
    return list(dict.fromkeys(key.side for key in results.keys(SECTION, group)))


def _table(results: Results, group: str) -> Table:
    sides = sides_of(results, group)
    table = Table(GROUPS[group].title, GROUPS[group].text, ("workload", *sides))
    for case in results.cases(SECTION, group):
        size = float(results.fact(SECTION, group, case, sides[0], "bytes"))
        times = (results.calm(SECTION, group, case, side) for side in sides)
        speeds = (number(gigabytes_per_second(size, seconds)) for seconds in times)
        table.rows.append((case, *speeds))
    return table


def _count(results: Results, groups: list[str]) -> Table:
    table = Table(
        "On how many workloads tileops is ahead",
        "Each peer against tileops on NumPy arrays, einops on PyTorch against tileops on PyTorch. "
        "The ratio is the peer's time divided by the time of tileops: above 1, tileops is faster. "
        + NOTES,
        ("peer", "memory", "tileops ahead", "lowest ratio", "geometric mean"),
    )
    for group in groups:
        for side in sides_of(results, group):
            if side.startswith("tileops"):
                continue
            ours = "tileops, PyTorch" if side.endswith("PyTorch") else "tileops, NumPy"
            ratios = [
                ratio(
                    results.calm(SECTION, group, case, ours),
                    results.calm(SECTION, group, case, side),
                )
                for case in results.cases(SECTION, group)
            ]
            table.rows.append(
                (
                    side,
                    "new" if group == "new" else "in use",
                    f"{sum(r > 1 for r in ratios)} of {len(ratios)}",
                    number(min(ratios), 2),
                    number(statistics.geometric_mean(ratios), 2),
                )
            )
    return table

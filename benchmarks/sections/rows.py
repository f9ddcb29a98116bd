"""Rows of 64 bytes to 64 KiB, repeated into a buffer that is used again."""

import functools

import numpy as np
import torch

import tileops
from benchmarks.libraries import TORCH_THREADS, Sides, as_bytes, check
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, gigabytes_per_second, number, ratio
from benchmarks.workloads import random_array

TITLE = "Rows"
SECTION = "rows"
SIZE = 48 * 2**20
WIDTHS = tuple(64 * 2**step for step in range(11))

GROUPS = {
    "one": "One row, repeated down the result: (1, n) to (N, n)",
    "each": "Each row, repeated four times along itself: (N, n) by (1, 4)",
}


def measure(recorder: Recorder) -> None:
    """Repeat rows of each width, with as many rows as make 48 MiB."""
    buffer = np.ones(SIZE, np.uint8)
    for width in WIDTHS:
        one = random_array((1, width), "uint8")
        each = random_array((SIZE // (4 * width), width), "uint8")
        _compare(recorder, "one", width, one, (SIZE // width, 1), buffer)
        _compare(recorder, "each", width, each, (1, 4), buffer)


def _compare(
    recorder: Recorder,
    group: str,
    width: int,
    x: np.ndarray,
    repeats: tuple[int, int],
    buffer: np.ndarray,
) -> None:
    out = buffer.reshape([n * r for n, r in zip(x.shape, repeats, strict=True)])
    tensor = torch.from_numpy(buffer)
    ours: Sides = {"tileops": functools.partial(tileops.tile, x, repeats, out=out)}
    check(ours, as_bytes(np.tile(x, repeats)), f"rows of {width}")
    fills: Sides = {
        "fill, NumPy": lambda: buffer.fill(3),
        "fill, PyTorch": lambda: tensor.fill_(3),
    }
    recorder.compare(SECTION, group, str(width), ours | fills, patience=0.6, bytes=SIZE)


def tables(results: Results) -> list[Table]:
    """Show GB/s by width, and the share of the fill's speed."""
    return [_table(results, group) for group in results.groups(SECTION)]


def _table(results: Results, group: str) -> Table:
    table = Table(
        GROUPS[group],
        f"`tileops.tile` of uint8 NumPy arrays into `out=`, 48 MiB, beside a fill of the same "
        f"buffer by NumPy with one thread and by PyTorch with {TORCH_THREADS}. The last column is "
        f"the time of the faster fill divided by the time of tileops: at 1, repeating rows costs "
        f"as little as writing one value.",
        ("row bytes", "fill, NumPy GB/s", "fill, PyTorch GB/s", "tileops GB/s", "of the fill"),
    )
    for case in results.cases(SECTION, group):
        one = results.median(SECTION, group, case, "fill, NumPy")
        two = results.median(SECTION, group, case, "fill, PyTorch")
        ours = results.median(SECTION, group, case, "tileops")
        speeds = (number(gigabytes_per_second(SIZE, seconds)) for seconds in (one, two, ours))
        table.rows.append((case, *speeds, number(ratio(ours, min(one, two)), 2)))
    return table

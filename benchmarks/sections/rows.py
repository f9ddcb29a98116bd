"""Rows of 64 bytes to 64 KiB, repeated into a buffer that is used again."""

import functools

import numpy as np

import tileops
from benchmarks.libraries import Sides, as_bytes, check
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
    buffer = np.ones(SIZE // 4, np.float32)
    for width in WIDTHS:
        one = random_array((1, width // 4), "float32")
        each = random_array((SIZE // (4 * width), width // 4), "float32")
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
    ours: Sides = {"tileops": functools.partial(tileops.tile, x, repeats, out=out)}
    check(ours, as_bytes(np.tile(x, repeats)), f"rows of {width}")
    fill: Sides = {"fill": lambda: buffer.fill(3)}
    recorder.compare(SECTION, group, str(width), ours | fill, patience=0.6, bytes=SIZE)


def tables(results: Results) -> list[Table]:
    """Show GB/s by width, and the share of the fill's speed."""
    return [_table(results, group) for group in results.groups(SECTION)]


def _table(results: Results, group: str) -> Table:
    table = Table(
        GROUPS[group],
        "`tileops.tile` of float32 NumPy arrays into `out=`, 48 MiB, beside `ndarray.fill` of the "
        "same buffer. The last column is the time of the fill divided by the time of tileops: at "
        "1, repeating rows costs as little as writing one value.",
        ("row bytes", "fill GB/s", "tileops GB/s", "of the fill"),
    )
    for case in results.cases(SECTION, group):
        fill, ours = (results.calm(SECTION, group, case, side) for side in ("fill", "tileops"))
        speeds = (number(gigabytes_per_second(SIZE, seconds)) for seconds in (fill, ours))
        table.rows.append((case, *speeds, number(ratio(ours, fill), 2)))
    return table

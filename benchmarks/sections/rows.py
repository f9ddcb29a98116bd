"""Rows of 64 bytes to 64 KiB, repeated into a buffer that is used again."""

import functools

import numpy as np

import tileops
from benchmarks.libraries import THREADS, Sides, as_bytes, check
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, gigabytes_per_second, number, ratio
from benchmarks.workloads import random_array
from tileops._threads import share

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
        each[:1] = one  # a large array's rows lie where libc is fast, one of its own seldom
        _compare(recorder, "one", one, each[:1], (SIZE // width, 1), buffer)
        _compare(recorder, "each", each, each, (1, 4), buffer)


def _compare(
    recorder: Recorder,
    group: str,
    x: np.ndarray,
    same: np.ndarray,
    repeats: tuple[int, int],
    buffer: np.ndarray,
) -> None:
    out = buffer.reshape([n * r for n, r in zip(x.shape, repeats, strict=True)])
    sides: Sides = {
        "tileops": functools.partial(tileops.tile, x, repeats, out=out),
        "copyto": functools.partial(_assign, same, repeats, out),
    }
    case = str(x.nbytes // len(x))
    check(sides, as_bytes(np.tile(x, repeats)), f"rows of {case}")
    fill: Sides = {"fill": lambda: buffer.fill(3)}
    recorder.compare(SECTION, group, case, sides | fill, patience=0.9, bytes=SIZE)


def _assign(x: np.ndarray, repeats: tuple[int, int], out: np.ndarray) -> np.ndarray:
    """Assign a part of the rows in each thread, and plan nothing."""
    target = out.reshape(-1, repeats[1], x.shape[1])
    source = np.broadcast_to(x[:, np.newaxis], target.shape)
    parts = (np.array_split(rows, THREADS) for rows in (target, source))
    share(lambda part: np.copyto(*part), zip(*parts, strict=True), THREADS)
    return out


def tables(results: Results) -> list[Table]:
    """Show GB/s by width, and the share of the fill's speed."""
    return [_table(results, group) for group in results.groups(SECTION)]


def _table(results: Results, group: str) -> Table:
    table = Table(
        GROUPS[group],
        "`tileops.tile` of float32 NumPy arrays into `out=`, 48 MiB, compared with `ndarray.fill` "
        "of the same buffer and with one `np.copyto` of the same rows in each of the same "
        f"{THREADS} threads, without a plan. The last two columns are the times of the fill and of "
        "`np.copyto` divided by the time of tileops: at 1 of the fill, repeating rows costs as "
        "little as writing a single value.",
        ("row bytes", "fill GB/s", "copyto GB/s", "tileops GB/s", "of the fill", "of copyto"),
    )
    for case in results.cases(SECTION, group):
        sides = ("fill", "copyto", "tileops")
        fill, copyto, ours = (results.calm(SECTION, group, case, side) for side in sides)
        speeds = (number(gigabytes_per_second(SIZE, seconds)) for seconds in (fill, copyto, ours))
        table.rows.append(
            (case, *speeds, number(ratio(ours, fill), 2), number(ratio(ours, copyto), 2))
        )
    return table

"""Elements and rows that are repeated one by one, in memory that the C library has already."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.libraries import as_bytes, check, tiled, to_torch
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, number, ratio
from benchmarks.timing import with_memory_used_again
from benchmarks.workloads import random_array

TITLE = "Rows in memory used again"
SECTION = "reuse"
SIZES = {"4 KiB": 2**12, "64 KiB": 2**16, "1 MiB": 2**20, "8 MiB": 2**23}

ROWS = {
    "a byte, twice": ("uint8", 1, 2),
    "a byte, three times: gray to RGB": ("uint8", 1, 3),
    "a byte, 16 times": ("uint8", 1, 16),
    "an int16, twice: mono to stereo": ("int16", 1, 2),
    "a float32, twice": ("float32", 1, 2),
    "a float32, 16 times": ("float32", 1, 16),
    "3 bytes, four times": ("uint8", 3, 4),
    "64 bytes, four times": ("float32", 16, 4),
    "4 KiB, four times": ("float32", 1024, 4),
}
"""A dtype, how many of it make a row, and how often the row is repeated."""


class Library(NamedTuple):
    """A library's own tile, and how to give it an array."""

    name: str
    tile: Callable[..., Any]
    make: Callable[[np.ndarray], Any]


GROUPS = {
    "NumPy": Library("np.tile", np.tile, np.asarray),
    "PyTorch": Library("torch.tile", torch.tile, to_torch),
}


def measure(recorder: Recorder) -> None:
    """Repeat rows into results of each size, as often as the calls before freed such results."""
    with with_memory_used_again():
        for name, (dtype, row, repeats) in ROWS.items():
            for size, nbytes in SIZES.items():
                rows = max(1, nbytes // (row * np.dtype(dtype).itemsize * repeats))
                _compare(recorder, f"{name} | {size}", random_array((rows, row), dtype), repeats)


def _compare(recorder: Recorder, case: str, x: np.ndarray, repeats: int) -> None:
    counts = (1, repeats)
    expected = as_bytes(np.tile(x, counts))
    for group, library in GROUPS.items():
        sides = tiled(library.tile, library.make(x), counts)
        check(sides, expected, f"{group}, {case}")
        recorder.compare(SECTION, group, case, sides, patience=0.25, native=library.name)


def tables(results: Results) -> list[Table]:
    """Show ratios, by row and size."""
    return [_table(results, group) for group in results.groups(SECTION)]


def _table(results: Results, group: str) -> Table:
    native = GROUPS[group].name
    table = Table(
        f"{group}, elements and rows one by one",
        f"The time of `{native}` divided by the time of tileops, for results of four sizes: arrays "
        "of shape (N, n) are tiled by (1, r). Here the C library serves results from memory that "
        "earlier results have used, as it does by default below 32 MiB.",
        ("what is repeated", *SIZES),
    )
    for name in ROWS:
        cells = []
        for size in SIZES:
            sides = (
                results.calm(SECTION, group, f"{name} | {size}", side)
                for side in ("tileops", "native")
            )
            cells.append(number(ratio(*sides), 2))
        table.rows.append((name, *cells))
    return table

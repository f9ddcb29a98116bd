"""How time grows with the bytes of the result, with its rank, and with the repeats."""

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

import tileops
from benchmarks.libraries import as_bytes, check
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, number
from benchmarks.workloads import random_array

TITLE = "Growth"
SECTION = "growth"

MEBIBYTE = 2**20
SIZES = (1, 4, 16, 64, 256, 1024)
MOST_WHEN_QUICK = 64
RANKS = range(1, 9)
RANK_BITS = 22
"""The results of all ranks have 2**22 elements: 16 MiB of float32."""
REPEATS = tuple(10**step for step in range(7))
REPEATED_ELEMENTS = 4 * 10**6


class Case(NamedTuple):
    """A float32 array of some shape, and its repeats."""

    name: str
    shape: tuple[int, ...]
    repeats: tuple[int, ...]


class Group(NamedTuple):
    """One quantity that grows while the others stay."""

    title: str
    quantity: str
    text: str


SIDES = {
    "np.tile": "NumPy, `np.tile`",
    "tileops, NumPy": "NumPy, tileops",
    "torch.tile": "PyTorch, `torch.tile`",
    "tileops, PyTorch": "PyTorch, tileops",
}

GROUPS = {
    "bytes": Group(
        "Growing results",
        "result MiB",
        "Milliseconds. Rows of 1 KiB, each repeated four times along itself; the number of rows "
        "grows.",
    ),
    "rank": Group(
        "Growing rank",
        "rank",
        "Milliseconds. Results of 16 MiB with every axis repeated twice; the sizes of the axes of "
        "a result are powers of two, and as equal as these can be.",
    ),
    "repeats": Group(
        "Growing repeats",
        "repeats",
        "Milliseconds. Results of 16 MB with one axis, which is repeated once to a million times, "
        "while the input shrinks from 16 MB to 16 bytes.",
    ),
}


def cases(group: str, *, is_quick: bool) -> Iterator[Case]:
    """Make the cases of a group, smallest first."""
    if group == "bytes":
        for size in SIZES:
            if not is_quick or size <= MOST_WHEN_QUICK:
                yield Case(str(size), (size * MEBIBYTE // 4096, 256), (1, 4))
    elif group == "rank":
        for rank in RANKS:
            bits, more = divmod(RANK_BITS - rank, rank)
            shape = tuple(2 ** (bits + (axis >= rank - more)) for axis in range(rank))
            yield Case(str(rank), shape, (2,) * rank)
    else:
        for repeats in REPEATS:
            yield Case(str(repeats), (REPEATED_ELEMENTS // repeats,), (repeats,))


def measure(recorder: Recorder) -> None:
    """Time results in new memory, in NumPy and in PyTorch."""
    for group in GROUPS:
        for name, shape, repeats in cases(group, is_quick=recorder.is_quick):
            x = random_array(shape, "float32")
            tensor = torch.from_numpy(x)
            in_numpy = {
                "np.tile": functools.partial(np.tile, x, repeats),
                "tileops, NumPy": functools.partial(tileops.tile, x, repeats),
            }
            in_torch = {
                "torch.tile": functools.partial(torch.tile, tensor, repeats),
                "tileops, PyTorch": functools.partial(tileops.tile, tensor, repeats),
            }
            check(in_numpy | in_torch, as_bytes(np.tile(x, repeats)), f"growing {group}, {name}")
            size = x.nbytes * math.prod(repeats)
            recorder.compare(SECTION, group, name, in_numpy, bytes=size)
            recorder.compare(SECTION, group, name, in_torch, has_pauses=True, bytes=size)


def tables(results: Results) -> list[Table]:
    """Show milliseconds for each quantity that grows."""
    return [_table(results, group) for group in results.groups(SECTION)]


def _table(results: Results, group: str) -> Table:
    title, quantity, text = GROUPS[group]
    table = Table(title, text, (quantity, *SIDES.values()))
    for case in results.cases(SECTION, group):
        times = (results.calm(SECTION, group, case, side) for side in SIDES)
        table.rows.append((f"{int(case):,}", *(number(seconds * 1e3, 2) for seconds in times)))
    return table

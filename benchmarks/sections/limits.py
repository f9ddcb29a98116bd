"""What the machine can do: writing and copying memory, in use already or new."""

import mmap

import numpy as np
import torch

from benchmarks.libraries import THREADS
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, gigabytes_per_second, number

TITLE = "Limits of the machine"
SECTION = "limits"
GROUP = "memory"
SIZE = 64 * 2**20
PART = 256 * 2**10
IN_USE = ("fill, NumPy", "fill, PyTorch")
NEW = ("fill of new memory, NumPy", "fill of new memory, PyTorch")

HOW = {
    "fill, NumPy": "`ndarray.fill` of bytes in use, one thread",
    "fill, PyTorch": f"`Tensor.fill_` of bytes in use, {THREADS} threads",
    "fill of numbers, NumPy": "`ndarray.fill` of float32 in use, one thread",
    "copy, NumPy": "`np.copyto` between arrays in use, one thread",
    "copy from the cache, NumPy": "`np.copyto` of 256 KiB to each 256 KiB in use, one thread",
    "copy, PyTorch": f"`Tensor.copy_` between tensors in use, {THREADS} threads",
    "fill of new memory, NumPy": "`np.empty`, then `fill`",
    "touch of new memory, NumPy": "`np.empty`, then a byte in each 4 KiB: what the system does",
    "fill of new memory, PyTorch": f"`torch.empty`, then `fill_`, {THREADS} threads",
}


def measure(recorder: Recorder) -> None:
    """Fill and copy 64 MiB."""
    buffer = np.ones(SIZE, np.uint8)
    source = np.full(SIZE, 2, np.uint8)
    numbers = buffer.view(np.float32)
    parts, part = buffer.reshape(-1, PART), source[:PART]
    tensor, other = torch.from_numpy(buffer), torch.from_numpy(source)
    in_use = {
        "fill, NumPy": lambda: buffer.fill(3),
        "fill of numbers, NumPy": lambda: numbers.fill(3),
        "fill, PyTorch": lambda: tensor.fill_(3),
        "copy, NumPy": lambda: np.copyto(buffer, source),
        "copy from the cache, NumPy": lambda: np.copyto(parts, part),
        "copy, PyTorch": lambda: tensor.copy_(other),
    }
    new_numpy = {
        "fill of new memory, NumPy": lambda: np.empty(SIZE, np.uint8).fill(3),
        "touch of new memory, NumPy": _touch,
    }
    new_torch = {
        "fill of new memory, PyTorch": lambda: torch.empty(SIZE, dtype=torch.uint8).fill_(3)
    }
    for sides in (in_use, new_numpy, new_torch):
        recorder.compare(SECTION, GROUP, "64 MiB", sides, has_pauses=True, bytes=SIZE)


def _touch() -> None:
    np.empty(SIZE, np.uint8)[:: mmap.PAGESIZE] = 3


def write_limit(results: Results, fills: tuple[str, ...] = IN_USE) -> float | None:
    """Return the speed of the fastest of these fills, in GB/s; None if none was measured."""
    times = (results.calm(*key) for key in results.keys(SECTION, GROUP) if key.side in fills)
    return max((gigabytes_per_second(SIZE, seconds) for seconds in times), default=None)


def tables(results: Results) -> list[Table]:
    """Show GB/s for each way to write."""
    table = Table(
        "Writing 64 MiB",
        "What it takes to write 64 MiB. New memory costs more than memory in use, "
        "because the system clears and maps each page when it is first written (NumPy asks for "
        "huge pages, PyTorch does not). The GB/s of a copy count only the bytes written.",
        ("what", "how", "ms", "GB/s"),
    )
    for side, how in HOW.items():
        seconds = results.calm(SECTION, GROUP, "64 MiB", side)
        speed = gigabytes_per_second(SIZE, seconds)
        table.rows.append((side, how, number(seconds * 1e3, 2), number(speed)))
    return [table]

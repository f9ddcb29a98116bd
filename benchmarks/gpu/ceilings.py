"""The step ``ceilings``: the fastest fills and copies that a card can do."""

import itertools
from typing import Any

import numpy as np

from benchmarks.gpu.environment import nvidia_smi
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.libraries.jax import Jax
from benchmarks.gpu.run import Run, say
from benchmarks.gpu.timing import Sides, compare, rounded

SIZES = (2**28, 2**30)
"""Bytes at full scale: about the smallest result of a workload, and a much larger size."""


def measure(run: Run) -> None:
    """Time the libraries' own fastest fills and copies."""
    rows: list[dict[str, Any]] = []
    run.results["ceilings"] = rows
    sizes = [max(2**20, int(size * run.scale)) // 16 * 16 for size in SIZES]
    for library, nbytes in itertools.product(run.libraries, dict.fromkeys(sizes)):
        with run.attempt(f"ceilings of {library.name}, {nbytes} bytes"):
            for name, call in sides_of(library, nbytes).items():
                seconds = compare(library, {name: call})[name]
                rate = rounded(nbytes / seconds / 1e9)
                moved = rounded(2 * rate) if "copy" in name else rate
                rows.append({"library": library.name, "name": name, "bytes": nbytes})
                rows[-1] |= {"seconds": seconds, "written GB/s": rate, "moved GB/s": moved}
                size = f"{nbytes / 2**20:.0f} MiB"
                say(f"  {library.name} {name}, {size}: {rate:.0f} GB/s written, {moved:.0f} moved")
        library.release()
    run.results["nvidia-smi after ceilings"] = nvidia_smi()


def sides_of(library: Library, nbytes: int) -> Sides:
    """Return the calls to time, by name."""
    if isinstance(library, Jax):
        return sides_of_jax(library, nbytes)
    return sides_in_place(library, nbytes)


def sides_in_place(library: Library, nbytes: int) -> Sides:
    """Write and copy three arrays in turn; the copies come first, while the bytes are random."""
    xp = library.xp
    buffers = [library.random((nbytes,), "uint8") for _ in range(3)]
    pairs = itertools.cycle(zip(buffers, buffers[1:] + buffers[:1], strict=True))
    single = itertools.cycle([b.view(xp.float32) for b in buffers])
    double = itertools.cycle([b.view(xp.complex128) for b in buffers])
    return {
        "copy": lambda: library.assign(*next(pairs)),
        "fill float32": lambda: library.fill(next(single), 1.25),
        "fill complex128": lambda: library.fill(next(double), 1.25 - 3.5j),
        "memset": lambda: library.memset(next(single)),
    }


def sides_of_jax(library: Jax, nbytes: int) -> Sides:
    """Make new arrays, because JAX cannot write into existing ones."""
    x = library.random((nbytes // 4,), "float32")
    fill = library.jax.jit(lambda value: library.xp.full(nbytes // 4, value))
    value = library.from_numpy(np.full((), 1.25, np.float32))
    return {"copy": lambda: library.xp.array(x, copy=True), "fill float32": lambda: fill(value)}

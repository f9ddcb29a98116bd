"""The command ``python -m benchmarks.gpu``: check results on a GPU bit for bit, and measure speed.

One run takes a few minutes, works without a network, and writes what it has found so far after
each part, so that a run that is cut off keeps what it has. ``--device cpu`` runs the same code
with small arrays where there is no GPU: to see that the script works, not to measure.

Seconds of a call are the median over rounds that alternate between the sides of a comparison. In
a round a side is called many times in a row, as in a program that does not wait for each result,
and the device's own events give the time. The result of a call lives until the next call has
returned, so two buffers take turns.
"""

import argparse
import contextlib
import dataclasses
import datetime as dt
import functools
import importlib
import itertools
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tileops
from benchmarks.workloads import WORKLOADS, Workload, numpy_dtype, random_array

Call = Callable[[], Any]
Sides = dict[str, Call]
Shape = tuple[int, ...]

ROUNDS = 8
"""An even number, so that each side is as often first as last."""

ROUND_SECONDS = 5e-3
"""A side is called as often in a round as takes about so long."""

MOST_CALLS = 500
"""In a round. CUDA takes about 1000 launches ahead of the device before it makes the host wait."""

LEAST_RESULT = 256 * 10**6
"""The bytes of a workload's result at full scale, several times a cache."""

POISON = 0xA5
"""A byte that fills memory before a result is written into it."""

SPIN = 50_000_000
"""Cycles that keep a stream busy: 25 ms and more, so longer than any call takes the host."""

PART = 2**28
"""Elements compared at a time on the device, where the mask of a comparison takes memory, too."""

BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
"""A dtype of each width that every library has."""

PACKAGES = (
    *("array-tileops", "numpy", "ml_dtypes", "torch", "triton", "jax", "jaxlib"),
    *("cupy-cuda13x", "cupy-cuda12x", "jax-cuda13-plugin", "jax-cuda12-plugin"),
)

N = -1
"""The place of a number in a pattern that sets the size of its result."""


class Pattern(NamedTuple):
    """Shape and repeats, one number of which is open."""

    shape: Shape
    repeats: Shape

    def sized(self, elements: int, multiple: int = 1) -> "Pattern":
        """Put in the largest number for which the result has at most so many elements.

        Of 16 or more it is a multiple of `multiple`: of 16, so that wide words divide much.
        """
        others = math.prod(n for n in self.shape + self.repeats if n != N)
        number = max(1, elements // others)
        number -= number % multiple if number >= 16 else 0
        return Pattern(*(tuple(number if n == N else n for n in part) for part in self))

    @property
    def elements(self) -> int:
        """The elements of the result."""
        return math.prod(self.shape) * math.prod(self.repeats)

    @property
    def is_expand(self) -> bool:
        """Whether each repeated axis has size 1."""
        return all(n == 1 or r == 1 for n, r in zip(self.shape, self.repeats, strict=True))


PATTERNS = (
    Pattern((N,), (6,)),
    Pattern((3,), (N,)),
    Pattern((1,), (N,)),
    Pattern((N, 3), (1, 5)),
    Pattern((N, 1), (1, 3)),
    Pattern((N, 64), (1, 4)),
    Pattern((N, 7), (9, 1)),
    Pattern((N, 5), (2, 3)),
    Pattern((2, N, 333, 3), (1, 2, 3, 1)),
    Pattern((3, 1, N, 8), (1, 4, 1, 1)),
    Pattern((2, 3, N, 5, 1), (1, 2, 1, 3, 2)),
    Pattern((1, N, 1, 96), (5, 1, 7, 1)),
)
"""Short and long rows, of a power of two or not, repeated outside, inside, or both."""

SMALL = (
    Pattern((), ()),
    Pattern((5,), (4,)),
    Pattern((3, 4), (2, 3)),
    Pattern((1, 6), (4, 1)),
    Pattern((2, 1, 3), (1, 5, 2)),
)

EMPTY = (
    Pattern((0,), (3,)),
    Pattern((2, 0, 3), (2, 2, 1)),
    Pattern((2, 3), (0, 2)),
    Pattern((0, 3), (0, 4)),
    Pattern((1, 0), (5, 1)),
    Pattern((1, 1, 1), (3, 0, 2)),
)

HUGE = (
    ("uint8", 0, Pattern((2**31 // 15 + 1001, 3), (1, 5))),
    ("uint8", 0, Pattern((2**31 // 3 + 1001, 1), (1, 3))),
    ("uint8", 0, Pattern((3,), (2**30 + 7,))),
    ("int16", 0, Pattern((7, 1, 2**31 // 224 + 11, 8), (1, 4, 1, 1))),
    ("int32", 0, Pattern((2**29 + 3,), (5,))),
    ("uint8", 0, Pattern((2**31 + 1001,), (2,))),
    ("uint8", 1, Pattern((2**31 + 1001,), (2,))),
    ("uint8", 0, Pattern((2, 2**30 + 501), (1, 2))),
)
"""Dtype, first element of the input in its memory, and a result of more than 2**31 elements."""

CROSSOVER = {
    "rows of 3 bytes, x5": ("uint8", Pattern((N, 3), (1, 5))),
    "gray to RGB, uint8": ("uint8", Pattern((N, 1), (1, 3))),
    "repeat_kv, bfloat16": ("bfloat16", Pattern((2, 1, N, 128), (1, 4, 1, 1))),
    "RGB images, uint8": ("uint8", Pattern((1, N, 500, 3), (1, 4, 4, 1))),
    "(N, 64) x (1, 4), float32": ("float32", Pattern((N, 64), (1, 4))),
}

SIZES = (*(4**power for power in range(5, 17)), 2**33)
"""Bytes of the results at full scale: 1 KiB to 4 GiB in powers of 4, and 8 GiB."""


class UnavailableError(Exception):
    """A library cannot run here, for the reason given."""


class WrongError(Exception):
    """A result is not what it should be."""


# Libraries


class Library:
    """What the script needs of a library on one device."""

    name = ""
    has_out = True
    xp: Any

    def dtypes(self) -> dict[str, int]:
        """Name each dtype, with its bytes."""
        raise NotImplementedError

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """Make an array from raw bytes, one item for each element."""
        raise NotImplementedError

    def bits(self, x: Any) -> np.ndarray:
        """Give the raw bytes of an array, in the order of its elements."""
        raise NotImplementedError

    def from_numpy(self, array: np.ndarray) -> Any:
        """Copy an array of numbers onto the device."""
        return self.from_bits(array.view(f"V{array.itemsize}"), array.dtype.name)

    def tile(self, x: Any, repeats: Shape) -> Any:
        """Tile with the library's own function."""
        return self.xp.tile(x, repeats)

    def expand(self, x: Any, shape: Shape) -> Any:
        """Expand with the library's own functions, into memory of its own."""
        raise NotImplementedError

    def empty(self, shape: Shape, like: Any) -> Any:
        """Allocate an array of the dtype of another."""
        raise NotImplementedError

    def is_contiguous(self, x: Any) -> bool:
        """Whether elements lie in C order without gaps."""
        return True

    def random(self, shape: Shape, dtype: str) -> Any:
        """Make an array of random bytes; past 16 MiB they recur."""
        count, itemsize = math.prod(shape), numpy_itemsize(dtype)
        length = min(count, 2**24 // itemsize)
        block = self.from_bits(random_bits(dtype, itemsize, (length,)), dtype)
        return self.tile(block, (-(-count // length),))[:count].reshape(shape)

    def poison(self, nbytes: int) -> None:
        """Fill memory that the next result of this size is likely to get."""

    def seconds(self, call: Call, calls: int) -> float:
        """Time a call: the mean over calls in a row."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for the device."""

    def release(self) -> None:
        """Give memory that is cached back to the device."""

    def free_bytes(self) -> int:
        """Count the memory of the device that is left."""
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    # On a GPU, of the libraries that can write into arrays:

    def new_stream(self) -> Any:
        """Make a stream that the default stream does not wait for."""
        raise NotImplementedError

    def use(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Make a stream the current one."""
        raise NotImplementedError

    def is_done(self, stream: Any) -> bool:
        """Whether all work of a stream is done."""
        raise NotImplementedError

    def spin(self, cycles: int) -> None:
        """Keep the current stream busy for so many cycles of the clock."""
        raise NotImplementedError

    def assign(self, target: Any, source: Any) -> None:
        """Copy in the current stream."""
        raise NotImplementedError

    def most_memory(self, call: Call) -> int:
        """Count the bytes of the device that a call takes at most, its result included."""
        raise NotImplementedError


class Torch(Library):
    """PyTorch on the CPU or the first CUDA device."""

    name = "torch"

    def __init__(self, device: str) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise UnavailableError("PyTorch finds no CUDA device")
        self.xp, self.device = torch, device

    def dtypes(self) -> dict[str, int]:
        """Name each dtype but the quantised."""
        aliases = {"half", "float", "double", "short", "int", "long", "cfloat", "cdouble", "chalf"}
        kinds = ("bool", "int", "uint", "float", "bfloat", "complex", "bits")
        return {
            name: found.itemsize
            for name in dir(self.xp)
            if isinstance(found := getattr(self.xp, name), self.xp.dtype)
            and name.startswith(kinds)
            and name not in aliases
        }

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """View bytes as the dtype on the device, so that no conversion touches them."""
        raw = self.xp.from_numpy(np.array(bits, order="C").reshape(-1).view(np.uint8))
        return raw.to(self.device).view(getattr(self.xp, dtype)).reshape(bits.shape)

    def bits(self, x: Any) -> np.ndarray:
        """View elements as a dtype whose copies exist for every layout."""
        x = x.detach().resolve_conj().resolve_neg().view(getattr(self.xp, BITS[x.element_size()]))
        return x.cpu().contiguous().reshape(-1).view(self.xp.uint8).numpy()

    def expand(self, x: Any, shape: Shape) -> Any:
        """Expand, then copy."""
        return x.expand(shape).contiguous()

    def empty(self, shape: Shape, like: Any) -> Any:
        """Allocate without a value."""
        return self.xp.empty(shape, dtype=like.dtype, device=self.device)

    def is_contiguous(self, x: Any) -> bool:
        """Ask the tensor."""
        return x.is_contiguous()

    def poison(self, nbytes: int) -> None:
        """Fill and free: the allocator hands out again what was freed last."""
        self.xp.full((nbytes,), POISON, dtype=self.xp.uint8, device=self.device)

    def seconds(self, call: Call, calls: int) -> float:
        """Time with events of the current stream."""
        if self.device == "cpu":
            return host_seconds(call, calls)
        start, stop = (self.xp.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            result = call()
        stop.record()
        stop.synchronize()
        del result
        return start.elapsed_time(stop) / 1e3 / calls

    def synchronize(self) -> None:
        """Wait for all streams."""
        if self.device == "cuda":
            self.xp.cuda.synchronize()

    def release(self) -> None:
        """Empty the allocator's cache."""
        if self.device == "cuda":
            self.xp.cuda.synchronize()
            self.xp.cuda.empty_cache()

    def free_bytes(self) -> int:
        """Ask the driver."""
        return super().free_bytes() if self.device == "cpu" else self.xp.cuda.mem_get_info()[0]

    def new_stream(self) -> Any:
        """PyTorch's own streams never wait for the default one."""
        return self.xp.cuda.Stream()

    def use(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Give PyTorch's context manager."""
        return self.xp.cuda.stream(stream)

    def is_done(self, stream: Any) -> bool:
        """Ask the stream."""
        return stream.query()

    def spin(self, cycles: int) -> None:
        """Launch the kernel that PyTorch's own tests use."""
        self.xp.cuda._sleep(cycles)  # noqa: SLF001 (it has no public name)

    def assign(self, target: Any, source: Any) -> None:
        """Copy without waiting."""
        target.copy_(source)

    def most_memory(self, call: Call) -> int:
        """Ask the allocator for its peak."""
        cuda = self.xp.cuda
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        result = call()
        cuda.synchronize()
        del result
        return cuda.max_memory_allocated() - before


class CuPy(Library):
    """CuPy on the first CUDA device."""

    name = "cupy"

    def __init__(self, device: str) -> None:
        if device == "cpu":
            raise UnavailableError("CuPy runs on no CPU")
        import cupy

        cupy.cuda.runtime.getDeviceCount()  # raises where there is no driver
        self.xp = cupy
        self._spin = functools.cache(self._compile_spin)

    def dtypes(self) -> dict[str, int]:
        """Name NumPy's numbers, and bfloat16 where CuPy knows it."""
        names = ["bool", "float16", "float32", "float64", "complex64", "complex128"]
        names += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
        names += ["bfloat16"] if self._has_bfloat16() else []
        return {name: numpy_itemsize(name) for name in names}

    @functools.cache  # noqa: B019 (there is one instance)
    def _has_bfloat16(self) -> bool:
        try:
            x = self.xp.asarray(np.ones(2, numpy_dtype("bfloat16")))
            return bool((self.xp.tile(x, 2) == x[0]).all())
        except Exception:  # noqa: BLE001 (however it fails, there is no such dtype)
            return False

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """Copy; where CuPy does not know bfloat16, as integers of the same width."""
        if dtype == "bfloat16" and not self._has_bfloat16():
            dtype = "uint16"
        return self.xp.asarray(np.array(bits, order="C").view(numpy_dtype(dtype)))

    def bits(self, x: Any) -> np.ndarray:
        """Copy to the host."""
        return as_bytes(x.get())

    def expand(self, x: Any, shape: Shape) -> Any:
        """Broadcast, then copy."""
        return self.xp.ascontiguousarray(self.xp.broadcast_to(x, shape))

    def empty(self, shape: Shape, like: Any) -> Any:
        """Allocate without a value."""
        return self.xp.empty(shape, like.dtype)

    def is_contiguous(self, x: Any) -> bool:
        """Ask the array."""
        return bool(x.flags.c_contiguous)

    def poison(self, nbytes: int) -> None:
        """Fill and free: the pool hands out again what was freed last."""
        self.xp.empty(nbytes, np.uint8).fill(POISON)

    def seconds(self, call: Call, calls: int) -> float:
        """Time with events of the current stream."""
        start, stop = (self.xp.cuda.Event() for _ in range(2))
        start.record()
        for _ in range(calls):
            result = call()
        stop.record()
        stop.synchronize()
        del result
        return self.xp.cuda.get_elapsed_time(start, stop) / 1e3 / calls

    def synchronize(self) -> None:
        """Wait for all streams."""
        self.xp.cuda.Device().synchronize()

    def release(self) -> None:
        """Empty the pool."""
        self.synchronize()
        self.xp.get_default_memory_pool().free_all_blocks()

    def free_bytes(self) -> int:
        """Ask the driver."""
        return self.xp.cuda.runtime.memGetInfo()[0]

    def new_stream(self) -> Any:
        """Make a stream that does not wait for the default one."""
        return self.xp.cuda.Stream(non_blocking=True)

    def use(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """CuPy's streams are context managers."""
        return stream

    def is_done(self, stream: Any) -> bool:
        """Ask the stream."""
        return stream.done

    def spin(self, cycles: int) -> None:
        """Launch one thread that looks at the clock."""
        self._spin()((1,), (1,), (np.int64(cycles),))

    def _compile_spin(self) -> Any:
        source = """extern "C" __global__ void spin(long long cycles) {
            long long start = clock64();
            while (clock64() - start < cycles) {}
        }"""
        return self.xp.RawKernel(source, "spin")

    def assign(self, target: Any, source: Any) -> None:
        """Copy in the current stream."""
        self.xp.copyto(target, source)

    def most_memory(self, call: Call) -> int:
        """Allocate from a new pool, which grows to the most that was in use."""
        pool = self.xp.cuda.MemoryPool()
        with self.xp.cuda.using_allocator(pool.malloc):
            result = call()
            self.synchronize()
            del result
        return pool.total_bytes()


class Jax(Library):
    """JAX on the CPU or the first CUDA device."""

    name = "jax"
    has_out = False

    def __init__(self, device: str) -> None:
        # The other libraries need memory, too: JAX would take three quarters of it at once.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        import jax.numpy

        jax.config.update("jax_enable_x64", True)
        try:
            self.place = jax.devices(device)[0]
        except RuntimeError as error:
            raise UnavailableError(f"JAX finds no device {device}: {error}") from None
        self.jax, self.xp = jax, jax.numpy

    def dtypes(self) -> dict[str, int]:
        """Name the numbers and the narrow floats; integers of a few bits are left to the tests."""
        names = ["bool", "float32", "float64", "complex64", "complex128", "float16", "bfloat16"]
        names += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
        names += [name for name in dir(self.xp) if name.startswith("float8")]
        return {name: self.xp.dtype(name).itemsize for name in names}

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """Put bytes onto the device."""
        return self.jax.device_put(np.array(bits, order="C").view(self.xp.dtype(dtype)), self.place)

    def bits(self, x: Any) -> np.ndarray:
        """Copy to the host."""
        return as_bytes(np.asarray(x))

    def expand(self, x: Any, shape: Shape) -> Any:
        """Broadcast, which always makes a new array."""
        return self.xp.broadcast_to(x, shape)

    def seconds(self, call: Call, calls: int) -> float:
        """Time with the host's clock and wait for each result, since JAX has no events."""
        return host_seconds(lambda: call().block_until_ready(), calls)

    def synchronize(self) -> None:
        """Wait for what was put onto the device last."""
        (self.jax.device_put(np.int32(0), self.place) + 1).block_until_ready()

    def free_bytes(self) -> int:
        """Ask JAX's own pool on a GPU."""
        memory = self.place.memory_stats() or {}
        if "bytes_limit" not in memory:
            return super().free_bytes()
        return memory["bytes_limit"] - memory["bytes_in_use"]


LIBRARIES: dict[str, type[Library]] = {"torch": Torch, "cupy": CuPy, "jax": Jax}


def numpy_itemsize(dtype: str) -> int:
    """Give the bytes of an element of a dtype that NumPy knows."""
    return numpy_dtype(dtype).itemsize


def random_bits(dtype: str, itemsize: int, shape: Shape, seed: int = 0) -> np.ndarray:
    """Draw raw elements: any bits, so NaN payloads and both zeros; of bool the legal two."""
    raw = np.random.default_rng(seed).integers(0, 256, math.prod(shape) * itemsize, np.uint8)
    if dtype == "bool":
        raw &= 1
    return raw.view(f"V{itemsize}").reshape(shape)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """View an array as bytes, in the order of its elements."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def host_seconds(call: Call, calls: int) -> float:
    """Time with the host's clock: the mean over calls in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        result = call()
    seconds = time.perf_counter() - start
    del result
    return seconds / calls


@contextlib.contextmanager
def always_planned(device: str) -> Iterator[None]:
    """Make tileops plan a copy at every size, as it does by default for large results only."""
    place = importlib.import_module(f"tileops.execute.{'device' if device == 'cuda' else 'host'}")
    least = place.LEAST
    place.LEAST = 1
    try:
        yield
    finally:
        place.LEAST = least


Around = Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]]


def compare(
    library: Library, sides: Mapping[str, Call], around: Around | None = None
) -> dict[str, float]:
    """Time all sides in turn, in reverse every second round; give median seconds of a call.

    `around` has the context in which a side is called, where it needs one.
    """
    contexts = {side: (around or {}).get(side, contextlib.nullcontext) for side in sides}
    values: dict[str, list[float]] = {side: [] for side in sides}
    calls = {}
    order = list(sides)
    for side in order:
        with contexts[side]():
            calls[side] = calls_of_a_round(library, sides[side])
    for _ in range(ROUNDS):
        for side in order:
            with contexts[side]():
                values[side].append(library.seconds(sides[side], calls[side]))
        order.reverse()
    return {side: rounded(statistics.median(seconds)) for side, seconds in values.items()}


def calls_of_a_round(library: Library, call: Call) -> int:
    """Warm a side up, and count the calls that fill a round."""
    library.seconds(call, 2)
    seconds = library.seconds(call, 2)
    return min(MOST_CALLS, max(1, round(ROUND_SECONDS / seconds)))


def rounded(value: float) -> float:
    """Keep as many digits as a clock can promise."""
    return float(f"{value:.4g}")


# A run and what it has found


class Run:
    """The options of a run, its libraries, how long it may still take, and its results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device: str = options.device
        self.scale: float = options.scale or (1.0 if options.device == "cuda" else 1 / 256)
        self.out: Path = options.out
        self.steps: list[str] = options.steps
        self.started = time.monotonic()
        self.end = self.started + 60 * options.minutes
        self.step_end = self.end
        self.results: dict[str, Any] = {"left_out": [], "errors": {}, "seconds": {}}
        self.libraries: list[Library] = []
        for name in options.libraries:
            self._open(name)

    def _open(self, name: str) -> None:
        try:
            self.libraries.append(LIBRARIES[name](self.device))
        except UnavailableError as error:
            self.leave_out(f"{name}: {error}")
        except Exception as error:  # noqa: BLE001 (a library that is broken must not stop others)
            self.leave_out(f"{name}: cannot be used here, {describe(error)}")

    @property
    def is_gpu(self) -> bool:
        """Whether arrays lie on a GPU."""
        return self.device == "cuda"

    def leave_out(self, what: str) -> None:
        """Say what is not done, and why."""
        self.results["left_out"].append(what)
        say(f"  left out: {what}")

    def begin(self, step: str) -> None:
        """Start a step and give it its part of the time that is left."""
        later = self.steps[self.steps.index(step) :]
        share = STEPS[step].share / sum(STEPS[name].share for name in later)
        now = time.monotonic()
        self.step_end = now + share * max(0.0, self.end - now)
        say(f"\n== {step}: {STEPS[step].measure.__doc__} (at {now - self.started:.0f} s)")

    def has_time(self, what: str) -> bool:
        """Whether the step may go on; say so where it may not."""
        if time.monotonic() < self.step_end:
            return True
        self.leave_out(f"{what}: no time left")
        return False

    @contextlib.contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Keep the error of a part that fails, go on after it, and save."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (whatever it is, the rest is worth having)
            self.results["errors"][what] = describe(error)
            say(f"  FAILED {what}: {describe(error)}")
        self.save()

    def save(self) -> None:
        """Write all results, over the file of before only when they are complete."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        part = self.out.with_name(self.out.name + ".part")
        part.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        part.replace(self.out)


def describe(error: BaseException) -> str:
    """Put an error into one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def say(text: str) -> None:
    """Print at once, so that a run that is cut off shows how far it came."""
    print(text, flush=True)


# Step 1: environment


def environment(run: Run) -> None:
    """Describe what the figures depend on."""
    found = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.gpu", *sys.argv[1:]]),
        "device": run.device,
        "scale": run.scale,
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "tileops": tileops.__version__,
        "packages": {p: version for p in PACKAGES if (version := version_of(p))},
    }
    run.results["environment"] = found
    found["nvidia-smi"] = nvidia_smi()
    for library in run.libraries:
        with run.attempt(f"environment of {library.name}"):
            found.update(DESCRIPTIONS[library.name](library) if run.is_gpu else {})
    for name, value in found.items():
        say(f"  {name}: {value}")


def version_of(package: str) -> str | None:
    """Look up an installed distribution."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def nvidia_smi() -> str | None:
    """Ask the driver for name, versions, clocks and limits, as it reports them now."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    asked = "name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    asked += ",power.limit,temperature.gpu,mig.mode.current"
    line = [command, f"--query-gpu={asked}", "--format=csv"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603 (nothing in it comes from outside)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() or None


def describe_torch(library: Library) -> dict[str, Any]:
    """Describe the card as PyTorch sees it."""
    card = library.xp.cuda.get_device_properties(0)
    return {
        "card": card.name,
        "capability": f"{card.major}.{card.minor}",
        "multiprocessors": card.multi_processor_count,
        "memory bytes": card.total_memory,
        "free bytes": library.free_bytes(),
        "L2 bytes": getattr(card, "L2_cache_size", None),
        "CUDA of torch": library.xp.version.cuda,
    }


def describe_cupy(library: Library) -> dict[str, Any]:
    """Name the versions that CuPy runs with."""
    runtime = library.xp.cuda.runtime
    card = runtime.getDeviceProperties(0)
    return {
        "CUDA of cupy": runtime.runtimeGetVersion(),
        "CUDA of the driver": runtime.driverGetVersion(),
        "L2 bytes, cupy": card["l2CacheSize"],
        "cupy knows bfloat16": "bfloat16" in library.dtypes(),
    }


def describe_jax(library: Library) -> dict[str, Any]:
    """Name the device that JAX runs on."""
    return {"jax device": f"{library.place.device_kind}, {library.place.client.platform_version}"}


DESCRIPTIONS = {"torch": describe_torch, "cupy": describe_cupy, "jax": describe_jax}


# Step 2: ceilings


def ceilings(run: Run) -> None:
    """Time the fastest fills and copies of the libraries' own."""
    rows: list[dict[str, Any]] = []
    run.results["ceilings"] = rows
    nbytes = max(2**20, int(2**30 * run.scale)) // 16 * 16
    for library in run.libraries:
        with run.attempt(f"ceilings of {library.name}"):
            for name, call in CEILINGS[library.name](library, nbytes).items():
                seconds = compare(library, {name: call})[name]
                rate = rounded(nbytes / seconds / 1e9)
                moved = rounded(2 * rate) if "copy" in name else rate
                rows.append({"library": library.name, "name": name, "bytes": nbytes})
                rows[-1] |= {"seconds": seconds, "written GB/s": rate, "moved GB/s": moved}
                say(f"  {library.name} {name}: {rate:.0f} GB/s written, {moved:.0f} moved")
        library.release()
    run.results["nvidia-smi after ceilings"] = nvidia_smi()


def torch_ceilings(library: Library, nbytes: int) -> Sides:
    """Write and copy tensors, three in turn; the copies come first, while the bytes are random."""
    torch = library.xp
    buffers = [library.random((nbytes,), "uint8") for _ in range(3)]
    pairs = itertools.cycle(zip(buffers, buffers[1:] + buffers[:1], strict=True))
    single = itertools.cycle([b.view(torch.float32) for b in buffers])
    double = itertools.cycle([b.view(torch.complex128) for b in buffers])

    def copy() -> None:
        target, source = next(pairs)
        target.copy_(source)

    return {
        "copy": copy,
        "fill float32": lambda: next(single).fill_(1.25),
        "fill complex128": lambda: next(double).fill_(1.25 - 3.5j),
        "memset": lambda: next(single).zero_(),
    }


def cupy_ceilings(library: Library, nbytes: int) -> Sides:
    """Write and copy arrays, three in turn; the copies come first, while the bytes are random."""
    cupy = library.xp
    buffers = [library.random((nbytes,), "uint8") for _ in range(3)]
    pairs = itertools.cycle(zip(buffers, buffers[1:] + buffers[:1], strict=True))
    single = itertools.cycle([b.view(np.float32) for b in buffers])
    double = itertools.cycle([b.view(np.complex128) for b in buffers])

    def copy() -> None:
        target, source = next(pairs)
        cupy.copyto(target, source)

    return {
        "copy": copy,
        "fill float32": lambda: next(single).fill(1.25),
        "fill complex128": lambda: next(double).fill(1.25 - 3.5j),
        "memset": lambda: next(single).data.memset_async(0, nbytes),
    }


def jax_ceilings(library: Library, nbytes: int) -> Sides:
    """Make new arrays, since none can be written into."""
    x = library.random((nbytes // 4,), "float32")
    fill = library.jax.jit(lambda value: library.xp.full(nbytes // 4, value))
    value = library.from_numpy(np.float32(1.25).reshape(()))
    return {"copy": lambda: library.xp.array(x, copy=True), "fill float32": lambda: fill(value)}


CEILINGS = {"torch": torch_ceilings, "cupy": cupy_ceilings, "jax": jax_ceilings}


def write_ceiling(run: Run) -> float | None:
    """Give the fastest write of any library, in GB/s, or None if none was measured."""
    rows = run.results.get("ceilings", [])
    return max((row["written GB/s"] for row in rows if row["name"] != "copy"), default=None)


# Step 3: correctness


class Layout(NamedTuple):
    """How an array lies in the memory of a larger one."""

    name: str
    base: Callable[[Shape], Shape]
    take: Callable[[Any, Any, Shape], Any]
    """Takes the array out of the larger one, with the functions of a library."""


def reverse_axes(xp: Any, a: Any, shape: Shape) -> Any:
    """Transpose, in the words that NumPy, PyTorch and CuPy share."""
    axes = tuple(range(len(shape)))
    return xp.moveaxis(a, axes, axes[::-1])


PLAIN = Layout("plain", lambda shape: shape, lambda _xp, a, _shape: a)
BACKWARD = Layout(
    "negative strides",
    lambda shape: shape,
    lambda _xp, a, shape: a[(slice(None, None, -1),) * len(shape)],
)
EXPANDED = Layout(
    "stride 0",
    lambda shape: (1, *shape[1:]),
    lambda xp, a, shape: xp.broadcast_to(a, shape),
)
LAYOUTS = (
    PLAIN,
    Layout(
        "from element 1",
        lambda shape: (math.prod(shape) + 1,),
        lambda _xp, a, shape: a[1:].reshape(shape),
    ),
    Layout(
        "from element 4",
        lambda shape: (math.prod(shape) + 4,),
        lambda _xp, a, shape: a[4:].reshape(shape),
    ),
    Layout(
        "middle columns",
        lambda shape: (*shape[:-1], shape[-1] + 3),
        lambda _xp, a, _shape: a[..., 1:-2],
    ),
    Layout(
        "every second column",
        lambda shape: (*shape[:-1], 2 * shape[-1]),
        lambda _xp, a, _shape: a[..., ::2],
    ),
    Layout("transposed", lambda shape: shape[::-1], reverse_axes),
)
"""The ways that an input or an `out` can lie, in all libraries with views."""


def layouts_of(library: Library) -> tuple[Layout, ...]:
    """List the layouts that a library has; of those the last is only for inputs."""
    if not library.has_out:
        return (PLAIN,)
    return (*LAYOUTS, *([BACKWARD] if library.name == "cupy" else []), EXPANDED)


class Checks:
    """How many checks of a library passed, and which failed."""

    def __init__(self, run: Run, library: Library, found: dict[str, Any]) -> None:
        self.run, self.library = run, library
        self.passed: dict[str, int] = found.setdefault("passed", {})
        self.failed: list[dict[str, str]] = found.setdefault("failed", [])
        self.group = ""

    def start(self, group: str) -> None:
        """Begin a group."""
        self.group = group
        self.passed[group] = 0

    @contextlib.contextmanager
    def case(self, name: str, native: Call | None = None) -> Iterator[None]:
        """Count a check; where it fails, say whether the library's own function passes it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (any error is a failed check)
            entry = {"group": self.group, "case": name, "error": describe(error)}
            if native is not None:
                entry["native"] = outcome(native)
            self.failed.append(entry)
            if len(self.failed) <= 20:
                say(f"  WRONG {self.library.name}, {self.group}, {name}: {entry['error']}")
        else:
            self.passed[self.group] += 1

    def leave_out(self, what: str) -> None:
        """Say what is not checked, and why."""
        self.run.leave_out(f"{self.library.name}, {self.group}: {what}")


def outcome(call: Call) -> str:
    """Say how a check ends."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 (any error is the answer)
        return describe(error)
    return "passes"


def require(condition: object, message: str) -> None:
    """Fail a check."""
    if not condition:
        raise WrongError(message)


def require_bytes(found: np.ndarray, expected: np.ndarray) -> None:
    """Compare bytes on the host."""
    require(found.size == expected.size, f"{found.size} bytes in place of {expected.size}")
    if not np.array_equal(found, expected):
        where = np.flatnonzero(found != expected)
        raise WrongError(f"{where.size} of {found.size} bytes differ, first byte {where[0]}")


def require_result(library: Library, x: Any, result: Any, expected: np.ndarray) -> None:
    """Compare a result that owns its memory with what NumPy gives."""
    require(tuple(result.shape) == expected.shape, f"shape {tuple(result.shape)}")
    require(result.dtype == x.dtype, f"dtype {result.dtype}")
    require(result.device == x.device, f"device {result.device}")
    require(library.is_contiguous(result), "the result is not contiguous")
    require_bytes(library.bits(result), as_bytes(expected))


def is_repeated(x: Any, result: Any, repeats: Shape) -> bool:
    """Compare every repeat with its source on the device, a part at a time."""
    split = tuple(itertools.chain.from_iterable((1, n) for n in x.shape))
    spread = tuple(
        itertools.chain.from_iterable((r, n) for r, n in zip(repeats, x.shape, strict=True))
    )
    source, repeated = x.reshape(split), result.reshape(spread)
    axis = max(range(len(spread)), key=spread.__getitem__)
    step = max(1, PART * spread[axis] // math.prod(spread))
    for start in range(0, spread[axis], step):
        part = (*(slice(None),) * axis, slice(start, start + step))
        same = repeated[part] == (source if split[axis] == 1 else source[part])
        if not bool(same.all()):
            return False
    return True


def check(checks: Checks, dtype: str, pattern: Pattern, layout: Layout, seed: int = 0) -> None:
    """Compare tile, and expand where it is one, with NumPy."""
    library, (shape, repeats) = checks.library, pattern
    bits = random_bits(dtype, library.dtypes()[dtype], layout.base(shape), seed)
    expected = np.tile(layout.take(np, bits, shape), repeats)
    x = layout.take(library.xp, library.from_bits(bits, dtype), shape)
    name = f"{dtype} {shape} x {repeats}, {layout.name}"
    with checks.case(
        f"tile {name}", lambda: require_result(library, x, library.tile(x, repeats), expected)
    ):
        library.poison(expected.nbytes)
        require_result(library, x, tileops.tile(x, repeats), expected)
    if len(shape) == len(repeats) and pattern.is_expand:
        with checks.case(f"expand {name}"):
            library.poison(expected.nbytes)
            require_result(library, x, tileops.expand(x, expected.shape, copy=True), expected)
        with checks.case(f"expand to a view {name}"):
            require_bytes(library.bits(tileops.expand(x, expected.shape)), as_bytes(expected))


def check_out(checks: Checks, dtype: str, pattern: Pattern, layout: Layout, place: Layout) -> None:
    """Write into a larger array, and compare all of that, so what must not change, too."""
    library, (shape, repeats) = checks.library, pattern
    itemsize = library.dtypes()[dtype]
    bits = random_bits(dtype, itemsize, layout.base(shape))
    x = layout.take(library.xp, library.from_bits(bits, dtype), shape)
    tiled = np.tile(layout.take(np, bits, shape), repeats)
    around = np.full(math.prod(place.base(tiled.shape)) * itemsize, POISON, np.uint8)
    around = around.view(f"V{itemsize}").reshape(place.base(tiled.shape))
    base = library.from_bits(around, dtype)
    out = place.take(library.xp, base, tiled.shape)
    place.take(np, around, tiled.shape)[...] = tiled
    with checks.case(f"out= {dtype} {shape} x {repeats}, {layout.name} into {place.name}"):
        require(tileops.tile(x, repeats, out=out) is out, "what was returned is not out")
        require_bytes(library.bits(base), as_bytes(around))


def large(run: Run, dtype_bytes: int, part: float = 1.0) -> int:
    """Give the elements of results that are compared on the host."""
    return max(2**18, int(2**21 * min(run.scale, 1.0) * part)) // dtype_bytes


def check_the_checks(checks: Checks) -> None:
    """Change one byte of a right result: both comparisons must see it."""
    library = checks.library
    bits = random_bits("uint8", 1, (101, 3))
    x = library.from_bits(bits, "uint8")
    expected = np.tile(bits, (1, 5))
    for place in (0, 700, expected.size - 1):
        changed = as_bytes(expected).copy()
        changed[place] ^= 16
        wrong = library.from_bits(changed.view("V1").reshape(expected.shape), "uint8")
        with checks.case(f"byte {place} changed"):
            found = outcome(lambda wrong=wrong: require_result(library, x, wrong, expected))
            require("1 of 1515 bytes differ" in found, f"on the host: {found}")
            require(not is_repeated(x, wrong, (1, 5)), "not seen on the device")
            require(is_repeated(x, library.tile(x, (1, 5)), (1, 5)), "seen where nothing changed")


def check_dtypes(checks: Checks) -> None:
    """Every dtype, on small arrays and on some that are not."""
    library = checks.library
    small, sizes = SMALL, [PATTERNS[3], PATTERNS[8], PATTERNS[10]]
    if library.name == "jax":  # compiles a program for each
        small, sizes = SMALL[2:4], sizes[1:2]
    for dtype, itemsize in library.dtypes().items():
        if not checks.run.has_time(f"{library.name}, {dtype}"):
            return
        for pattern in small:
            check(checks, dtype, pattern, PLAIN)
        for pattern in sizes:
            check(checks, dtype, pattern.sized(large(checks.run, itemsize, 1 / 4)), PLAIN)


def check_ranks(checks: Checks) -> None:
    """Random shapes of ranks 0 to 8, with fewer and more repeats than axes, in random layouts."""
    random = np.random.default_rng(8)
    dtypes, layouts = list(BITS.values()), layouts_of(checks.library)
    # JAX compiles a program for each shape.
    count = 30 if checks.library.has_out else 6
    for rank, number in itertools.product(range(9), range(count)):
        if number == 0 and not checks.run.has_time(f"{checks.library.name}, rank {rank}"):
            return
        length = max(0, rank + int(random.integers(-1, 2)))
        shape = tuple(random.integers(1, 6 if rank < 5 else 4, rank).tolist())
        repeats = tuple(random.integers(1, 4 if rank < 5 else 3, length).tolist())
        layout = layouts[int(random.integers(len(layouts)))] if rank else PLAIN
        dtype = dtypes[int(random.integers(len(dtypes)))]
        check(checks, dtype, Pattern(shape, repeats), layout, seed=number)


def check_empty(checks: Checks) -> None:
    """Results without elements, from empty inputs and from repeats of 0."""
    for dtype, pattern in itertools.product(BITS.values(), EMPTY):
        check(checks, dtype, pattern, PLAIN)
    with checks.case("a negative repeat on an empty array is refused"):
        x = checks.library.from_bits(random_bits("uint8", 1, (0, 3)), "uint8")
        found = outcome(lambda: tileops.tile(x, (1, -1)))
        require(found.startswith("RepeatsError"), found)


def check_patterns(checks: Checks) -> None:
    """Results of a few MB of each width, from inputs in every layout."""
    layouts = layouts_of(checks.library)
    for layout in layouts:
        if not checks.run.has_time(f"{checks.library.name}, {layout.name}"):
            return
        cases = itertools.product(BITS.items(), PATTERNS, (1, 16) if layouts[1:] else (1,))
        for (itemsize, dtype), pattern, multiple in cases:
            check(checks, dtype, pattern.sized(large(checks.run, itemsize), multiple), layout)


def check_outs(checks: Checks) -> None:
    """`out=` in every layout that owns its elements, from inputs in a few."""
    places = [layout for layout in layouts_of(checks.library) if layout is not EXPANDED]
    for place, layout in itertools.product(places, (LAYOUTS[0], LAYOUTS[1], LAYOUTS[5])):
        if not checks.run.has_time(f"{checks.library.name}, out= into {place.name}"):
            return
        for itemsize, dtype in BITS.items():
            check_out(checks, dtype, SMALL[2], layout, place)
            for pattern in (PATTERNS[3], PATTERNS[5], PATTERNS[7], PATTERNS[8], PATTERNS[9]):
                elements = large(checks.run, itemsize, 1 / 4)
                check_out(checks, dtype, pattern.sized(elements, 16), layout, place)


def check_conj_neg(checks: Checks) -> None:
    """Tensors that PyTorch will conjugate or negate when they are read."""
    torch, library = checks.library.xp, checks.library
    random = np.random.default_rng(3)
    for dtype, pattern in itertools.product(("complex64", "complex128"), (*SMALL[1:], *PATTERNS)):
        sized = pattern.sized(2**18) if N in pattern.shape + pattern.repeats else pattern
        parts = random.standard_normal((2, *sized.shape))
        values = (parts[0] + 1j * parts[1]).astype(dtype)
        x = library.from_numpy(values)
        views = {"conj": (x.conj(), values.conj()), "neg": (x.conj().imag, values.conj().imag)}
        for name, (view, array) in views.items():
            require(view.is_conj() or view.is_neg(), f"{name}: no such view")
            expected = np.tile(array, sized.repeats)
            with checks.case(f"{name} {dtype} {sized.shape} x {sized.repeats}"):
                require_result(library, view, tileops.tile(view, sized.repeats), expected)
            with checks.case(f"{name} {dtype} {sized.shape} x {sized.repeats}, out="):
                out = torch.empty(expected.shape, dtype=view.dtype, device=view.device)
                tileops.tile(view, sized.repeats, out=out)
                require_result(library, view, out, expected)


def check_gradients(checks: Checks) -> None:
    """Values, gradients and second gradients, against those of torch.tile."""
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64"):
        for pattern in (*SMALL[1:], *(p.sized(2**18, 16) for p in PATTERNS if p != PATTERNS[2])):
            with checks.case(f"gradient {dtype} {pattern.shape} x {pattern.repeats}"):
                require_gradients(checks.library, dtype, pattern)


def require_gradients(library: Library, dtype: str, pattern: Pattern) -> None:
    """Compare bits: all values are small integers, whose sums are exact in any order.

    But for an axis repeated very often, whose sums a narrow dtype cannot hold.
    """
    torch, (shape, repeats) = library.xp, pattern
    random = np.random.default_rng(4)
    numbers = library.from_numpy(random.integers(-3, 4, shape)).to(getattr(torch, dtype))
    size = tuple(n * r for n, r in zip(shape, repeats, strict=True))
    few = math.prod(repeats) > 64
    weights = random.integers(0, 2, size) * (random.random(size) < 1e-4 if few else 1)
    weights = library.from_numpy(weights).to(getattr(torch, dtype))
    found = []
    for tile in (tileops.tile, torch.tile):
        x = numbers.clone().requires_grad_()
        y = tile(x, repeats)
        (first,) = torch.autograd.grad((weights * y * y).sum().abs(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.abs().sum(), x)
        # A sum may give either zero.
        found.append([library.bits(t) for t in (y, first + 0, second + 0)])
    for name, ours, theirs in zip(("value", "gradient", "second gradient"), *found, strict=True):
        try:
            require_bytes(ours, theirs)
        except WrongError as error:
            raise WrongError(f"{name}: {error}") from None


def check_large(checks: Checks) -> None:
    """Compare on the device what is too large for the host, from inputs larger than its cache."""
    library = checks.library
    nbytes = max(2**20, int(2**28 * min(checks.run.scale, 1.0)))
    for itemsize, dtype in list(BITS.items())[:-1]:
        if not checks.run.has_time(f"{library.name}, {dtype}"):
            return
        cases = itertools.product(PATTERNS, ((1, 0), (16, 0), (16, 1), (16, 4)))
        for pattern, (multiple, first) in cases:
            sized = pattern.sized(nbytes // itemsize, multiple)
            with checks.case(f"{dtype} {sized.shape} x {sized.repeats} from element {first}"):
                require_on_device(library, dtype, first, sized)


def check_huge(checks: Checks) -> None:
    """Results, and inputs, of more than 2**31 elements, compared on the device."""
    if not checks.run.is_gpu or checks.run.scale < 1:
        checks.leave_out("results of more than 2**31 elements need a GPU and full scale")
        return
    library = checks.library
    for dtype, first, pattern in HUGE:
        name = f"{dtype} {pattern.shape} x {pattern.repeats} from element {first}"
        if not checks.run.has_time(f"{library.name}, {name}"):
            return
        library.release()
        need = 4 * pattern.elements * numpy_itemsize(dtype)
        if library.free_bytes() < need:
            checks.leave_out(f"{name}: {need} bytes are not free")
            continue
        with checks.case(name):
            require_on_device(library, dtype, first, pattern)
    library.release()


def require_on_device(library: Library, dtype: str, first: int, pattern: Pattern) -> None:
    """Compare a fresh result, then see that the comparison notices one changed element."""
    count = math.prod(pattern.shape)
    x = library.random((first + count,), dtype)[first:].reshape(pattern.shape)
    result = tileops.tile(x, pattern.repeats)
    require(is_repeated(x, result, pattern.repeats), "a repeat differs from its source")
    result.reshape(-1)[-1:] ^= 1
    require(not is_repeated(x, result, pattern.repeats), "a changed element was not seen")


def check_streams(checks: Checks) -> None:
    """Work in a stream of its own, when only that one is waited for; and no wait by the host."""
    library = checks.library
    if not checks.run.is_gpu:
        checks.leave_out("a CPU has no streams")
        return
    for pattern in PATTERNS:
        sized = pattern.sized(2**22, 16)
        with checks.case(f"stream {sized.shape} x {sized.repeats}"):
            require_stream(library, sized)
        with checks.case(f"the host does not wait {sized.shape} x {sized.repeats}"):
            require_no_wait(library, sized)


def require_stream(library: Library, pattern: Pattern) -> None:
    """Write the input late, in the stream: who reads it in another one reads poison."""
    bits = random_bits("uint8", 1, pattern.shape)
    late = library.from_bits(bits, "uint8")
    x = library.from_bits(np.full(pattern.shape, POISON, np.uint8).view("V1"), "uint8")
    stream = library.new_stream()
    library.synchronize()
    with library.use(stream):
        library.spin(SPIN)
        library.assign(x, late)
        result = tileops.tile(x, pattern.repeats)
        stream.synchronize()
        require_bytes(library.bits(result), as_bytes(np.tile(bits, pattern.repeats)))


def require_no_wait(library: Library, pattern: Pattern) -> None:
    """Return from each call while the stream is still busy with what came before."""
    x = library.random(pattern.shape, "uint8")
    out = library.tile(x, pattern.repeats)
    shape = tuple(out.shape)
    stream = library.new_stream()
    calls = {
        "tile": lambda: tileops.tile(x, pattern.repeats),
        "out=": lambda: tileops.tile(x, pattern.repeats, out=out),
    }
    if pattern.is_expand:
        calls["expand"] = lambda: tileops.expand(x, shape, copy=True)
    library.synchronize()
    with library.use(stream):
        for name, call in calls.items():
            call()  # compiles, and takes memory from the driver: both wait
            stream.synchronize()
            library.spin(SPIN)
            result = call()
            is_busy = not library.is_done(stream)
            stream.synchronize()
            del result
            require(is_busy, f"{name} waits for the device")


def check_sync_mode(checks: Checks) -> None:
    """Call for the first time and again while PyTorch makes any synchronisation an error."""
    if not checks.run.is_gpu:
        checks.leave_out("a CPU has nothing to wait for")
        return
    library, cuda = checks.library, checks.library.xp.cuda
    for itemsize, dtype in BITS.items():
        for pattern in PATTERNS:
            shape, repeats = pattern.sized(2**22 // itemsize, 16)
            x = library.random(shape, dtype)
            out = library.tile(x, repeats)
            with checks.case(f"{dtype} {shape} x {repeats}"):
                cuda.set_sync_debug_mode("error")
                try:
                    for _ in range(2):
                        tileops.tile(x, repeats)
                        tileops.tile(x, repeats, out=out)
                        if pattern.is_expand:
                            tileops.expand(x, tuple(out.shape), copy=True)
                finally:
                    cuda.set_sync_debug_mode("default")
    with checks.case("the mode sees a synchronisation"):
        cuda.set_sync_debug_mode("error")
        try:
            found = outcome(out.cpu)
        finally:
            cuda.set_sync_debug_mode("default")
        require(found.startswith("RuntimeError"), f"a copy to the host {found}")


def check_graph(checks: Checks) -> None:
    """Capture calls in a CUDA graph, and replay it on other values."""
    if not checks.run.is_gpu:
        checks.leave_out("a CPU has no graphs")
        return
    library, torch = checks.library, checks.library.xp
    for pattern in PATTERNS:
        shape, repeats = pattern.sized(2**20, 16)
        bits = random_bits("uint8", 1, shape, seed=5)
        with checks.case(f"graph {shape} x {repeats}"):
            x = library.random(shape, "uint8")
            side = library.new_stream()
            with library.use(side):
                tileops.tile(x, repeats)
            library.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = tileops.tile(x, repeats)
            x.copy_(library.from_bits(bits, "uint8"))
            graph.replay()
            require_result(library, x, result, np.tile(bits, repeats))


def check_threads(checks: Checks) -> None:
    """Two threads that call at once, on the default stream and on streams of their own."""
    library = checks.library
    streams = [False, True] if checks.run.is_gpu else [False]
    for pattern, has_stream in itertools.product((PATTERNS[3], PATTERNS[7], PATTERNS[8]), streams):
        sized = pattern.sized(large(checks.run, 1), 16)
        name = "own streams" if has_stream else "one stream"
        with checks.case(f"{name} {sized.shape} x {sized.repeats}"):
            errors: list[BaseException] = []
            threads = [
                threading.Thread(target=call_often, args=(library, sized, seed, has_stream, errors))
                for seed in range(2)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors:
                raise errors[0]


def call_often(
    library: Library, pattern: Pattern, seed: int, has_stream: bool, errors: list[BaseException]
) -> None:
    """Tile different arrays of one thread's own, and keep its first error."""
    try:
        stream = library.new_stream() if has_stream else None
        with library.use(stream) if has_stream else contextlib.nullcontext():
            for number in range(10):
                bits = random_bits("uint8", 1, pattern.shape, seed=100 * seed + number)
                x = library.from_bits(bits, "uint8")
                result = tileops.tile(x, pattern.repeats)
                require_result(library, x, result, np.tile(bits, pattern.repeats))
    except Exception as error:  # noqa: BLE001 (the other thread's report has it)
        errors.append(error)


def check_memory(checks: Checks) -> None:
    """Memory beside the result: at most a quarter of it."""
    library = checks.library
    if not checks.run.is_gpu:
        checks.leave_out("memory is counted on a GPU only")
        return
    cases = {
        f"{dtype} {sized.shape} x {sized.repeats}": (dtype, sized)
        for itemsize, dtype in BITS.items()
        for sized in (pattern.sized(2**26 // itemsize, 16) for pattern in PATTERNS)
    }
    for workload in (at_scale(w, checks.run.scale) for w in WORKLOADS):
        pattern = Pattern(workload.shape, workload.repeats)
        cases[workload.name] = (workload.dtype, pattern)
    for name, (dtype, (shape, repeats)) in cases.items():
        if not checks.run.has_time(f"{library.name}, memory of {name}"):
            return
        with checks.case(f"memory of {name}"):
            require_memory(library, dtype, shape, repeats)
    library.release()


def require_memory(library: Library, dtype: str, shape: Shape, repeats: Shape) -> None:
    """Count what a fresh result and one in given memory take."""
    x = library.random(shape, dtype)
    out = library.tile(x, repeats)
    fresh = library.most_memory(lambda: tileops.tile(x, repeats))
    written = library.most_memory(lambda: tileops.tile(x, repeats, out=out))
    require(fresh >= out.nbytes, f"counted {fresh} bytes for a result of {out.nbytes}")
    require(fresh <= 1.25 * out.nbytes, f"{fresh / out.nbytes - 1:.2f} of the result, beside it")
    require(written <= 0.25 * out.nbytes, f"out=: {written / out.nbytes:.2f} of the result")


class Group(NamedTuple):
    """Checks that belong together.

    Those of small results are run again with every copy planned.
    """

    check: Callable[[Checks], None]
    libraries: tuple[str, ...] = ("torch", "cupy", "jax")
    is_small: bool = True


GROUPS = {
    "the checks": Group(check_the_checks, is_small=False),
    "dtypes": Group(check_dtypes),
    "empty": Group(check_empty),
    "ranks": Group(check_ranks),
    "patterns": Group(check_patterns),
    "out": Group(check_outs, ("torch", "cupy")),
    "conj and neg": Group(check_conj_neg, ("torch",)),
    "gradients": Group(check_gradients, ("torch",)),
    "streams": Group(check_streams, ("torch", "cupy")),
    "synchronisation": Group(check_sync_mode, ("torch",)),
    "graph": Group(check_graph, ("torch",)),
    "threads": Group(check_threads, ("torch", "cupy")),
    "memory": Group(check_memory, ("torch", "cupy"), is_small=False),
    "large": Group(check_large, ("torch", "cupy"), is_small=False),
    "huge": Group(check_huge, ("torch", "cupy"), is_small=False),
}


def correctness(run: Run) -> None:
    """Compare bits with NumPy's."""
    found: dict[str, Any] = {library.name: {} for library in run.libraries}
    run.results["correctness"] = found
    for is_planned, (name, group) in itertools.product((False, True), GROUPS.items()):
        for library in run.libraries:
            is_other = is_planned and not (group.is_small and library.has_out)
            if library.name in group.libraries and not is_other:
                check_group(run, library, name, found[library.name], is_planned=is_planned)


def check_group(
    run: Run, library: Library, name: str, found: dict[str, Any], *, is_planned: bool
) -> None:
    """Run the checks of a group on a library."""
    title = f"{name}, planned" if is_planned else name
    if not run.has_time(f"{library.name}, {title}"):
        return
    checks = Checks(run, library, found)
    checks.start(title)
    before, start = len(checks.failed), time.monotonic()
    context = always_planned(run.device) if is_planned else contextlib.nullcontext()
    with run.attempt(f"{library.name}, {title}"), context:
        GROUPS[name].check(checks)
    text = f"{checks.passed[title]} pass, {len(checks.failed) - before} fail"
    say(f"  {library.name}, {title}: {text} ({time.monotonic() - start:.1f} s)")
    library.release()


# Step 4: speed


def at_scale(workload: Workload, scale: float) -> Workload:
    """Give a workload at a fraction of its full size, which is made large enough to measure.

    It grows along its first axis. It shrinks there to 2, and then along its longest axis but the
    last, so that the rows stay as long as they are.
    """
    full = workload.full()
    sizes = [list(full.shape), list(full.repeats)]
    wanted = max(full.result_bytes, LEAST_RESULT) * scale
    if full.result_bytes < wanted:
        grow(sizes, 0, math.ceil(wanted / full.result_bytes))
    while (now := result_bytes(sizes, full)) > wanted and scale < 1:
        axes = range(len(full.shape) - 1)
        lengths = [max(n, r) for n, r in zip(*sizes, strict=True)]
        axis = 0 if lengths[0] > 2 else max(axes, key=lengths.__getitem__)
        if lengths[axis] < 2:
            break
        grow(sizes, axis, max(0.5, wanted / now))
    return dataclasses.replace(full, shape=tuple(sizes[0]), counts=tuple(sizes[1]))


def grow(sizes: list[list[int]], axis: int, factor: float) -> None:
    """Multiply an axis's size, or its repeats where those are more, in place."""
    part = 1 if sizes[1][axis] > sizes[0][axis] else 0
    sizes[part][axis] = max(1, int(sizes[part][axis] * factor))


def result_bytes(sizes: Sequence[Sequence[int]], workload: Workload) -> int:
    """Count the bytes of a result."""
    return math.prod(sizes[0]) * math.prod(sizes[1]) * workload.itemsize


def speed(run: Run) -> None:
    """Time every workload by the library's own function and by tileops."""
    rows: list[dict[str, Any]] = []
    run.results["speed"] = rows
    for workload in (at_scale(w, run.scale) for w in WORKLOADS):
        if not run.has_time(workload.name):
            return
        values = random_array(workload.shape, workload.dtype)
        for library in run.libraries:
            with run.attempt(f"speed of {library.name}, {workload.name}"):
                rows += measure(run, library, workload, values)
            library.release()


def measure(
    run: Run, library: Library, workload: Workload, values: np.ndarray
) -> list[dict[str, Any]]:
    """Time the sides of a workload, after their results were compared with the source."""
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
            if not is_repeated(x, call(), workload.repeats):
                raise WrongError(f"{operator}, {side}: a repeat differs from its source")
        seconds = compare(library, sides)
        row = {"library": library.name, "workload": workload.name, "operator": operator}
        row |= {"dtype": workload.dtype, "shape": workload.shape, "repeats": workload.repeats}
        rows.append(row | {"bytes": workload.result_bytes, "seconds": seconds})
        times = ", ".join(f"{side} {s * 1e6:.0f} us" for side, s in seconds.items())
        say(f"  {library.name} {workload.name} {operator}: {times}")
    return rows


def tile_sides(library: Library, x: Any, repeats: Shape) -> Sides:
    """Tile natively, into new memory, and into two buffers in turn."""
    sides: Sides = {
        "native": functools.partial(library.tile, x, repeats),
        "tileops": functools.partial(tileops.tile, x, repeats),
    }
    if library.has_out:
        shape = tileops.tile_shape(tuple(x.shape), repeats)
        buffers = itertools.cycle([library.empty(shape, x) for _ in range(2)])
        sides["out="] = lambda: tileops.tile(x, repeats, out=next(buffers))
    return sides


def expand_sides(library: Library, x: Any, shape: Shape) -> Sides:
    """Expand natively and copy, and expand into new memory."""
    return {
        "native": functools.partial(library.expand, x, shape),
        "tileops": functools.partial(tileops.expand, x, shape, copy=True),
    }


# Step 5: crossover


def crossover(run: Run) -> None:
    """Time small calls, and results of 1 KiB to 8 GiB, for the size from which a way is faster."""
    run.results["calls"] = calls = []
    for library in run.libraries:
        with run.attempt(f"calls of {library.name}"):
            calls.append({"library": library.name, "seconds": call_costs(library)})
            shown = calls[-1]["seconds"].items()
            say(f"  {library.name}: " + ", ".join(f"{n} {s * 1e6:.1f} us" for n, s in shown))
    rows: list[dict[str, Any]] = []
    run.results["crossover"] = rows
    largest = SIZES[-1] * min(run.scale, 1.0)
    for library, name in itertools.product(run.libraries, CROSSOVER):
        say(f"  {library.name}, {name}")
        with run.attempt(f"crossover of {library.name}, {name}"):
            for nbytes in (size for size in SIZES if size <= largest):
                if not run.has_time(f"crossover of {library.name}, {name}, {nbytes} bytes"):
                    break
                rows += cross(run, library, name, nbytes)
                run.save()
        library.release()


def cross(run: Run, library: Library, name: str, nbytes: int) -> list[dict[str, Any]]:
    """Time one pattern at one size, if it can be that small and the memory that large.

    The side "planned" is tileops with every copy planned, however small.
    """
    dtype, pattern = CROSSOVER[name]
    itemsize = numpy_itemsize(dtype)
    pattern = pattern.sized(nbytes // itemsize)
    if pattern.elements * itemsize > nbytes:
        return []
    if nbytes >= 2**28:
        library.release()
    if library.free_bytes() < 5 * nbytes:
        run.leave_out(f"crossover of {library.name}, {name}: 5 x {nbytes} bytes are not free")
        return []
    x = library.random(pattern.shape, dtype)
    row = {"library": library.name, "pattern": name, "shape": pattern.shape}
    row |= {"repeats": pattern.repeats, "bytes": pattern.elements * itemsize, "at most": nbytes}
    sides = tile_sides(library, x, pattern.repeats)
    if library.has_out:
        sides["planned"] = sides["tileops"]
    around = {"planned": functools.partial(always_planned, run.device)}
    return [row | {"seconds": compare(library, sides, around)}]


def call_costs(library: Library) -> dict[str, float]:
    """Time calls on 16 elements by the host's clock, without waiting for the device."""
    x = library.random((4, 4), "float32")
    row = library.random((1, 4), "float32")
    calls: Sides = {
        "native tile": lambda: library.tile(x, (2, 2)),
        "tileops.tile": lambda: tileops.tile(x, (2, 2)),
        "native expand": lambda: library.xp.broadcast_to(row, (4, 4)),
        "tileops.expand": lambda: tileops.expand(row, (4, 4)),
        "native expand, copied": lambda: library.expand(row, (4, 4)),
        "tileops.expand, copied": lambda: tileops.expand(row, (4, 4), copy=True),
    }
    if library.has_out:
        out = library.empty((8, 8), x)
        calls["tileops.tile, out="] = lambda: tileops.tile(x, (2, 2), out=out)
    values: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):
        for name, call in calls.items():
            library.synchronize()
            values[name].append(host_seconds(call, 200))
    library.synchronize()
    return {name: rounded(statistics.median(seconds[1:])) for name, seconds in values.items()}


# Step 6: tables


def tables(run: Run) -> None:
    """Show what was found."""
    results = run.results
    show_ceilings(results.get("ceilings", []))
    show_speed(results.get("speed", []), write_ceiling(run))
    show_crossover(results.get("crossover", []))
    show_calls(results.get("calls", []))
    show_correctness(results.get("correctness", {}))
    for name in ("errors", "left_out"):
        if results[name]:
            say(f"\n{name.replace('_', ' ')}: {len(results[name])}")
            lines = results[name].items() if name == "errors" else enumerate(results[name], 1)
            for key, text in lines:
                say(f"  {key}: {text}")


def show_ceilings(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rates."""
    lines = [
        [r["library"], r["name"], f"{r['written GB/s']:.0f}", f"{r['moved GB/s']:.0f}"]
        for r in rows
    ]
    show_table("Ceilings", ["library", "", "written GB/s", "read + written GB/s"], lines)


def show_speed(rows: Sequence[Mapping[str, Any]], ceiling: float | None) -> None:
    """Print a table for each library and operator, with means of the ratios."""
    keys = list(dict.fromkeys((row["library"], row["operator"]) for row in rows))
    for library, operator in sorted(keys, key=lambda key: list(LIBRARIES).index(key[0])):
        own = [row for row in rows if (row["library"], row["operator"]) == (library, operator)]
        others = [side for side in own[0]["seconds"] if side != "native"]
        header = ["workload", "MB", "native us"]
        for side in others:
            header += [f"{side} us", "GB/s", "of ceiling", "native / it"]
        lines = [speed_line(row, others, ceiling) for row in own]
        ratios = {
            side: [row["seconds"]["native"] / row["seconds"][side] for row in own]
            for side in others
        }
        for name, mean in (("geometric mean", statistics.geometric_mean), ("minimum", min)):
            blanks = [["", "", "", f"{mean(values):.2f}"] for values in ratios.values()]
            lines.append([name, "", "", *itertools.chain.from_iterable(blanks)])
        show_table(f"{library}, {operator}", header, lines)


def speed_line(row: Mapping[str, Any], sides: Sequence[str], ceiling: float | None) -> list[str]:
    """Write the cells of one workload."""
    seconds = row["seconds"]
    cells = [row["workload"], f"{row['bytes'] / 1e6:.0f}", f"{seconds['native'] * 1e6:.1f}"]
    for side in sides:
        rate = row["bytes"] / seconds[side] / 1e9
        part = f"{rate / ceiling:.2f}" if ceiling else "-"
        ratio = f"{seconds['native'] / seconds[side]:.2f}"
        cells += [f"{seconds[side] * 1e6:.1f}", f"{rate:.0f}", part, ratio]
    return cells


def show_crossover(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print microseconds by size."""
    for library, pattern in dict.fromkeys((row["library"], row["pattern"]) for row in rows):
        own = [row for row in rows if (row["library"], row["pattern"]) == (library, pattern)]
        sides = list(own[0]["seconds"])
        lines = [
            [
                size_name(row["at most"]),
                *(f"{row['seconds'][side] * 1e6:.1f}" for side in sides),
                *(f"{row['seconds']['native'] / row['seconds'][side]:.2f}" for side in sides[1:]),
            ]
            for row in own
        ]
        header = ["result to", *(f"{s} us" for s in sides), *(f"native / {s}" for s in sides[1:])]
        show_table(f"{library}, {pattern}", header, lines)


def size_name(nbytes: int) -> str:
    """Write bytes in a unit of their own."""
    power = min(3, (nbytes.bit_length() - 1) // 10)
    return f"{nbytes / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def show_calls(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what a small call costs the host."""
    names = list(dict.fromkeys(itertools.chain.from_iterable(row["seconds"] for row in rows)))
    lines = [
        [
            name,
            *(f"{s * 1e6:.1f}" if (s := row["seconds"].get(name)) else "-" for row in rows),
        ]
        for name in names
    ]
    header = ["us of the host, 16 elements", *(row["library"] for row in rows)]
    show_table("Calls, not waited for", header, lines)


def show_correctness(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print how many checks passed, then those that failed."""
    lines = []
    for library, result in found.items():
        failed = result.get("failed", [])
        for group, passed in result.get("passed", {}).items():
            wrong = sum(entry["group"] == group for entry in failed)
            lines.append([library, group, str(passed), str(wrong)])
    show_table("Checks", ["library", "group", "pass", "fail"], lines)
    for library, result in found.items():
        for entry in result.get("failed", [])[:20]:
            native = f"; native: {entry['native']}" if "native" in entry else ""
            say(f"  WRONG {library}, {entry['group']}, {entry['case']}: {entry['error']}{native}")


def show_table(title: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print columns of text, the numbers on the right."""
    if not lines:
        return
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    say(f"\n{title}")
    for line in (header, *lines):
        cells = zip(line, widths, strict=True)
        shown = (
            c.rjust(w) if c[:1].isdigit() or i else c.ljust(w) for i, (c, w) in enumerate(cells)
        )
        say("  " + "  ".join(shown).rstrip())


# The command


class Step(NamedTuple):
    """A part of a run, and its part of the time."""

    measure: Callable[[Run], None]
    share: float


STEPS = {
    "environment": Step(environment, 0.02),
    "ceilings": Step(ceilings, 0.05),
    "correctness": Step(correctness, 0.45),
    "speed": Step(speed, 0.25),
    "crossover": Step(crossover, 0.25),
    "tables": Step(tables, 0.01),
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="the file of results")
    parser.add_argument("--scale", type=float, help="fraction of the full sizes")
    parser.add_argument("--minutes", type=float, default=8.0, help="how long a run may take")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    options = parser.parse_args()
    options.steps = [step for step in STEPS if step in options.steps]
    return options


def main() -> int:
    """Run the steps one after the other; 1 if a result was wrong or a part failed."""
    run = Run(arguments())
    if not run.libraries:
        say("no library can run here")
        return 1
    for step in run.steps:
        start = time.monotonic()
        run.begin(step)
        with run.attempt(step):
            STEPS[step].measure(run)
        run.results["seconds"][step] = rounded(time.monotonic() - start)
        run.save()
    failed = sum(len(r.get("failed", [])) for r in run.results.get("correctness", {}).values())
    errors = len(run.results["errors"])
    say(f"\n{failed} wrong results, {errors} errors; all figures are in {run.out}")
    return 1 if failed or errors else 0


if __name__ == "__main__":
    sys.exit(main())

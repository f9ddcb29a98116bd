"""The library CuPy."""

import contextlib
import functools
from typing import Any

import numpy as np

from benchmarks.gpu.bits import POISON, as_bytes
from benchmarks.gpu.libraries.base import Call, Library, UnavailableError
from benchmarks.gpu.patterns import Shape
from benchmarks.workloads import numpy_dtype


class CuPy(Library):
    """CuPy on the first CUDA device."""

    name = "cupy"
    kinds = 12

    def __init__(self, device: str) -> None:
        if device == "cpu":
            raise UnavailableError("CuPy runs on no CPU")
        import cupy

        (cupy.arange(3) + 1).get()  # raises without a driver or a compiler
        self.xp = cupy
        self._spin = functools.cache(self._compile_spin)

    def dtypes(self) -> dict[str, int]:
        """Return NumPy's numeric dtypes, and bfloat16 where CuPy has it."""
        names = ["bool", "float16", "float32", "float64", "complex64", "complex128"]
        names += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
        names += ["bfloat16"] if self._has_bfloat16() else []
        return {name: numpy_dtype(name).itemsize for name in names}

    @functools.cache  # noqa: B019 (there is one instance)
    def _has_bfloat16(self) -> bool:
        try:
            x = self.xp.asarray(np.ones(2, numpy_dtype("bfloat16")))
            return bool((self.xp.tile(x, 2) == x[0]).all())
        except Exception:  # noqa: BLE001 (any failure means that there is no such dtype)
            return False

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """Copy to the device; where CuPy lacks bfloat16, as integers of the same width."""
        if dtype == "bfloat16" and not self._has_bfloat16():
            dtype = "uint16"
        return self.xp.asarray(np.array(bits, order="C").view(numpy_dtype(dtype)))

    def bits(self, x: Any) -> np.ndarray:
        """Copy an array to the host."""
        return as_bytes(x.get())

    def expand(self, x: Any, shape: Shape) -> Any:
        """Broadcast, then copy."""
        return self.xp.ascontiguousarray(self.xp.broadcast_to(x, shape))

    def empty(self, shape: Shape, like: Any) -> Any:
        """Allocate an array without setting its values."""
        return self.xp.empty(shape, like.dtype)

    def is_contiguous(self, x: Any) -> bool:
        """Ask the array."""
        return bool(x.flags.c_contiguous)

    def poison(self, nbytes: int) -> None:
        """Fill memory and free it: the pool first hands out what was freed last."""
        self.xp.empty(nbytes, np.uint8).fill(POISON)

    def seconds(self, call: Call, calls: int) -> float:
        """Time calls with events of the current stream."""
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

    def assign(self, target: Any, source: Any) -> None:
        """Copy one array into another, in the current stream."""
        self.xp.copyto(target, source)

    def fill(self, target: Any, value: complex) -> None:
        """Call CuPy's own fill."""
        target.fill(value)

    def memset(self, target: Any) -> None:
        """Call the CUDA runtime directly."""
        target.data.memset_async(0, target.nbytes)

    def new_stream(self) -> Any:
        """Make a stream that does not wait for the default one."""
        return self.xp.cuda.Stream(non_blocking=True)

    def use(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Return the stream, because CuPy's streams are context managers."""
        return stream

    def is_done(self, stream: Any) -> bool:
        """Ask the stream."""
        return stream.done

    def spin(self, cycles: int) -> None:
        """Launch one thread that reads the clock until the cycles are over."""
        self._spin()((1,), (1,), (np.int64(cycles),))

    def _compile_spin(self) -> Any:
        source = """extern "C" __global__ void spin(long long cycles) {
            long long start = clock64();
            while (clock64() - start < cycles) {}
        }"""
        return self.xp.RawKernel(source, "spin")

    def most_memory(self, call: Call) -> int:
        """Allocate from a new pool, which grows to the peak of the memory in use."""
        pool = self.xp.cuda.MemoryPool()
        with self.xp.cuda.using_allocator(pool.malloc):
            result = call()
            self.synchronize()
            del result
        most = pool.total_bytes()
        pool.free_all_blocks()  # a pool that is only dropped keeps its blocks
        return most

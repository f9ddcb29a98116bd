"""What the benchmark needs of a library, and what all libraries have in common."""

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.bits import random_bits
from benchmarks.gpu.patterns import Shape
from benchmarks.workloads import numpy_dtype

Call = Callable[[], Any]
"""A function without arguments that returns its result."""


class UnavailableError(Exception):
    """A library cannot run here; the message says why."""


class Library:
    """What the benchmark needs of a library on one device."""

    name = ""
    has_out = True
    kinds = 30
    """How many copies of each rank are checked: fewer where each kind must be compiled."""
    xp: Any

    def dtypes(self) -> dict[str, int]:
        """Return the name of each dtype, with its bytes per element."""
        raise NotImplementedError

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """Make an array from raw bytes, with one item for each element."""
        raise NotImplementedError

    def bits(self, x: Any) -> np.ndarray:
        """Return the raw bytes of an array, in the order of its elements."""
        raise NotImplementedError

    def from_numpy(self, array: np.ndarray) -> Any:
        """Copy an array of numbers onto the device."""
        return self.from_bits(array.view(f"V{array.itemsize}"), array.dtype.name)

    def tile(self, x: Any, repeats: Shape) -> Any:
        """Tile with the library's own function."""
        return self.xp.tile(x, repeats)

    def expand(self, x: Any, shape: Shape) -> Any:
        """Expand with the library's own functions, into new memory."""
        raise NotImplementedError

    def empty(self, shape: Shape, like: Any) -> Any:
        """Allocate an array with the dtype of another."""
        raise NotImplementedError

    def is_contiguous(self, x: Any) -> bool:
        """Return whether elements lie in C order without gaps."""
        return True

    def random(self, shape: Shape, dtype: str) -> Any:
        """Make an array of random bytes, which recur after 16 MiB."""
        count, itemsize = math.prod(shape), numpy_dtype(dtype).itemsize
        length = min(count, 2**24 // itemsize)
        block = self.from_bits(random_bits(dtype, itemsize, (length,)), dtype)
        return self.tile(block, (-(-count // length),))[:count].reshape(shape)

    def poison(self, nbytes: int) -> None:
        """Fill the memory that the next result of this size is likely to get."""

    def seconds(self, call: Call, calls: int) -> float:
        """Time a call: the mean over several calls in a row."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for the device."""

    def release(self) -> None:
        """Give cached memory back to the device."""

    def free_bytes(self) -> int:
        """Return how many bytes of the device's memory are free."""
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    # Only for libraries that can write into arrays:

    def assign(self, target: Any, source: Any) -> None:
        """Copy one array into another, in the current stream."""
        raise NotImplementedError

    def fill(self, target: Any, value: complex) -> None:
        """Write one value into every element."""
        raise NotImplementedError

    def memset(self, target: Any) -> None:
        """Set every byte to zero."""
        raise NotImplementedError

    # Only for the same libraries, on a GPU:

    def new_stream(self) -> Any:
        """Make a stream that the default stream does not wait for."""
        raise NotImplementedError

    def use(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Make a stream the current one."""
        raise NotImplementedError

    def is_done(self, stream: Any) -> bool:
        """Return whether all work of a stream is done."""
        raise NotImplementedError

    def spin(self, cycles: int) -> None:
        """Keep the current stream busy for this many cycles of the clock."""
        raise NotImplementedError

    def most_memory(self, call: Call) -> int:
        """Return the most memory of the device that a call takes, including its result."""
        raise NotImplementedError


def host_seconds(call: Call, calls: int) -> float:
    """Time a call with the host's clock: the mean over several calls in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        result = call()
    seconds = time.perf_counter() - start
    del result
    return seconds / calls

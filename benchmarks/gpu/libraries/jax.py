"""The library JAX."""

import os
from typing import Any

import numpy as np

from benchmarks.gpu.bits import as_bytes
from benchmarks.gpu.libraries.base import Call, Library, UnavailableError, host_seconds
from benchmarks.gpu.patterns import Shape


class Jax(Library):
    """JAX on the CPU or the first CUDA device."""

    name = "jax"
    has_out = False
    kinds = 6

    def __init__(self, device: str) -> None:
        # JAX would take three quarters of the memory at once, but the other libraries also need it.
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
        """Return numeric dtypes and narrow floats; the tests cover integers of a few bits."""
        names = ["bool", "float32", "float64", "complex64", "complex128", "float16", "bfloat16"]
        names += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
        names += [name for name in dir(self.xp) if name.startswith("float8")]
        return {name: self.xp.dtype(name).itemsize for name in names}

    def from_bits(self, bits: np.ndarray, dtype: str) -> Any:
        """Put bytes onto the device."""
        return self.jax.device_put(np.array(bits, order="C").view(self.xp.dtype(dtype)), self.place)

    def bits(self, x: Any) -> np.ndarray:
        """Copy an array to the host."""
        return as_bytes(np.asarray(x))

    def expand(self, x: Any, shape: Shape) -> Any:
        """Broadcast, which always makes a new array."""
        return self.xp.broadcast_to(x, shape)

    def seconds(self, call: Call, calls: int) -> float:
        """Time with the host's clock and wait for each result, because JAX has no events."""
        return host_seconds(lambda: call().block_until_ready(), calls)

    def synchronize(self) -> None:
        """Wait for the array that was last put onto the device."""
        (self.jax.device_put(np.int32(0), self.place) + 1).block_until_ready()

    def free_bytes(self) -> int:
        """Ask JAX's own pool, on a GPU."""
        memory = self.place.memory_stats() or {}
        if "bytes_limit" not in memory:
            return super().free_bytes()
        return memory["bytes_limit"] - memory["bytes_in_use"]

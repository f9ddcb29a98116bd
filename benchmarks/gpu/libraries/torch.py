"""The library PyTorch."""

import contextlib
from typing import Any

import numpy as np

from benchmarks.gpu.bits import BITS, POISON
from benchmarks.gpu.libraries.base import Call, Library, UnavailableError, host_seconds
from benchmarks.gpu.patterns import Shape


class Torch(Library):
    """PyTorch on the CPU or the first CUDA device."""

    name = "torch"

    def __init__(self, device: str) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise UnavailableError("PyTorch finds no CUDA device")
        self.xp, self.device = torch, device

    def dtypes(self) -> dict[str, int]:
        """Return each dtype except the quantised ones."""
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
        """View elements as a dtype that can be copied in every layout."""
        x = x.detach().resolve_conj().resolve_neg().view(getattr(self.xp, BITS[x.element_size()]))
        return x.cpu().contiguous().reshape(-1).view(self.xp.uint8).numpy()

    def expand(self, x: Any, shape: Shape) -> Any:
        """Expand, then copy."""
        return x.expand(shape).contiguous()

    def empty(self, shape: Shape, like: Any) -> Any:
        """Allocate a tensor without setting its values."""
        return self.xp.empty(shape, dtype=like.dtype, device=self.device)

    def is_contiguous(self, x: Any) -> bool:
        """Ask the tensor."""
        return x.is_contiguous()

    def poison(self, nbytes: int) -> None:
        """Fill memory and free it: the allocator first hands out what was freed last."""
        self.xp.full((nbytes,), POISON, dtype=self.xp.uint8, device=self.device)

    def seconds(self, call: Call, calls: int) -> float:
        """Time calls with events of the current stream."""
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

    def assign(self, target: Any, source: Any) -> None:
        """Copy one tensor into another, without waiting."""
        target.copy_(source)

    def fill(self, target: Any, value: complex) -> None:
        """Call PyTorch's own fill."""
        target.fill_(value)

    def memset(self, target: Any) -> None:
        """Call PyTorch's own function for zeros."""
        target.zero_()

    def new_stream(self) -> Any:
        """Make one of PyTorch's own streams, which never wait for the default one."""
        return self.xp.cuda.Stream()

    def use(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Return PyTorch's context manager."""
        return self.xp.cuda.stream(stream)

    def is_done(self, stream: Any) -> bool:
        """Ask the stream."""
        return stream.query()

    def spin(self, cycles: int) -> None:
        """Launch the kernel that PyTorch's own tests use."""
        self.xp.cuda._sleep(cycles)  # noqa: SLF001 (PyTorch has no public name for it)

    def most_memory(self, call: Call) -> int:
        """Return the allocator's peak."""
        cuda = self.xp.cuda
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        result = call()
        cuda.synchronize()
        del result
        return cuda.max_memory_allocated() - before

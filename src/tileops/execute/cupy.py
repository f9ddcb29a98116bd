"""CuPy: arrays on a CUDA device, in its current stream."""

from typing import Any

import array_api_compat.cupy
import cupy
import numpy as np

from tileops._plan import Plan
from tileops._texts import type_name
from tileops.errors import DTypeError
from tileops.execute import _out, device
from tileops.execute._memory import Memory, alignment_of
from tileops.execute.array_api import Executor, spread

_WORDS = {16: "c16", 8: "u8", 4: "u4", 2: "u2", 1: "u1"}
"""The dtypes that carry words; CuPy's kernels load and store 16 bytes at once as a complex."""


class CuPy(Executor):
    """Copies in wide words, or through a broadcast view."""

    __slots__ = ()

    library = "cupy"

    def namespace(self, x: Any) -> Any:
        """Return array_api_compat's, which is the standard's in every version of the library."""
        return array_api_compat.cupy

    def check(self, name: str, x: Any, plan: Plan) -> None:
        """Refuse subclasses, whose meaning the result could not carry."""
        if type(x) is not cupy.ndarray:
            raise DTypeError(
                f"{name}: the input is {type_name(type(x))}, a subclass whose meaning would be "
                f"lost; pass x.view(cupy.ndarray)"
            )

    def view(self, x: Any, plan: Plan) -> Any:
        """Broadcast without a copy; a write to the input shows in the result."""
        return spread(cupy, x, plan).reshape(plan.shape) if plan.is_view else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Write into new memory on the array's device."""
        with x.device:
            result = cupy.empty(plan.shape, x.dtype)
            _write(_opaque(x), plan, _opaque(result))
        return result

    def write(self, name: str, x: Any, plan: Plan, out: Any) -> None:
        """Write through a view of `out` whose axes are split like the plan's."""
        _out.check_class(name, cupy.ndarray, out)
        _out.check_layout(name, x, out, plan.shape)
        _out.check_memory(name, _memory(x), _memory(out))
        x, out = _opaque(x), _opaque(out)
        with x.device:
            if cupy.may_share_memory(x, out):  # by bounds: the library would copy all repeats
                x = x.copy()
            _write(x, plan, out)

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum on the array's device."""
        with g.device:
            return super().sum(name, g, plan, shape)

    def numbers(self, array: Any) -> list[Any]:
        """Return the values, in order behind what computes them (see `to_numpy`)."""
        with array.device:
            return super().numbers(array)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array onto a device, such as "cuda:1", or the current one, "cuda"."""
        _, _, number = (device or "").partition(":")
        with cupy.cuda.Device(int(number) if number else None):
            # Not without axes: CuPy fills such an array, and clears it for a -0.0.
            return cupy.array(np.atleast_1d(array)).reshape(array.shape)

    def to_numpy(self, x: Any) -> Any:
        """Copy an array to the host, in the current stream of its own device.

        CuPy would take that of the current device, which waits for no other device's.
        """
        with x.device:
            return np.asarray(_opaque(x).get()).view(x.dtype)

    def devices(self) -> list[str]:
        """Name each GPU."""
        return [f"cuda:{i}" for i in range(cupy.cuda.runtime.getDeviceCount())]


def _opaque(x: Any) -> Any:
    """View records as mere bytes: of fields, CuPy copies those alone, and only aligned ones."""
    return x.view(f"V{x.itemsize}") if x.dtype.names else x


def _write(x: Any, plan: Plan, out: Any) -> None:
    if plan.nbytes >= device.LEAST:
        source, target = _memory(x), _memory(out)
        alignment = alignment_of(source.address, target.address)
        if device.repeat(_KERNELS, plan, source, target, alignment):
            return
    _assign(out.reshape(plan.spread), spread(cupy, x, plan))


def _words(x: Any, sizes: tuple[int, ...], strides: tuple[int, ...], word: int) -> Any:
    return cupy.ndarray(sizes, _WORDS[word], x.data, strides=strides)


def _empty(nbytes: int, _: Any) -> Any:
    return cupy.empty(nbytes, cupy.uint8)


def _assign(target: Any, source: Any) -> None:
    """Copy as `copyto` does, in half of its time on the host."""
    target[...] = source


_KERNELS = device.Kernels(_words, _empty, _assign)


def _memory(x: Any) -> Memory:
    return Memory(x.data.ptr, x.shape, x.strides, x.itemsize, x)


executor = CuPy()

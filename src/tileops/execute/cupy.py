"""CuPy: arrays on a CUDA device, in its current stream."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import array_api_compat.cupy
import cupy
import numpy as np
from cupy._core import elementwise_copy  # not public, but takes the least time on the host

from tileops._copies.gpu import Variant
from tileops._plan import Plan
from tileops._rules import Operator
from tileops._texts import type_name
from tileops.errors import DTypeError, OutputError
from tileops.execute import _out, device
from tileops.execute._memory import Memory, alignment_of, has_gaps
from tileops.execute.array_api import Executor, spread

_CURRENT: AbstractContextManager[Any] = nullcontext()

_FEWEST = 2**24
"""The fewest elements of a result for which our own kernel saves time."""


class CuPy(Executor):
    """Copies by our own kernel where that pays, otherwise by CuPy's, and broadcasts views."""

    __slots__ = ()

    library = "cupy"

    plain = cupy.ndarray

    def namespace(self, x: Any) -> Any:
        """Return array_api_compat's namespace, which is the standard's in every version of CuPy."""
        return array_api_compat.cupy

    def check(self, operator: Operator, x: Any, plan: Plan) -> None:
        """Refuse subclasses, whose meaning the result could not carry."""
        if type(x) is not cupy.ndarray:
            raise DTypeError(
                f"{operator.name}: the input is {type_name(type(x))}, a subclass whose meaning "
                f"would be lost; pass x.view(cupy.ndarray)"
            )

    def view(self, x: Any, plan: Plan) -> Any:
        """Broadcast without a copy; a write to the input shows in the result."""
        if not plan.merges:
            return cupy.broadcast_to(x, plan.shape)
        return spread(cupy, x, plan).reshape(plan.shape) if plan.is_view else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Write into new memory on the array's device."""
        with _device_of(x):
            result = cupy.ndarray(plan.shape, x.dtype)
            _write(_opaque(x), plan, _opaque(result))
        return result

    def write(self, name: str, x: Any, plan: Plan, out: Any) -> None:
        """Write through a view of `out` whose axes are split like the plan's."""
        _out.check_class(name, cupy.ndarray, out)
        _out.check_layout(name, x, out, plan.shape)
        if out.dtype.names is not None and has_gaps(out.dtype):  # CuPy cannot copy each field alone
            raise OutputError(
                f"{name}: the records of out ({out.dtype}) have gaps between their fields, in "
                f"which other data may lie; pass an array of records without gaps, or omit out="
            )
        are_runs = x.flags.c_contiguous and out.flags.c_contiguous
        if not (are_runs and _out.are_apart(x.data.ptr, x.nbytes, out.data.ptr, out.nbytes)):
            _out.check_memory(name, _memory(x), _memory(out))
        x, out = _opaque(x), _opaque(out)
        with _device_of(x):
            # Where the bounds of both overlap, CuPy would first copy all repeats of the source.
            if cupy.may_share_memory(x, out):
                x = x.copy()
            _write(x, plan, out)

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum on the array's device."""
        with g.device:
            return super().sum(name, g, plan, shape)

    def numbers(self, array: Any) -> list[Any]:
        """Return the values, after the work that computes them (see `to_numpy`)."""
        with array.device:
            return super().numbers(array)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Copy a NumPy array onto a device, such as "cuda:1", or the current one, "cuda"."""
        _, _, number = (device or "").partition(":")
        with cupy.cuda.Device(int(number) if number else None):
            # CuPy fills an array of rank 0 with its value, and clears it for -0.0, losing the sign.
            return cupy.array(np.atleast_1d(array)).reshape(array.shape)

    def to_numpy(self, x: Any) -> Any:
        """Copy an array to the host, in the current stream of its own device.

        CuPy would take the current device's stream, which does not wait for other devices.
        """
        with x.device:
            return np.asarray(_opaque(x).get()).view(x.dtype)

    def devices(self) -> list[str]:
        """Name each GPU."""
        return [f"cuda:{i}" for i in range(cupy.cuda.runtime.getDeviceCount())]


def _opaque(x: Any) -> Any:
    """View records as bytes: CuPy copies the fields of records alone, and only aligned fields."""
    return x.view(f"V{x.itemsize}") if x.dtype.names else x


def _device_of(x: Any) -> AbstractContextManager[Any]:
    """Return a context in which an array's device is the current one."""
    is_current = x.data.device_id == cupy.cuda.runtime.getDevice()
    return _CURRENT if is_current else x.device


def _write(x: Any, plan: Plan, out: Any) -> None:
    itemsize = x.itemsize
    if not plan.repeated and x.flags.c_contiguous and out.flags.c_contiguous:
        out[...] = x.reshape(out.shape)  # as one run
        return
    if device.pays(plan, itemsize, _FEWEST) and not cupy.cuda.runtime.is_hip:
        source, target = x.data, out.data
        alignments = alignment_of(source.ptr), alignment_of(target.ptr)
        prepared = device.prepare(plan, x.strides, out.strides, 1, itemsize, *alignments)
        if prepared is not None:
            kernel = _kernel(prepared.variant)
            kernel(prepared.grid, (device.THREADS,), (source, target, prepared.launch))
            return
    if plan.merges:
        x, out = x.reshape(plan.split), out.reshape(plan.spread)
    elementwise_copy(x, out)


@cache
def _kernel(variant: Variant) -> Any:
    """Return a kernel, which CuPy compiles at its first launch and keeps on disk."""
    return cupy.RawKernel(device.text(variant), device.NAME)


def _memory(x: Any) -> Memory:
    return Memory(x.data.ptr, x.shape, x.strides, x.itemsize, x)


executor = CuPy()

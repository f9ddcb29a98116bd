"""The checks of an ``out``, for the libraries whose arrays can be written into."""

from typing import Any

import numpy as np

from tileops._texts import type_name
from tileops.errors import DTypeError, OutputError, ShapeError
from tileops.execute._memory import Memory, as_array

_MAX_WORK: Any = 10_000
"""The most steps of the exact search for an overlap, which takes exponential time at worst."""


def check_class(name: str, cls: type, out: Any) -> None:
    """Refuse an `out` of another library."""
    if not isinstance(out, cls):
        raise DTypeError(
            f"{name}: out is {type_name(type(out))}; for this input it must be {type_name(cls)}; "
            f"pass one, or omit out="
        )


def check_layout(name: str, x: Any, out: Any, shape: tuple[int, ...]) -> None:
    """Refuse an `out` of another shape, dtype or device."""
    if tuple(out.shape) != shape:
        raise ShapeError(
            f"{name}: out has shape {tuple(out.shape)} and the result has {shape}; "
            f"they must be equal; pass an out of shape {shape}"
        )
    if out.dtype != x.dtype:
        raise DTypeError(
            f"{name}: out has dtype {out.dtype} and the input has {x.dtype}; "
            f"they must be equal, since values are moved and not converted; pass an out of "
            f"{x.dtype}"
        )
    if out.device != x.device:
        raise OutputError(
            f"{name}: out is on device {out.device} and the input is on {x.device}; "
            f"they must be on the same device; pass an out on {x.device}"
        )


def are_apart(address: int, nbytes: int, out_address: int, out_nbytes: int) -> bool:
    """Whether two runs of memory have no byte in common.

    For contiguous arrays, which never overlap themselves, this takes a tenth of the time of
    `check_memory`.
    """
    return address + nbytes <= out_address or out_address + out_nbytes <= address


def check_memory(name: str, x: Memory, out: Memory) -> None:
    """Refuse an `out` that shares an element with the input, or with itself."""
    if 0 in out.shape:
        return
    if _overlap(x, out):
        raise OutputError(
            f"{name}: out overlaps the input in memory; write into an array of its own, "
            f"or omit out="
        )
    if _overlaps_itself(out):
        raise OutputError(
            f"{name}: elements of out (shape {out.shape}, strides {out.strides} bytes) "
            f"overlap or interleave in memory; write into an array that was not broadcast"
        )


def _overlap(x: Memory, out: Memory) -> bool:
    if are_apart(*_span(x), *_span(out)):
        return False
    try:
        return np.shares_memory(_array_at(x), _array_at(out), max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def _span(memory: Memory) -> tuple[int, int]:
    """Return the address of an array's first byte, and the number of bytes up to its last."""
    start = end = memory.address
    for n, stride in zip(memory.shape, memory.strides, strict=True):
        start += min(stride, 0) * (n - 1)
        end += max(stride, 0) * (n - 1)
    return start, end + memory.itemsize - start


def _array_at(memory: Memory) -> Any:
    """Return memory as an array without axes of size 1, because NumPy allows 64 axes at most."""
    axes = [(n, s) for n, s in zip(memory.shape, memory.strides, strict=True) if n > 1]
    shape, strides = zip(*axes, strict=True) if axes else ((), ())
    return as_array(memory._replace(shape=shape, strides=strides))


def _overlaps_itself(memory: Memory) -> bool:
    """Whether any stride is less than the number of bytes that all shorter strides span."""
    span = memory.itemsize
    strides = ((abs(s), n) for s, n in zip(memory.strides, memory.shape, strict=True) if n > 1)
    for stride, n in sorted(strides):
        if stride < span:
            return True
        span += stride * (n - 1)
    return False

"""Checks of a result, which compare bits on the host and on the device."""

import itertools
import math
from typing import Any

import numpy as np

from benchmarks.gpu.bits import as_bytes
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.patterns import Shape

PART = 2**28
"""Elements compared at a time on the device, where the mask of a comparison also takes memory."""


class WrongError(Exception):
    """A result is not what it should be."""


def require(condition: object, message: str) -> None:
    """Raise an error unless a condition holds."""
    if not condition:
        raise WrongError(message)


def require_bytes(found: np.ndarray, expected: np.ndarray) -> None:
    """Compare bytes on the host."""
    require(found.size == expected.size, f"{found.size} bytes in place of {expected.size}")
    if not np.array_equal(found, expected):
        where = np.flatnonzero(found != expected)
        raise WrongError(f"{where.size} of {found.size} bytes differ, first byte {where[0]}")


def require_result(library: Library, x: Any, result: Any, expected: np.ndarray) -> None:
    """Compare a result that owns its memory with NumPy's."""
    require(tuple(result.shape) == expected.shape, f"shape {tuple(result.shape)}")
    require(result.dtype == x.dtype, f"dtype {result.dtype}")
    require(result.device == x.device, f"device {result.device}")
    require(library.is_contiguous(result), "the result is not contiguous")
    require_bytes(library.bits(result), as_bytes(expected))


def is_repeated(x: Any, result: Any, repeats: Shape) -> bool:
    """Compare every repeat with its source on the device, one part at a time."""
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

"""Checks of results that are compared on the device because they are too large for the host."""

import itertools
import math

import tileops
from benchmarks.gpu.assertions import is_repeated, require
from benchmarks.gpu.bits import BITS
from benchmarks.gpu.correctness.checks import Checks
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.patterns import PATTERNS, Pattern
from benchmarks.workloads import numpy_dtype

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
"""Dtype, the input's first element in its memory, and a result of more than 2**31 elements."""


def check_large(checks: Checks) -> None:
    """Check results too large for the host, from inputs larger than the device's cache."""
    library = checks.library
    nbytes = max(2**20, int(2**28 * min(checks.run.scale, 1.0)))
    for itemsize, dtype in list(BITS.items())[:-1]:
        if not checks.has_time(dtype):
            return
        cases = itertools.product(PATTERNS, ((1, 0), (16, 0), (16, 1), (16, 4)))
        for pattern, (multiple, first) in cases:
            sized = pattern.sized(nbytes // itemsize, multiple)
            with checks.case(f"{dtype} {sized.shape} x {sized.repeats} from element {first}"):
                require_on_device(library, dtype, first, sized)


def check_huge(checks: Checks) -> None:
    """Check results and inputs of more than 2**31 elements, by comparison on the device."""
    if not checks.run.is_gpu or checks.run.scale < 1:
        checks.leave_out("results of more than 2**31 elements need a GPU and full scale")
        return
    library = checks.library
    for dtype, first, pattern in HUGE:
        name = f"{dtype} {pattern.shape} x {pattern.repeats} from element {first}"
        if not checks.has_time(name):
            return
        library.release()
        need = 4 * pattern.elements * numpy_dtype(dtype).itemsize
        if library.free_bytes() < need:
            checks.leave_out(f"{name}: {need} bytes are not free")
            continue
        with checks.case(name):
            require_on_device(library, dtype, first, pattern)
    library.release()


def require_on_device(library: Library, dtype: str, first: int, pattern: Pattern) -> None:
    """Compare a fresh result, then check that the comparison notices one changed element."""
    count = math.prod(pattern.shape)
    x = library.random((first + count,), dtype)[first:].reshape(pattern.shape)
    result = tileops.tile(x, pattern.repeats)
    require(is_repeated(x, result, pattern.repeats), "a repeat differs from its source")
    result.reshape(-1)[-1:] ^= 1
    require(not is_repeated(x, result, pattern.repeats), "a changed element was not seen")

"""Checks of the memory that a call takes besides its result."""

import tileops
from benchmarks.gpu.assertions import require
from benchmarks.gpu.bits import BITS
from benchmarks.gpu.correctness.checks import Checks
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.patterns import PATTERNS, Pattern, Shape
from benchmarks.gpu.workloads import workloads_at

ROUNDING = 2**21
"""The number of bytes by which an allocator may round up."""


def check_memory(checks: Checks) -> None:
    """Check that a call takes at most a quarter of its result besides the result."""
    library = checks.library
    if not checks.run.is_gpu:
        checks.leave_out("memory is counted on a GPU only")
        return
    cases = {
        f"{dtype} {sized.shape} x {sized.repeats}": (dtype, sized)
        for itemsize, dtype in BITS.items()
        for sized in (pattern.sized(2**26 // itemsize, 16) for pattern in PATTERNS)
    }
    for workload in workloads_at(checks.run.scale):
        pattern = Pattern(workload.shape, workload.repeats)
        cases[workload.name] = (workload.dtype, pattern)
    for name, (dtype, (shape, repeats)) in cases.items():
        if not checks.has_time(f"memory of {name}"):
            return
        with checks.case(f"memory of {name}"):
            require_memory(library, dtype, shape, repeats)
    library.release()


def require_memory(library: Library, dtype: str, shape: Shape, repeats: Shape) -> None:
    """Check the memory that a fresh result takes, and a result in given memory."""
    x = library.random(shape, dtype)
    out = library.tile(x, repeats)
    fresh = library.most_memory(lambda: tileops.tile(x, repeats))
    written = library.most_memory(lambda: tileops.tile(x, repeats, out=out))
    require(fresh >= out.nbytes, f"counted {fresh} bytes for a result of {out.nbytes}")
    most = 0.25 * out.nbytes + ROUNDING
    require(fresh <= out.nbytes + most, f"{fresh / out.nbytes - 1:.2f} of the result, beside it")
    require(written <= most, f"out=: {written / out.nbytes:.2f} of the result")

"""Copies in the memory of a GPU, by a kernel that the array's library compiles and launches.

The work is queued in the library's current stream, and nothing waits for it.
"""

from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from tileops._copies.gpu import Variant, plan_device
from tileops._copies.steps import make_nest
from tileops._plan import Plan

NAME = "tileops_repeat"
"""The kernel's name in its text."""

THREADS = 256
"""The number of threads in a block."""


class Prepared(NamedTuple):
    """A launch of the kernel, for any two addresses of the alignments that it was planned for."""

    variant: Variant
    grid: tuple[int, int]
    launch: Any
    """The kernel's third argument, after the addresses: passed by value, in an array of rank 0."""
    address: int
    """The address of `launch`."""


def pays(plan: Plan, itemsize: int, fewest: int) -> bool:
    """Whether a result repeats anything, and has enough elements for our kernel to save time."""
    return bool(plan.repeated) and plan.nbytes >= max(1, fewest * itemsize)


@lru_cache(maxsize=4096)
def prepare(
    plan: Plan,
    source: tuple[int, ...],
    target: tuple[int, ...],
    unit: int,
    itemsize: int,
    source_alignment: int,
    target_alignment: int,
) -> Prepared | None:
    """Plan a repetition between arrays with these alignments, and strides in units of `unit` bytes.

    Return None where the library's own kernel is equally fast.
    """
    source, target = (tuple(n * unit for n in strides) for strides in (source, target))
    nest = make_nest(plan, source, target, itemsize)
    launch = plan_device(nest, source_alignment, target_alignment, itemsize)
    if launch is None:
        return None
    variant = launch.variant
    widths = [variant.bits] * variant.outer + [variant.inner_bits] * variant.inner
    loops = [(_divisor(n, b), s, t) for b, (n, s, t) in zip(widths, launch.loops, strict=True)]
    argument = (
        launch.stores,
        launch.period,
        _divisor(launch.period, variant.bits),
        launch.tail,
        launch.repeats,
        launch.at_once,
        launch.stride,
        loops,
    )
    grid = -(-launch.stores // THREADS), -(-launch.repeats // launch.at_once)
    packed = np.array(argument, _launch_dtype(len(loops), variant.bits))
    return Prepared(variant, grid, packed, packed.ctypes.data)


def text(variant: Variant) -> str:
    """Return the CUDA C++ of a kernel."""
    defined = {name.upper(): int(value) for name, value in variant._asdict().items()}
    defined["THREADS"] = THREADS
    lines = [f"#define {name} {value}\n" for name, value in defined.items()]
    return "".join(lines) + files(__package__).joinpath("repeat.cu").read_text(encoding="utf-8")


def _divisor(n: int, bits: int) -> tuple[int, int]:
    """Return a factor, and by how many bits to shift the upper half of a number's product with it.

    That divides any number below 2 ** (bits - 1) by n, if n is 2 or more, according to Granlund and
    Montgomery, "Division by invariant integers using multiplication", PLDI 1994, theorem 4.2.
    """
    if n == 1:  # nothing is divided by 1: there is one loop or none
        return 0, 0
    length = (n - 1).bit_length()
    return -(-(2 ** (bits - 1 + length)) // n), length - 1


@lru_cache(maxsize=256)
def _launch_dtype(rank: int, bits: int) -> Any:
    """Return the dtype of the kernel's `Launch`, padded as in C++."""
    index = f"u{bits // 8}"
    divisor = np.dtype([("factor", "u8"), ("shift", "u4")], align=True)
    loop = np.dtype([("rounds", divisor), ("source", "i8"), ("target", "i8")], align=True)
    fields = [
        ("stores", index),
        ("period", index),
        ("periods_of", divisor),
        ("tail", "u4"),
        ("repeats", "u4"),
        ("at_once", "u4"),
        ("stride", "i8"),
        ("loops", loop, (rank,)),
    ]
    return np.dtype(fields, align=True)

"""The plan of a call: what to reshape, broadcast and reshape. No arrays, no libraries.

Tile and Expand are one primitive, a contiguous copy of a view with zero
strides. An axis of size n that is repeated r times is split into (1, n), spread to
(r, n), and merged into r * n.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from tileops._rules import Operator, apply_rules, is_empty, is_equal, known


class Plan(NamedTuple):
    """The shapes through which an array becomes its repetition.

    ``result = reshape(broadcast_to(reshape(x, split), spread), shape)``.
    """

    padded: tuple[int, ...]
    """The input's shape, padded with ones on the left to the rank of the result."""
    repeats: tuple[int, ...]
    """How many times each axis of ``padded`` is repeated."""
    split: tuple[int, ...]
    """The input's shape without the axes whose size stays 1, and with a 1 before each longer axis
    that is repeated. If the result is empty, joins axes, and this would have more than `MOST_AXES`
    axes of known sizes: a 1 and the number of elements of the input."""
    spread: tuple[int, ...]
    """The shape of the view: `split`, with its repeats in place of each 1 that is repeated."""
    shape: tuple[int, ...]
    """The shape of the result."""
    repeated: tuple[int, ...]
    """The axes of `spread` that hold repeats: what an adjoint sums over."""
    merges: bool
    """Whether `shape` joins axes of `spread`, so that the last reshape has to copy."""
    is_view: bool
    """Whether a view with zero strides can be the result: no axes merge, or the result is empty."""
    is_identity: bool
    """Whether the result equals the input and has the same axes."""

    # In memory. Left out if the result has no bytes or a symbolic size, and where the itemsize is
    # given as 0: in JAX's compiled functions, and in traces of PyTorch. While PyTorch compiles,
    # `nbytes` is 0 even where the others are known.
    nbytes: int = 0
    """The bytes of the result; those of a masked array include its mask."""
    row_size: int = 0
    """The number of elements in the innermost part of the input that is repeated as a whole, or 0
    if no axis is repeated."""
    strides: tuple[int, ...] = ()
    """The strides in bytes of the result as a view of a contiguous input, if it can be one."""
    spread_strides: tuple[int, ...] = ()
    """The strides in elements of a contiguous input's view of shape `spread`."""


# Plans are compared and hashed by identity. Otherwise a cache with plans in its keys would hash all
# numbers of a plan in each call. A dataclass with eq=False would do that as well, but TorchDynamo
# does not accept a dataclass as a constant.
Plan.__hash__ = object.__hash__  # type: ignore[method-assign]
Plan.__eq__ = object.__eq__  # type: ignore[method-assign]
Plan.__ne__ = object.__ne__  # type: ignore[method-assign]

MOST_AXES = 64
"""The most axes of a cached plan: few libraries allow more, and a million axes take 100 MB."""


@lru_cache(maxsize=4096)
def cached_plan(
    operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
) -> Plan:
    """Return the cached plan that `make_plan` made; TypeError for a plan that is not cached.

    Plans with more axes than `MOST_AXES` are not cached, nor are plans with symbolic sizes, some of
    which have no hash. The check runs only on a cache miss, so a call that finds its plan skips it.
    """
    if max(len(shape), len(counts)) > MOST_AXES or not all(map(known, (*shape, *counts))):
        raise TypeError("a plan of so many axes, or of traced sizes, is not kept")
    return make_plan(operator, shape, counts, itemsize)


def make_plan(
    operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
) -> Plan:
    """Apply the operator's rules to shape and counts, and plan the call or refuse it."""
    padded, aligned, result = apply_rules(operator, tuple(shape), counts, itemsize)
    repeats: list[int] = []
    split: list[int] = []
    spread: list[int] = []
    repeated: list[int] = []
    merges = False
    for n, count in zip(padded, aligned, strict=True):
        # An empty axis stays empty however many times it is repeated, and a count without
        # effect must not overflow the product of sizes that a library computes.
        r = 1 if is_equal(n, 0) else count
        repeats.append(r)
        # Axes whose size stays 1 are left out. Each remaining axis at least doubles the
        # result, so a result that is not empty has at most 63 of them.
        is_one = is_equal(n, 1)
        if not is_equal(r, 1):
            repeated.append(len(spread))
            split.append(1)
            spread.append(r)
            merges = merges or not is_one
        if not is_one:
            split.append(n)
            spread.append(n)
    if merges and len(spread) > MOST_AXES and is_empty(result) and all(map(known, padded)):
        # Few libraries allow so many axes. An empty result has no elements to put in order, so the
        # input becomes one flat axis, repeated 0 times. With fewer axes the input is not
        # flattened, because a library may copy it to join its axes.
        n = prod(padded)
        split, spread, repeated = [1, n], [0, n], [0]
    nbytes = prod(result) * itemsize if itemsize and all(map(known, result)) else 0
    return Plan(  # by position, which takes half the time of names
        padded,
        tuple(repeats),
        tuple(split),
        tuple(spread),
        result,
        tuple(repeated),
        merges,
        not merges or is_empty(result),  # is_view
        not repeated and len(padded) == len(shape),  # is_identity
        nbytes,
        *(_in_memory(padded, repeats, merges, itemsize) if nbytes else ()),
    )


def _in_memory(
    padded: tuple[int, ...], repeats: list[int], merges: bool, itemsize: int
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return `row_size`, `strides` and `spread_strides` of a plan whose sizes are all numbers."""
    row_size = 0
    strides: list[int] = []
    spread_strides: list[int] = []
    for n, r, inside in zip(padded, repeats, contiguous(padded, 1), strict=True):
        strides.append(inside * itemsize if r == 1 else 0)
        if r != 1:
            spread_strides.append(0)
            row_size = n * inside
        if n != 1:
            spread_strides.append(inside)
    return row_size, () if merges else tuple(strides), tuple(spread_strides)


@lru_cache(maxsize=4096)
def sum_groups(plan: Plan, least: int = 2) -> tuple[tuple[int, ...], ...]:
    """Group the axes of `spread` that an adjoint sums over, for one sum after the other.

    Neighbours are summed together. The group with most repeats comes first, so that little is left
    to read for the others. If even that group has fewer repeats than `least`, all axes are one
    group.
    """
    groups: list[tuple[int, ...]] = []
    for axis in plan.repeated:
        neighbours = groups.pop() if groups and groups[-1][-1] == axis - 1 else ()
        groups.append((*neighbours, axis))
    repeats = {axes: prod(plan.spread[axis] for axis in axes) for axes in groups}
    groups.sort(key=repeats.__getitem__, reverse=True)
    return tuple(groups) if any(n >= least for n in repeats.values()) else (plan.repeated,)


def contiguous(sizes: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of a C-contiguous array, in the unit of `itemsize`."""
    strides, stride = [], itemsize
    for n in reversed(sizes):
        strides.append(stride)
        stride *= n
    return tuple(reversed(strides))

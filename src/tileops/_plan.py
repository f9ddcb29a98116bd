"""The plan of a call: what to reshape, broadcast and reshape. No arrays, no libraries.

Tile and Expand are one primitive, a contiguous copy of a view with zero
strides. An axis of size n repeated r times is split into (1, n), spread to
(r, n), and merged into r * n.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from tileops._rules import Operator, apply_rules, is_empty, is_equal, known


class Plan(NamedTuple):
    """How an array becomes its repetition, in shapes.

    ``result = reshape(broadcast_to(reshape(x, split), spread), shape)``.
    """

    padded: tuple[int, ...]
    """The input's shape, ones before it up to the rank of the result."""
    repeats: tuple[int, ...]
    """How often each axis of ``padded`` is repeated."""
    split: tuple[int, ...]
    """The input's shape without axes whose size stays 1, with a 1 before each longer one that is
    repeated; 1 and the number of elements, if it is empty and would have very many axes."""
    spread: tuple[int, ...]
    """The shape of the view: `split`, where each 1 to be repeated becomes its repeats."""
    shape: tuple[int, ...]
    """The shape of the result."""
    repeated: tuple[int, ...]
    """The axes of `spread` that hold repeats: what an adjoint sums over."""
    merges: bool
    """Whether `shape` joins axes of `spread`, so that the last reshape has to copy."""
    is_view: bool
    """Whether zero strides express the result: nothing merges, or there are no elements."""
    is_identity: bool
    """Whether the result is the input, axis by axis."""
    nbytes: int
    """The bytes of the result; 0 where a size is symbolic, or torch.compile traces."""
    row: int
    """The elements of the input's innermost stretch that is repeated as a whole, or of all of it;
    0 where `nbytes` is."""
    strides: tuple[int, ...]
    """The view's strides in bytes, if the input is contiguous; () where there is no such view."""


# Plans are compared and hashed by identity: a cache whose keys hold a plan would otherwise hash all
# of its numbers in each call. A dataclass has that by eq=False, but TorchDynamo does not take one
# for a constant.
Plan.__hash__ = object.__hash__  # type: ignore[method-assign]
Plan.__eq__ = object.__eq__  # type: ignore[method-assign]
Plan.__ne__ = object.__ne__  # type: ignore[method-assign]

MOST_AXES = 64
"""The most axes of a plan that is cached: few libraries have more, and a million take 100 MB."""


@lru_cache(maxsize=4096)
def cached_plan(
    operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
) -> Plan:
    """Plan as `make_plan` does, once; TypeError for a plan that is not kept.

    That is one of more axes than `MOST_AXES`, or of traced sizes, some of which have no hash. It
    is raised where a plan is not found, so that a call that finds one need not look.
    """
    if max(len(shape), len(counts)) > MOST_AXES or not all(map(known, (*shape, *counts))):
        raise TypeError("a plan of so many axes, or of traced sizes, is not kept")
    return make_plan(operator, shape, counts, itemsize)


def make_plan(
    operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
) -> Plan:
    """Apply the operator's rules to shape and counts, and plan the call or refuse it."""
    padded, repeats, result = apply_rules(operator, tuple(shape), counts, itemsize)
    # An empty axis stays empty however often it is repeated, and a count without
    # effect must not overflow a library's product of extents.
    repeats = tuple(1 if is_equal(n, 0) else r for n, r in zip(padded, repeats, strict=True))
    split: list[int] = []
    spread: list[int] = []
    repeated: list[int] = []
    merges = False
    for n, r in zip(padded, repeats, strict=True):
        # Axes whose size stays 1 are left out. Each of the others then at least doubles the
        # result, so that one that is not empty has 63 of them at most.
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
        # Few libraries have so many axes, and no element has to find its place: one axis of no
        # repeats, or of one where there are no elements, before all others. Not where there are
        # fewer, since a library may copy to join axes.
        n = prod(padded)
        split, spread, repeated = [1, n], [0 if n else 1, n], [0]
    nbytes = prod(result) * itemsize if itemsize and all(map(known, result)) else 0
    strides: tuple[int, ...] = ()
    if nbytes and not merges:
        pairs = zip(contiguous(padded, itemsize), repeats, strict=True)
        strides = tuple(stride if is_equal(r, 1) else 0 for stride, r in pairs)
    return Plan(
        padded=padded,
        repeats=repeats,
        split=tuple(split),
        spread=tuple(spread),
        shape=result,
        merges=merges,
        repeated=tuple(repeated),
        is_view=not merges or is_empty(result),
        is_identity=not repeated and len(padded) == len(shape),
        nbytes=nbytes,
        row=_row(padded, repeats) if nbytes else 0,
        strides=strides,
    )


def _row(padded: tuple[int, ...], repeats: tuple[int, ...]) -> int:
    row = 1
    for n, r in zip(reversed(padded), reversed(repeats), strict=True):
        row *= n
        if not is_equal(r, 1):
            break
    return row


def contiguous(sizes: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of an array that lies in the order of its elements, in bytes."""
    strides, stride = [], itemsize
    for n in reversed(sizes):
        strides.append(stride)
        stride *= n
    return tuple(reversed(strides))

"""The plan of a copy: what to reshape, broadcast and reshape. No arrays, no libraries.

Tile and Expand are one primitive, a contiguous copy of a view with zero
strides. An axis of size n repeated r times is split into (1, n), spread to
(r, n), and merged into r * n.
"""

from functools import lru_cache
from typing import NamedTuple

from tileops._rules import known


class Plan(NamedTuple):
    """How an array becomes its repetition, in shapes.

    ``result = reshape(broadcast_to(reshape(x, split), spread), shape)``.
    """

    source: tuple[int, ...]
    """The input's shape, ones before it up to the rank of the result."""
    repeats: tuple[int, ...]
    """How often each axis of ``source`` is repeated."""
    split: tuple[int, ...]
    """The input's shape with a 1 before each axis longer than 1 that is repeated."""
    spread: tuple[int, ...]
    """The shape of the view: `split` with the repeats in the places of those ones."""
    shape: tuple[int, ...]
    """The shape of the result."""
    merges: bool
    """Whether `shape` joins axes of `spread`, so that the last reshape has to copy."""
    is_view: bool
    """Whether zero strides express the result: nothing merges, or there are no elements."""
    is_identity: bool
    """Whether the result is the input, axis by axis."""


_MOST_AXES = 64
"""The axes of a plan that is kept: few libraries have more, and a million take 100 MB."""


def cached_plan(rank: int, source: tuple[int, ...], repeats: tuple[int, ...]) -> Plan:
    """Plan as `make_plan` does; where no size is symbolic and axes are few, at most once."""
    if len(source) <= _MOST_AXES and all(map(known, source)) and all(map(known, repeats)):
        return _cached(rank, source, repeats)
    return make_plan(rank, source, repeats)


def make_plan(rank: int, source: tuple[int, ...], repeats: tuple[int, ...]) -> Plan:
    """Plan the repetition of an array of `rank` axes, padded to `source`."""
    # An empty axis stays empty however often it is repeated, and a count without
    # effect must not overflow a library's product of extents.
    repeats = tuple(1 if known(n) and n == 0 else r for n, r in zip(source, repeats, strict=True))
    split: list[int] = []
    spread: list[int] = []
    merges = False
    for n, r in zip(source, repeats, strict=True):
        # Axes of size 1 that stay so are left out. Then each axis of spread is 2 or
        # longer, and a result that any memory can hold has 63 of them at most.
        if known(r) and r == 1:
            if not (known(n) and n == 1):
                split.append(n)
                spread.append(n)
        elif known(n) and n == 1:
            split.append(1)
            spread.append(r)
        else:
            split += (1, n)
            spread += (r, n)
            merges = True
    shape = tuple(n * r for n, r in zip(source, repeats, strict=True))
    is_empty = any(known(size) and size == 0 for size in shape)
    return Plan(
        source=source,
        repeats=repeats,
        split=tuple(split),
        spread=tuple(spread),
        shape=shape,
        merges=merges,
        is_view=is_empty or not merges,
        is_identity=len(source) == rank and all(known(r) and r == 1 for r in repeats),
    )


_cached = lru_cache(maxsize=4096)(make_plan)

"""How bytes move: a strided copy in few loops over wide words, and the steps that make it fast.

No arrays, no libraries. A `Nest` describes the copy. `_plan_device` makes of it the launch of a
kernel; `_plan_host` makes of it a tree of `Copy`, `Columns`, `Pairs`, `Loop` and `Stage`, which
`tileops.execute.moving` carries out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from tileops._plan import Plan, contiguous

WORDS = (16, 8, 4, 2, 1)
"""The bytes that one instruction loads or stores."""


class Nest(NamedTuple):
    """A copy as nested loops, the innermost last, whose body moves a word.

    Along an axis that is repeated the source's stride is 0.
    """

    sizes: tuple[int, ...]
    source: tuple[int, ...]
    """The source's strides, in bytes."""
    target: tuple[int, ...]
    """The target's strides, in bytes."""
    word: int
    """The bytes of a word."""
    repeats_per_word: int = 1
    """How many repeats of a narrower source word one word of the target holds."""

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return prod(self.sizes) * self.word

    @property
    def source_word(self) -> int:
        """The bytes of a word of the source."""
        return self.word // self.repeats_per_word

    def in_words(self, word: int) -> "Nest":
        """Cut the innermost loop, over bytes, into words."""
        *sizes, run = self.sizes
        source, target = self.source[:-1], self.target[:-1]
        if run != word:
            sizes, source, target = [*sizes, run // word], (*source, word), (*target, word)
        return Nest(tuple(sizes), source, target, word)

    def block(self, sizes: tuple[int, ...]) -> "Nest":
        """Restrict the loops to fewer rounds, into a target that is contiguous."""
        return self._replace(sizes=sizes, target=contiguous(sizes, self.word))


@dataclass(frozen=True, slots=True)
class Copy:
    """One assignment."""


COPY = Copy()


@dataclass(frozen=True, slots=True)
class Columns:
    """An assignment for each index of the innermost axes: many rows, few words in each."""

    axes: int
    """How many innermost axes these are."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The repeats of each word in the innermost axis, in words that hold two of them."""

    words: int
    """The most words of the source at once: a temporary holds each twice."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The same steps for each slice of an axis."""

    axis: int
    step: int
    body: "Move"


@dataclass(frozen=True, slots=True)
class Stage:
    """A temporary of these sizes is filled, and then copied to each of its repeats."""

    sizes: tuple[int, ...]
    fill: "Move"
    columns: int = 0
    """The axes of the `Columns` by which it is copied, broadcast to the target; 0: by blocks."""


Move = Copy | Columns | Pairs | Loop | Stage


def make_nest(plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int) -> Nest:
    """Describe a repetition between strided arrays, byte by byte, in as few loops as can be."""
    source = (0,) * (len(target) - len(source)) + source
    axes = []
    for n, r, s, t in zip(plan.padded, plan.repeats, source, target, strict=True):
        axes += [(r, 0, n * t), (n, s, t)]
    axes.sort(key=lambda axis: -abs(axis[2]))
    return join_loops([*axes, (itemsize, 1, 1)])


def join_loops(axes: list[tuple[int, int, int]]) -> Nest:
    """Leave out loops of one round, and join two where one goes on from the other."""
    *outer, innermost = axes
    merged = [innermost]
    for n, s, t in reversed(outer):
        size, inner, written = merged[-1]
        if (s, t) == (size * inner, size * written):
            merged[-1] = (n * size, inner, written)
        elif n != 1:
            merged.append((n, s, t))
    sizes, source, target = zip(*reversed(merged), strict=True)
    return Nest(sizes, source, target, 1)


def box(sizes: tuple[int, ...], word: int, most: int) -> tuple[int, ...]:
    """Cut loops down to a block of at most this many bytes, the outer ones first."""
    block, inside = [], word
    for n in reversed(sizes):
        block.append(max(1, min(n, most // inside)))
        inside *= n
    return tuple(reversed(block))


def blocks(sizes: tuple[int, ...], block: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Cut an array into blocks, the last of which may be smaller along any axis."""
    axes = zip(sizes, block, strict=True)
    return product(*([slice(i, min(i + n, size)) for i in range(0, size, n)] for size, n in axes))

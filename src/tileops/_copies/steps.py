"""How bytes move: a strided copy in few loops over wide words, and the steps that make it fast.

A `Nest` describes a copy. `gpu` turns a nest into the launch of a kernel; `cpu` turns it into a
tree of `Copy`, `Columns`, `Pairs`, `Slices` and `Stage`, which `execute/moving.py` carries out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from tileops._plan import Plan, contiguous

WORDS = (16, 8, 4, 2, 1)
"""The sizes, in bytes, that one instruction can load or store."""


class Nest(NamedTuple):
    """A copy as nested loops, the innermost last, whose body moves one word.

    The source's stride is 0 along a repeated axis.
    """

    sizes: tuple[int, ...]
    source: tuple[int, ...]
    """The source's strides, in bytes."""
    target: tuple[int, ...]
    """The target's strides, in bytes."""
    word: int
    """The size of a word in bytes."""
    repeats_per_word: int = 1
    """How many repeats of a narrower source word each word of the target holds."""

    @property
    def nbytes(self) -> int:
        """The number of bytes that the copy writes."""
        return prod(self.sizes) * self.word

    @property
    def source_word(self) -> int:
        """The size of a word of the source in bytes."""
        return self.word // self.repeats_per_word

    def in_words(self, word: int) -> "Nest":
        """Cut the innermost loop, over bytes, into words."""
        *sizes, run = self.sizes
        source, target = self.source[:-1], self.target[:-1]
        if run != word:
            sizes, source, target = [*sizes, run // word], (*source, word), (*target, word)
        return Nest(tuple(sizes), source, target, word)

    def block(self, sizes: tuple[int, ...]) -> "Nest":
        """Restrict the loops to fewer rounds, which write to a contiguous target."""
        return self._replace(sizes=sizes, target=contiguous(sizes, self.word))


@dataclass(frozen=True, slots=True)
class Copy:
    """One assignment."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One assignment for each index of the innermost axes, for many rows of few words each."""

    axes: int
    """The number of those innermost axes."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Repeats of each word along the innermost axis, written in words that hold two of them."""

    words: int
    """The most source words handled at once; a temporary holds each of them twice."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The same steps for each slice along an axis."""

    axis: int
    width: int
    body: "Steps"


@dataclass(frozen=True, slots=True)
class Stage:
    """A temporary of these sizes, which is filled and then copied to each of its repeats."""

    sizes: tuple[int, ...]
    fill: "Steps"


Steps = Copy | Columns | Pairs | Slices | Stage


@lru_cache(maxsize=256)
def make_nest(plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int) -> Nest:
    """Describe a repetition of strided arrays as a copy of bytes, in as few loops as possible."""
    source = (0,) * (len(target) - len(source)) + source
    axes = []
    for n, r, s, t in zip(plan.padded, plan.repeats, source, target, strict=True):
        axes += [(r, 0, n * t), (n, s, t)]
    axes.sort(key=lambda axis: -abs(axis[2]))
    return join_loops([*axes, (itemsize, 1, 1)])


def contiguous_strides(plan: Plan, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the strides, in bytes, of a contiguous input and of a contiguous result."""
    return contiguous(plan.padded, itemsize), contiguous(plan.shape, itemsize)


def join_loops(axes: list[tuple[int, int, int]]) -> Nest:
    """Drop loops of one round, and join two loops where the outer one continues the inner one."""
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
    """Cut loops down to a block of at most `most` bytes, the outer loops first."""
    loops = zip(sizes, contiguous(sizes, word), strict=True)
    return tuple(max(1, min(n, most // inside)) for n, inside in loops)


def blocks(sizes: tuple[int, ...], block: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Cut an array into blocks; the last block along each axis may be smaller."""
    axes = zip(sizes, block, strict=True)
    return product(*([slice(i, min(i + n, size)) for i in range(0, size, n)] for size, n in axes))

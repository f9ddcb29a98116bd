"""How bytes move: a strided copy as few loops over wide words, and the steps that make it fast.

No arrays, no libraries. A `Nest` describes the copy, `plan_host` plans it for a
CPU. What it plans is a tree of `Copy`, `Columns`, `Loop` and `Stage`, which
`tileops.execute.moving` carries out on arrays.
"""

from functools import lru_cache
from math import ceil, prod
from typing import NamedTuple

from tileops._plan import Plan

WORDS = (16, 8, 4, 2, 1)
"""The bytes that one instruction loads or stores."""


class Nest(NamedTuple):
    """A copy as nested loops, the innermost last, whose body moves a word.

    Along an axis that is repeated the source's step is 0.
    """

    sizes: tuple[int, ...]
    source: tuple[int, ...]
    """The source's steps, in bytes."""
    target: tuple[int, ...]
    """The target's steps, in bytes."""
    word: int
    """The bytes of a word."""

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return prod(self.sizes) * self.word

    def in_words(self, word: int) -> "Nest":
        """Cut the innermost loop, over bytes, into words."""
        *sizes, run = self.sizes
        source, target = self.source[:-1], self.target[:-1]
        if run != word:
            sizes, source, target = [*sizes, run // word], (*source, word), (*target, word)
        return Nest(tuple(sizes), source, target, word)

    def box(self, sizes: tuple[int, ...]) -> "Nest":
        """Restrict the loops to fewer rounds, into a target that is contiguous."""
        steps = [self.word]
        for n in reversed(sizes[1:]):
            steps.append(steps[-1] * n)
        return Nest(sizes, self.source, tuple(reversed(steps)), self.word)


class Copy(NamedTuple):
    """One assignment."""


class Columns(NamedTuple):
    """An assignment for each index of the innermost axes: many rows, few words in each."""

    axes: int


class Loop(NamedTuple):
    """The same steps for each slice of an axis."""

    axis: int
    step: int
    body: "Move"


class Stage(NamedTuple):
    """A temporary of these sizes is filled, and then copied to each of its repeats."""

    sizes: tuple[int, ...]
    fill: "Move"


Move = Copy | Columns | Loop | Stage

COPY = Copy()


@lru_cache(maxsize=4096)
def make_nest(plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int) -> Nest:
    """Describe a repetition between strided arrays, byte by byte, in as few loops as there are."""
    source = (0,) * (len(target) - len(source)) + source
    axes = []
    for n, r, s, t in zip(plan.source, plan.repeats, source, target, strict=True):
        axes += [(r, 0, n * t), (n, s, t)]
    axes.sort(key=lambda axis: -abs(axis[2]))
    return _merged([*axes, (itemsize, 1, 1)])


def _merged(axes: list[tuple[int, int, int]]) -> Nest:
    """Leave out loops of one round, and join two where one step goes on from the other."""
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


def widest_word(nest: Nest, alignment: int, words: tuple[int, ...] = WORDS) -> int:
    """Give the widest word that divides the innermost run, all steps and the addresses."""
    numbers = (nest.sizes[-1], alignment, *nest.source[:-1], *nest.target[:-1])
    return next(word for word in words if not any(n % word for n in numbers))


# What decides on a CPU. Measured with NumPy 2.4 on an AMD EPYC (Zen 5, 1 MiB of L2 a core):
# a pass costs 0.3 ns a word of up to 8 bytes, 2 ns an element of any other width, and 4 ns more
# for each entry into the innermost loop.
_LOOP = {True: 13, False: 4}
"""From so many words, or other elements, on it pays to enter a loop for them in each row."""
_PASSES = 16
"""The most passes over a block."""
_ROWS = 1024
"""The fewest rows that a pass is worth."""
_WIDE = 256
"""The bytes of a run from which on copies inside the cache are fast."""
_RUN = 16 * 1024
"""The bytes of a run from which on copies out of the cache are fast; one element up to there."""
_BLOCK = 512 * 1024
"""The bytes of a block that stays in a core's cache between two uses."""
_CHUNK = 8 * 1024 * 1024
"""The same for the cache that the cores share."""
_SMALL = 6
"""A temporary is at most this part of what it is copied to; two of them then at most a quarter."""
_FEW = 4096
"""Fewer runs than these take less time than the steps that would make them wider."""


@lru_cache(maxsize=4096)
def host_words(nest: Nest, alignment: int) -> Nest:
    """Choose the words of a copy on a CPU; a short run of several is one element."""
    run = nest.sizes[-1]
    if run in WORDS:
        return nest.in_words(run)
    words = nest.in_words(widest_word(nest, alignment, WORDS[1:]))
    if run > _RUN or (words.sizes[-1] <= 3 and _columns(words)):  # noqa: PLR2004
        return words
    return nest.in_words(run)


@lru_cache(maxsize=4096)
def plan_host(nest: Nest, is_fresh: bool) -> Move:
    """Plan a copy for a CPU with caches.

    Fresh memory is in the cache when it is first written, since the kernel has just cleared it:
    there short runs cost little, and blocks save nothing.
    """
    run = _run(nest)
    if run >= (_WIDE if is_fresh else _RUN):
        block = _box(nest.sizes, nest.word, _CHUNK)
        return _looped(nest, block, COPY) if _repeats(nest, block) else COPY
    if nest.nbytes // run < _FEW and (is_fresh or nest.nbytes < _SMALL * _BLOCK):
        return COPY
    block = _box(nest.sizes, nest.word, min(_BLOCK, nest.nbytes // _SMALL))
    if _repeats(nest, block):
        return _looped(nest, block, Stage(block, plan_host(nest.box(block), False)))
    return _plan_rows(nest) if run < _WIDE else COPY


def _repeats(nest: Nest, block: tuple[int, ...]) -> bool:
    """Whether any block is written more than once."""
    loops = zip(nest.sizes, nest.source, block, strict=True)
    return any(step == 0 and size < n for n, step, size in loops)


def _plan_rows(nest: Nest) -> Move:
    """Plan a copy of short runs, each block of which is written once."""
    run = _run(nest)
    axis = len(nest.sizes) - (1 if run == nest.word else 2)
    wider = ceil(_WIDE / run)
    if axis >= 0 and nest.source[axis] == 0 and nest.sizes[axis] >= 4 * wider:
        sizes = (*nest.sizes[:axis], wider, *nest.sizes[axis + 1 :])
        block = _box(sizes, nest.word, _BLOCK)
        return _looped(nest, block, Stage(block, plan_host(nest.box(block), False)))
    axes = _columns(nest)
    return _looped(nest, _box(nest.sizes, nest.word, _BLOCK), Columns(axes)) if axes else COPY


def _run(nest: Nest) -> int:
    """Give the bytes that the innermost loop writes at the price of few elements."""
    if nest.sizes and (nest.word in WORDS or nest.source[-1] == nest.word):
        return nest.sizes[-1] * nest.word
    return nest.word


def _columns(nest: Nest) -> int:
    """Count the innermost axes whose indices are better looped over outside of the rows."""
    axes, passes = 0, 1
    for n in reversed(nest.sizes[1:]):
        if n >= _LOOP[nest.word in WORDS] or passes * n > _PASSES:
            break
        axes, passes = axes + 1, passes * n
    return axes if axes and nest.sizes[-1 - axes] >= _ROWS else 0


def _box(sizes: tuple[int, ...], word: int, most: int) -> tuple[int, ...]:
    """Cut loops down to a block of at most so many bytes, the outer ones first."""
    box, inside = [], word
    for n in reversed(sizes):
        box.append(max(1, min(n, most // inside)))
        inside *= n
    return tuple(reversed(box))


def _looped(nest: Nest, block: tuple[int, ...], body: Move) -> Move:
    """Loop over the blocks of the source; its repeats are left to the body."""
    for axis in reversed(range(len(nest.sizes))):
        if nest.source[axis] != 0 and block[axis] < nest.sizes[axis]:
            body = Loop(axis, block[axis], body)
    return body


def cut(nest: Nest, threads: int) -> tuple[int, int]:
    """Choose an axis, and a step along it, that keep so many threads busy to the end.

    The outermost axis that does it is taken. Where it is repeated, each thread has one part,
    since each part reads the source anew.
    """
    best, most = (0, max(nest.sizes, default=1)), 0.0
    for axis, (n, source) in enumerate(zip(nest.sizes, nest.source, strict=True)):
        step = ceil(n / (threads * (_PARTS if source else 1)))
        parts = ceil(n / step)
        busy = n / (ceil(parts / threads) * threads * step)
        if busy > most + _BUSIER:
            best, most = (axis, step), busy
    return best


_PARTS = 4
"""Parts of a shared copy for each thread, so that none waits long for another."""
_BUSIER = 0.1
"""How much busier an inner axis must keep the threads than an outer one."""


# What decides on a GPU, whose copy kernels take as long for an element of 1 byte as of 16. Read
# and reckoned, not measured yet: benchmarks/gpu.py measures it.
_SHARE = 4
"""A temporary takes at most this part of the result."""
_GAIN = 1.25
"""How many times fewer words must be moved for a temporary to be worth a second kernel."""
_DEVICE_CHUNK = 8 * 1024 * 1024
"""The bytes of a chunk of the source that stays in the cache while its repeats are written."""
_DEVICE_CACHE = 32 * 1024 * 1024
"""The bytes of a source from which on it does not stay there as a whole."""


class Step(NamedTuple):
    """A copy as the one kernel, or the few, that a GPU runs for it."""

    nest: Nest
    move: Move


@lru_cache(maxsize=4096)
def plan_device(nest: Nest, alignment: int, itemsize: int) -> tuple[Step, ...]:
    """Plan a copy for a GPU: into the result, or into a temporary and from there.

    The temporary holds the source with some of its repeats: enough that rows of it, or of the
    result, can be moved in wider words than the source's. Where nothing is gained over a copy
    element by element there are no steps.
    """
    best: tuple[Nest, ...] = (nest.in_words(widest_word(nest, alignment)),)
    for sizes in _stages(nest):
        filled = nest.box(sizes)
        if filled.nbytes * _SHARE > nest.nbytes:
            continue
        spread = _spread(nest, filled)
        steps = (
            filled.in_words(widest_word(filled, alignment)),
            spread.in_words(widest_word(spread, alignment)),
        )
        if _words(steps) * _GAIN <= _words(best):
            best = steps
    plan = tuple(Step(nest, _chunked(nest)) for nest in best)
    gains = len(plan) > 1 or plan[0].nest.word > itemsize or plan[0].move is not COPY
    return plan if gains else ()


def _words(nests: tuple[Nest, ...]) -> int:
    return sum(nest.nbytes // nest.word for nest in nests)


def _stages(nest: Nest) -> list[tuple[int, ...]]:
    """List temporaries: with the repeats of the inner axes, and with a part of the next one's."""
    repeated = [axis for axis, step in enumerate(nest.source) if step == 0]
    sizes = [1 if axis in repeated else n for axis, n in enumerate(nest.sizes)]
    found = []
    for axis in reversed(repeated):
        n = nest.sizes[axis]
        for part in (2, 4, 8, 16, n):
            if part <= n and n % part == 0:
                sizes[axis] = part
                found.append(tuple(sizes))
    return found


def _spread(nest: Nest, filled: Nest) -> Nest:
    """Describe the copy from a temporary to all of its repeats, in as few loops as there are."""
    axes = []
    for n, size, s, t in zip(nest.sizes, filled.sizes, filled.target, nest.target, strict=True):
        axes += [(n // size, 0, size * t), (size, s, t)]
    return _merged(axes)


def _chunked(nest: Nest) -> Move:
    """Go over what is repeated in chunks, each with all of its repeats, if no cache holds it."""
    repeated, inside = 0, nest.word
    for n, s in zip(reversed(nest.sizes), reversed(nest.source), strict=True):
        if s == 0:
            repeated = inside
        else:
            inside *= n
    if repeated <= _DEVICE_CACHE:
        return COPY
    return _looped(nest, _box(nest.sizes, nest.word, _DEVICE_CHUNK), COPY)

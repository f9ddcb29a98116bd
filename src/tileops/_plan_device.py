"""Plans of copies in the memory of a GPU: one step, or two, in the widest words that there are.

A copy kernel of a library takes about as long for an element of one byte as for one of 16, until
the memory is the limit: so what counts is how many elements its threads move.
"""

from math import prod
from typing import NamedTuple

from tileops._moves import Nest, join_loops, widest_word

_SHARE = 4
"""A temporary takes at most this part of the result."""
_GAIN = 1.1
"""How many times longer one step must take for a temporary to be worth a second kernel."""
_SECOND = 4 / 3
"""How many times as many elements a result must have for that kernel's launch to be worth it."""
_CACHED = 2
"""What is repeated stays in the cache between two repeats if it has this many chunks at most."""
_LAUNCHED = 32 * 2**20
"""The bytes that a kernel of its own for each chunk must write to be worth its launch."""


class Traits(NamedTuple):
    """What the copy kernels of a library are like."""

    words: tuple[int, ...]
    """The bytes of the elements that a thread moves in the same time, the widest first."""
    repeats: tuple[tuple[int, int], ...]
    """The bytes of a word, and how many repeats of it one element may hold, the most first."""
    moved: int
    """The bytes that the card's memory moves in the time of an element."""
    chunk: int
    """The bytes that stay in the card's cache while their repeats are written."""
    in_order: bool
    """Whether a kernel writes in the order of the axes that it is given, or in that of memory."""
    least: int
    """The elements of a result from which on a kernel saves more time than its launch takes."""


class Step(NamedTuple):
    """A copy by one kernel, or by several: one for each index of its first axis."""

    nest: Nest
    launches: int = 1


def plan_device(nest: Nest, alignment: int, itemsize: int, traits: Traits) -> tuple[Step, ...]:
    """Plan a copy for a GPU: into the result, or into a temporary and from there.

    The temporary holds the source with some of its repeats: enough that rows of it, or of the
    result, can be moved in wider words than the source's. Where nothing is gained over a copy
    element by element there are no steps.
    """
    one: tuple[Nest, ...] = (_in_words(nest, alignment, traits),)
    candidates = [one]
    is_large = nest.nbytes >= _SECOND * traits.least * itemsize
    for sizes in _temporaries(nest) if is_large else ():
        filled = nest.block(sizes)
        if filled.nbytes * _SHARE <= nest.nbytes:
            pair = (filled, _spread(nest, filled))
            candidates.append(tuple(_in_words(each, alignment, traits) for each in pair))
    best = min(candidates, key=lambda nests: _time(nests, traits))
    if _time(best, traits) * _GAIN > _time(one, traits):
        best = one
    steps = tuple(_in_chunks(nest, traits) for nest in best)
    gains = len(steps) > 1 or best[0].word > itemsize or steps[0].nest != best[0]
    return steps if gains else ()


def _in_words(nest: Nest, alignment: int, traits: Traits) -> Nest:
    """Choose the widest words, or wider ones that each hold several repeats of one."""
    words = nest.in_words(widest_word(nest, alignment, traits.words))
    word = words.word
    if words.source[-1:] != (0,) or words.target[-1] != word:
        return words
    *sizes, n = words.sizes
    held = (times for width, times in traits.repeats if width == word and n % times == 0)
    times = next(held, 1)
    source, target = words.source[:-1], words.target[:-1]
    if times != n:
        sizes, source, target = [*sizes, n // times], (*source, 0), (*target, word * times)
    return Nest(tuple(sizes), source, target, word * times, times)


def _time(nests: tuple[Nest, ...], traits: Traits) -> float:
    """Return how many elements are moved in the time of these copies."""
    return sum(
        max(nest.nbytes / nest.word, (nest.nbytes + _inside(nest, -1)) / traits.moved)
        for nest in nests
    )


def _inside(nest: Nest, axis: int) -> int:
    """Return the bytes of the source inside an axis."""
    axes = zip(nest.sizes[axis + 1 :], nest.source[axis + 1 :], strict=True)
    return prod(n for n, stride in axes if stride != 0) * nest.source_word


def _temporaries(nest: Nest) -> list[tuple[int, ...]]:
    """List temporaries: with the repeats of the inner axes, and with a part of the next one's."""
    repeated = [axis for axis, stride in enumerate(nest.source) if stride == 0]
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
    """Describe the copy from a temporary to all of its repeats, in as few loops as can be."""
    axes = []
    for n, size, s, t in zip(nest.sizes, filled.sizes, filled.target, nest.target, strict=True):
        axes += [(n // size, 0, size * t), (size, s, t)]
    return join_loops(axes)


def _in_chunks(nest: Nest, traits: Traits) -> Step:
    """Put chunks of what is repeated before its repeats, if no cache holds it as a whole."""
    step = Step(nest)
    axes = [axis for axis, stride in enumerate(nest.source) if stride == 0]
    large = [axis for axis in axes if _inside(nest, axis) > _CACHED * traits.chunk]
    if not large:
        return step
    inside = range(large[0], len(nest.sizes))
    axis = next((i for i in inside if nest.source[i] != 0), None)
    if axis is None:  # a word alone, larger than a chunk
        return step
    n, least = nest.sizes[axis], -(-_inside(nest, large[0]) // traits.chunk)
    count = next((k for k in range(min(n, least), min(n, 2 * least) + 1) if n % k == 0), 0)
    if not count:
        return step
    launches = 1 if traits.in_order else count
    if launches > 1 and nest.nbytes < launches * _LAUNCHED:
        return step
    part = n // count
    sizes = (count, *nest.sizes[:axis], part, *nest.sizes[axis + 1 :])
    source = (part * nest.source[axis], *nest.source)
    target = (part * nest.target[axis], *nest.target)
    return Step(nest._replace(sizes=sizes, source=source, target=target), launches)

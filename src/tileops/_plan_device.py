"""Plans of copies in the memory of a GPU: one step, or two, in the widest words that there are.

What decides is that copy kernels take as long for an element of 1 byte as for one of 16. The
thresholds are read and reckoned, not measured yet: benchmarks/gpu measures them.
"""

from typing import NamedTuple

from tileops._moves import Nest, box, join_loops, widest_word

_SHARE = 4
"""A temporary takes at most this part of the result."""
_GAIN = 1.25
"""How many times fewer words must be moved for a temporary to be worth a second kernel."""
_CHUNK = 8 * 2**20
"""The bytes of a chunk of the source that stays in the cache while its repeats are written."""
_CACHE = 32 * 2**20
"""The bytes of a source from which on it does not stay there as a whole."""


class Step(NamedTuple):
    """A copy, and the block of it that one kernel of a GPU writes."""

    nest: Nest
    block: tuple[int, ...]


def plan_device(nest: Nest, alignment: int, itemsize: int) -> tuple[Step, ...]:
    """Plan a copy for a GPU: into the result, or into a temporary and from there.

    The temporary holds the source with some of its repeats: enough that rows of it, or of the
    result, can be moved in wider words than the source's. Where nothing is gained over a copy
    element by element there are no steps.
    """
    best: tuple[Nest, ...] = (nest.in_words(widest_word(nest, alignment)),)
    for sizes in _temporaries(nest):
        filled = nest.block(sizes)
        if filled.nbytes * _SHARE > nest.nbytes:
            continue
        spread = _spread(nest, filled)
        two = (
            filled.in_words(widest_word(filled, alignment)),
            spread.in_words(widest_word(spread, alignment)),
        )
        if _words(two) * _GAIN <= _words(best):
            best = two
    steps = tuple(Step(nest, _block(nest)) for nest in best)
    first, block = steps[0]
    gains = len(steps) > 1 or first.word > itemsize or block != first.sizes
    return steps if gains else ()


def _words(nests: tuple[Nest, ...]) -> int:
    return sum(nest.nbytes // nest.word for nest in nests)


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


def _block(nest: Nest) -> tuple[int, ...]:
    """Choose a chunk of what is repeated, with all of its repeats, if no cache holds the whole."""
    repeated, inside = 0, nest.word
    for n, s in zip(reversed(nest.sizes), reversed(nest.source), strict=True):
        if s == 0:
            repeated = inside
        else:
            inside *= n
    if repeated <= _CACHE:
        return nest.sizes
    chunk = box(nest.sizes, nest.word, _CHUNK)
    axes = zip(nest.sizes, nest.source, chunk, strict=True)
    return tuple(n if stride == 0 else part for n, stride, part in axes)

"""Plans of copies in the memory of a GPU: one kernel, `execute/repeat.cu`.

A thread's work takes about as long for a byte as for 16, until the memory is the limit. So a thread
writes as many bytes at once as the target allows, puts them together from pieces as wide as the
source allows, and writes them to several of their repeats.
"""

from collections.abc import Iterable
from math import gcd, prod
from typing import NamedTuple

from tileops._moves import WORDS, Nest, join_loops

_WIDEST = WORDS[0]
"""The bytes of the widest load and store."""
_AT_ONCE = 8
"""A thread writes all repeats of what it has read, if they are this many at most."""
_OF_MORE = 4
"""Of more it writes this many."""
_APART = 2**16
"""The bytes from a repeat to the next below which it is read from the cache by a thread of its own,
beside the other: the stores of neighbours then lie side by side."""
_WIDER = 4
"""How many elements a store must hold, if it is narrower than the widest."""
_MOST_BLOCKS = 65535
"""The blocks along a grid's second axis."""
_MOST_COUNTED = 2**31
"""The pieces that 32 bits number, and the bytes that they go over: half of what they could, since
offsets have signs, and quotients come of products whose factors are rounded up."""

Loop = tuple[int, int, int]
"""Rounds, and the bytes that source and target go on in a round."""


class Variant(NamedTuple):
    """What a kernel is compiled for, as `execute/repeat.cu` defines it."""

    load: int
    store: int
    outer: int
    inner: int
    crosses: bool
    is_run: bool
    bits: int
    inner_bits: int


class Launch(NamedTuple):
    """A copy by one kernel."""

    variant: Variant
    loops: tuple[Loop, ...]
    """Over the pieces: the outer ones and then the inner ones, the innermost last. The bytes of a
    round are relative, as `_relative` makes them of the outer ones and of the inner ones."""
    stores: int
    """Over all loops."""
    period: int
    """The pieces in the inner loops."""
    tail: int
    """The pieces of the last store, or 0 if it is full."""
    repeats: int
    """How often each store is repeated, beside the loops."""
    at_once: int
    """The repeats that a thread writes."""
    step: int
    """The bytes from one of them to the next."""


def plan_device(
    nest: Nest, source_alignment: int, target_alignment: int, itemsize: int
) -> Launch | None:
    """Plan a repetition between arrays at addresses that these powers of two divide.

    None where stores can be no wider than a few elements, as a library's own are.
    """
    launch = _launch(nest, source_alignment, target_alignment)
    if launch.variant.store < min(_WIDEST, _WIDER * itemsize):
        return None
    axis = next((i for i, stride in enumerate(nest.source) if stride == 0), None)
    if axis is None or abs(nest.target[axis]) < _APART:
        return launch
    axes = list(zip(nest.sizes, nest.source, nest.target, strict=True))
    repeats, _, step = axes.pop(axis)
    once = _launch(join_loops(axes), source_alignment, target_alignment, repeats, step)
    return once if once.variant.store >= launch.variant.store else launch


def _launch(
    nest: Nest, source_alignment: int, target_alignment: int, repeats: int = 1, step: int = 0
) -> Launch:
    run, axis = 1, len(nest.sizes)
    while axis and nest.target[axis - 1] == run:
        axis -= 1
        run *= nest.sizes[axis]
    is_one_run = axis == 0 and repeats == 1 and run >= _WIDEST  # its last store need not be full
    apart = () if is_one_run else (run, step, *nest.target[:axis])
    store = gcd(_WIDEST, target_alignment, *apart)
    load = gcd(store, source_alignment, nest.sizes[-1], *nest.source[:-1])
    pieces = store // load
    words = nest.in_words(load)
    loops = tuple(zip(words.sizes, words.source, words.target, strict=True)) or ((1, 0, 0),)
    split = _split(loops, pieces)
    is_run = load < 4 <= store and len(split.inner) == 1 and split.inner[0][1] == load  # noqa: PLR2004
    stores, rest = -(-nest.nbytes // store), nest.nbytes % store
    counted = split.period + pieces
    if pieces > 1 and not is_run:
        counted = max(counted, split.reach)
    at_once = repeats if repeats <= _AT_ONCE else max(_OF_MORE, -(-repeats // _MOST_BLOCKS))
    variant = Variant(
        load,
        store,
        outer=len(split.outer),
        inner=len(split.inner),
        crosses=split.crosses,
        is_run=is_run,
        bits=_bits(stores * pieces),
        inner_bits=_bits(counted),
    )
    loops = _relative(split.outer) + _relative(split.inner)
    return Launch(variant, loops, stores, split.period, rest // load, repeats, at_once, step)


class _Split(NamedTuple):
    """Loops, split into outer ones and the inner ones, which are a period."""

    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    period: int
    """The pieces in the inner loops."""
    reach: int
    """How many bytes the pieces of a store may lie apart from where their period begins."""
    crosses: bool
    """Whether a store may cross the end of a period, to the next one."""


def _split(loops: tuple[Loop, ...], pieces: int) -> _Split:
    """Make the inner loops as few as have the pieces of a store or more.

    Where all but the outermost do not, all are inner ones. If that is more than 32 bits count, the
    outermost is there twice, as an outer one and as an inner one, in which a store goes on beyond
    the end of a period.
    """
    for axis in range(len(loops) - 1, 0, -1):
        period = prod(n for n, _, _ in loops[axis:])
        if period >= pieces:
            inner = loops[axis:]
            return _Split(loops[:axis], inner, period, _reach(inner), crosses=pieces > 1)
    whole = _Split((), loops, prod(n for n, _, _ in loops), _reach(loops), crosses=False)
    if len(loops) == 1 or max(whole.period + pieces, whole.reach) <= _MOST_COUNTED:
        return whole
    (_, source, target), *others = loops
    reach = _reach([(pieces, source, target), *others])
    return _Split(loops[:1], loops, prod(n for n, _, _ in others), reach, crosses=False)


def _reach(loops: Iterable[Loop]) -> int:
    return sum(n * abs(source) for n, source, _ in loops)


def _relative(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Subtract from each loop's strides what the next one goes in all of its rounds."""
    inside = (*loops, (0, 0, 0))[1:]
    pairs = zip(loops, inside, strict=True)
    return tuple((n, s - size * by, t - size * to) for (n, s, t), (size, by, to) in pairs)


def _bits(n: int) -> int:
    return 32 if n <= _MOST_COUNTED else 64

"""Plans of copies in the memory of a GPU: one kernel, `execute/repeat.cu`.

Until the memory is the limit, a thread takes about as long to move one byte as to move 16. So each
thread writes as many bytes at once as the target allows, assembles them from pieces as wide as the
source allows, and writes them to several of their repeats.
"""

from collections.abc import Iterable
from math import gcd, prod
from typing import NamedTuple

from tileops._copies.steps import WORDS, Nest, join_loops

_WIDEST = WORDS[0]
"""The size, in bytes, of the widest load and store."""
_AT_ONCE = 8
"""A thread writes all repeats of what it has read if there are at most this many."""
_OF_MORE = 4
"""If there are more repeats, a thread writes this many of them, or more if the grid would otherwise
have too many blocks."""
_APART = 2**16
"""If repeats lie fewer bytes apart than this, each is written by a thread of its own, which reads
the source from the cache. The stores of neighbouring threads then lie side by side."""
_WIDER = 4
"""The fewest elements that a store must hold if it is narrower than the widest."""
_MOST_BLOCKS = 65535
"""The most blocks along a grid's second axis."""
_MOST_COUNTED = 2**31
"""The most pieces, and the most bytes that they span, for which the kernel uses numbers of 32 bits.
That is half of what 32 bits can hold, because offsets have signs and because quotients are computed
as products whose factors are rounded up."""

Loop = tuple[int, int, int]
"""The number of rounds, and the bytes by which source and target advance in each round."""


class Variant(NamedTuple):
    """The parameters that a kernel is compiled for, which `execute/repeat.cu` explains."""

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
    """The loops over pieces: first the outer ones, then the inner ones, the innermost last. Their
    strides are relative, as `_relative` makes them among the outer and among the inner loops."""
    stores: int
    """The number of stores in all loops together."""
    period: int
    """The number of pieces in the inner loops."""
    tail: int
    """The number of pieces in the last store, or 0 if that store is full."""
    repeats: int
    """How often each store is repeated, in addition to the loops."""
    at_once: int
    """The number of repeats that one thread writes."""
    stride: int
    """The bytes from one repeat to the next."""


def plan_device(
    nest: Nest, source_alignment: int, target_alignment: int, itemsize: int
) -> Launch | None:
    """Plan a repetition between arrays at addresses that these powers of two divide.

    Return None where stores could only be a few elements wide, hardly wider than those of a
    library's own kernel.
    """
    launch = _launch(nest, source_alignment, target_alignment)
    if launch.variant.store < min(_WIDEST, _WIDER * itemsize):
        return None
    axis = next((i for i, stride in enumerate(nest.source) if stride == 0), None)
    if axis is None or abs(nest.target[axis]) < _APART:
        return launch
    axes = list(zip(nest.sizes, nest.source, nest.target, strict=True))
    repeats, _, stride = axes.pop(axis)
    once = _launch(join_loops(axes), source_alignment, target_alignment, repeats, stride)
    return once if once.variant.store >= launch.variant.store else launch


def _launch(
    nest: Nest, source_alignment: int, target_alignment: int, repeats: int = 1, stride: int = 0
) -> Launch:
    run, axis = 1, len(nest.sizes)
    while axis and nest.target[axis - 1] == run:
        axis -= 1
        run *= nest.sizes[axis]
    is_one_run = axis == 0 and repeats == 1  # its last store need not be full
    apart = () if is_one_run else (run, stride, *nest.target[:axis])
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
    return Launch(variant, loops, stores, split.period, rest // load, repeats, at_once, stride)


class _Split(NamedTuple):
    """Loops, split into outer ones and inner ones; the inner loops make up a period."""

    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    period: int
    """The number of pieces in the inner loops."""
    reach: int
    """The most bytes by which a piece of a store may lie away from the start of its period."""
    crosses: bool
    """Whether a store may cross the end of a period into the next one."""


def _split(loops: tuple[Loop, ...], pieces: int) -> _Split:
    """Choose as inner loops the fewest innermost ones that hold at least the pieces of a store.

    If all loops except the outermost hold fewer pieces, every loop is an inner one. If 32 bits
    cannot count that many pieces or bytes, the outermost loop appears twice: as an outer loop, and
    as an inner loop in which a store continues beyond the end of its period.
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
    """Subtract from each loop's strides the distance that the next loop goes in all its rounds."""
    inside = (*loops, (0, 0, 0))[1:]
    pairs = zip(loops, inside, strict=True)
    return tuple((n, s - size * by, t - size * to) for (n, s, t), (size, by, to) in pairs)


def _bits(n: int) -> int:
    return 32 if n <= _MOST_COUNTED else 64

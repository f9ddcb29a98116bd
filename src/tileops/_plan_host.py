"""Plans of copies in the memory of a CPU: words, rows, and blocks that stay in its caches.

Measured with NumPy 2.4 on an AMD EPYC (Zen 5, 1 MiB of L2 a core): a pass costs 0.3 ns for a word
of up to 8 bytes, 2 ns for an element of any other width, and 4 ns more for each entry into the
innermost loop.
"""

from functools import lru_cache
from math import ceil

from tileops._moves import COPY, WORDS, Columns, Move, Nest, Stage, box, looped, widest_word

_LOOP = {True: 13, False: 4}
"""From so many words, or other elements, on it pays to enter a loop for them in each row."""
_PASSES = 16
"""The most passes over a block."""
_ROWS = 1024
"""The fewest rows that a pass is worth."""
_WIDE = 256
"""The bytes of a run from which on copies to a near target are fast."""
_RUN = 16 * 1024
"""The same for a far target; up to there, a run is one element."""
_BLOCK = 512 * 1024
"""The bytes of a block that stays in a core's cache between two uses."""
_CHUNK = 8 * 1024 * 1024
"""The same for a near target, and the cache that the cores share."""
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
def plan_host(nest: Nest, is_near: bool) -> Move:
    """Plan a copy for a CPU with caches.

    A near target is in the cache when it is written: it is small, or it is new, and the kernel
    has just cleared it. There short runs cost little, and what counts is to go through the pages
    in their order.
    """
    run = _run(nest)
    if run >= (_WIDE if is_near else _RUN):
        block = box(nest.sizes, nest.word, _CHUNK if is_near else _BLOCK)
        return looped(nest, block, COPY) if _repeats(nest, block) else COPY
    if is_near and nest.nbytes // run < _FEW:
        return COPY
    block = box(nest.sizes, nest.word, min(_BLOCK, nest.nbytes // _SMALL))
    if _repeats(nest, block):
        return looped(nest, block, Stage(block, plan_host(nest.box(block), True)))
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
        block = box(sizes, nest.word, min(_BLOCK, nest.nbytes // _SMALL))
        return looped(nest, block, Stage(block, plan_host(nest.box(block), True)))
    axes = _columns(nest)
    return looped(nest, box(nest.sizes, nest.word, _BLOCK), Columns(axes)) if axes else COPY


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


def threads_for(nest: Nest, is_near: bool, available: int) -> int:
    """Choose how many of the available threads share a copy.

    Each has to wake, and that takes time. Long runs to a far target wait for the memory, which
    half as many keep busy: logical processors are mostly two to a core.
    """
    run = _run(nest)
    is_long = run >= _RUN or _repeats(nest, box(nest.sizes, nest.word, _BLOCK))
    most = (available + 1) // 2 if is_long and not is_near else available
    return max(1, min(most, nest.nbytes // (_PART if run >= _WIDE else _PART // _SLOWER)))


_PART = 8 * 1024 * 1024
"""The bytes for each thread from which on it saves more time than it takes to wake."""
_SLOWER = 8
"""How much longer short runs take."""


def cut(nest: Nest, threads: int, is_near: bool) -> tuple[int, ...]:
    """Choose blocks that so many threads can share, each taking the next when it has done one.

    The outer loops are cut first. Where the target is far, those over a few repeats are left
    whole, since each part reads the source anew.
    """
    block, parts = list(nest.sizes), 1
    for axis, (n, source) in enumerate(zip(nest.sizes, nest.source, strict=True)):
        more = ceil(threads * _PARTS / parts)
        if is_near or source != 0 or n >= _OFTEN * more:
            block[axis] = ceil(n / more)
            parts *= ceil(n / block[axis])
    return tuple(block)


_PARTS = 4
"""Parts of a shared copy for each thread, so that none waits long for another."""
_OFTEN = 8
"""Repeats in a part with which reading the source anew takes little."""

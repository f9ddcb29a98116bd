"""The steps of a planned copy, on arrays of any library that slices and reshapes without a copy."""

from collections.abc import Callable
from itertools import product
from operator import mod
from typing import Any

from tileops._moves import Again, Columns, Copy, Loop, Move, Pairs, Stage


class Means:
    """What a library copies with."""

    __slots__ = ("assign",)

    def __init__(self, assign: Callable[[Any, Any], object]) -> None:
        """Take the library's copy of an array into another, with broadcasting."""
        self.assign = assign

    def empty(self, sizes: tuple[int, ...]) -> Any:
        """Give a temporary of the target's words."""
        raise NotImplementedError(f"a stage of {sizes}")

    def pair(self, target: Any, source: Any) -> None:
        """Write the repeats of each word in words that hold two of them."""
        raise NotImplementedError(f"pairs of {source} in {target}")

    def again(self, target: Any, source: Any, *, is_near: bool) -> None:
        """Repeat a source that is contiguous now, by a plan of its own."""
        raise NotImplementedError(f"{source} in {target}, which is near: {is_near}")


def carry_out(move: Move, target: Any, source: Any, means: Means) -> None:
    """Copy `source`, which has a stride of 0 along axes that are repeated, into `target`.

    A temporary in its place has one round along axes that are in columns.
    """
    match move:
        case Copy():
            means.assign(target, source)
        case Columns(axes):
            sizes, rounds = target.shape[-axes:], source.shape[-axes:]
            for index in product(*map(range, sizes)):
                column = (..., *index)
                first = column if rounds == sizes else (..., *map(mod, index, rounds))
                means.assign(target[column], source[first])
        case Pairs():
            means.pair(target, source)
        case Loop(axis, step, body):
            before = (slice(None),) * axis
            for i in range(0, target.shape[axis], step):
                part = (*before, slice(i, i + step))
                carry_out(body, target[part], source[part], means)
        case Stage():
            _carry_out_stage(move, target, source, means)


def _carry_out_stage(stage: Stage, target: Any, source: Any, means: Means) -> None:
    # The last block along an axis that is looped over may be smaller.
    part = tuple(map(slice, map(min, stage.sizes, target.shape)))
    block = means.empty(stage.sizes)[part]
    carry_out(stage.fill, block, source[part], means)
    match stage.spread:
        case Columns():
            carry_out(stage.spread, target, block, means)
        case Again(is_near):
            means.again(target, block, is_near=is_near)
        case Copy():
            _repeat(target, block, means)


def _repeat(target: Any, block: Any, means: Means) -> None:
    """Copy a block to each of its repeats: whole rounds of an axis, then what is left of it."""
    for axis, (n, size) in enumerate(zip(target.shape, block.shape, strict=True)):
        if 1 < size < n:
            before, after = target.shape[:axis], target.shape[axis + 1 :]
            ahead = (slice(None),) * axis
            whole = n // size
            rounds = target[(*ahead, slice(whole * size))].reshape((*before, whole, size, *after))
            _repeat(rounds, block.reshape((*block.shape[:axis], 1, *block.shape[axis:])), means)
            if n % size:
                rest = slice(whole * size, n)
                _repeat(target[(*ahead, rest)], block[(*ahead, slice(n % size))], means)
            return
    means.assign(target, block)

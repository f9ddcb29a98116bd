"""The steps of a planned copy, on arrays of any library that slices and reshapes without a copy."""

from collections.abc import Callable
from itertools import product
from operator import mod
from typing import Any

from tileops._moves import Columns, Copy, Loop, Move, Pairs, Stage

Assign = Callable[[Any, Any], object]
Empty = Callable[[tuple[int, ...]], Any]
Pair = Callable[[Any, Any, Empty], object]


def no_stage(sizes: tuple[int, ...]) -> Any:
    """Stand for the temporaries of moves that have none."""
    raise NotImplementedError(f"a stage of {sizes}")


def no_pairs(target: Any, source: Any, _: Empty) -> None:
    """Stand for the pairs of moves that have none."""
    raise NotImplementedError(f"pairs of {source} in {target}")


def carry_out(
    move: Move,
    target: Any,
    source: Any,
    assign: Assign,
    empty: Empty = no_stage,
    pair: Pair = no_pairs,
) -> None:
    """Copy `source`, which has a stride of 0 along axes that are repeated, into `target`.

    A temporary in its place has one round along axes that are in columns.
    """
    match move:
        case Copy():
            assign(target, source)
        case Columns(axes):
            sizes, rounds = target.shape[-axes:], source.shape[-axes:]
            for index in product(*map(range, sizes)):
                column = (..., *index)
                first = column if rounds == sizes else (..., *map(mod, index, rounds))
                assign(target[column], source[first])
        case Pairs():
            pair(target, source, empty)
        case Loop(axis, step, body):
            before = (slice(None),) * axis
            for i in range(0, target.shape[axis], step):
                part = (*before, slice(i, i + step))
                carry_out(body, target[part], source[part], assign, empty, pair)
        case Stage(sizes, fill, spread):
            # The last block along an axis that is looped over may be smaller.
            part = tuple(map(slice, map(min, sizes, target.shape)))
            block = empty(sizes)[part]
            carry_out(fill, block, source[part], assign, empty, pair)
            if isinstance(spread, Columns):
                carry_out(spread, target, block, assign)
            else:
                _repeat(target, block, assign)


def _repeat(target: Any, block: Any, assign: Assign) -> None:
    """Copy a block to each of its repeats: whole rounds of an axis, then what is left of it."""
    for axis, (n, size) in enumerate(zip(target.shape, block.shape, strict=True)):
        if 1 < size < n:
            before, after = target.shape[:axis], target.shape[axis + 1 :]
            ahead = (slice(None),) * axis
            whole = n // size
            rounds = target[(*ahead, slice(whole * size))].reshape((*before, whole, size, *after))
            _repeat(rounds, block.reshape((*block.shape[:axis], 1, *block.shape[axis:])), assign)
            if n % size:
                rest = slice(whole * size, n)
                _repeat(target[(*ahead, rest)], block[(*ahead, slice(n % size))], assign)
            return
    assign(target, block)

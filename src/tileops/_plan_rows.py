"""Repetitions of rows, one axis after the other: where a library's own loops beat a plan.

`np.repeat` has a loop for words of each size, which is hard to beat while the result stays in the
cache; it has no `out=`, and one thread. The costs of plans are those of NumPy 2.4 on AMD EPYC
(Zen 4); those of repetitions lie between that and an Intel Xeon.
"""

from itertools import islice, permutations
from math import ceil, inf, prod

from tileops._moves import COPY, WORDS, Columns, Copy, Loop, Move, Nest, Pairs, Stage
from tileops._plan_host import LOOPED, NUMBERS, plan_host, threads_for, times_written

Chain = tuple[tuple[int, int], ...]
"""The rows and the repeats of each repetition, in the order in which they follow one another."""

# What a new result costs beside the bytes that are written, in such bytes (0.05 ns each)
_PER_ROW = 50
"""Each repeat of a row, or all repeats of one for which NumPy has a loop of its own."""
_PER_BROADCAST_ROW = 100
"""Each repeat of a row that is written by broadcasting."""
_SOURCE = 16 * 1024
"""A row up to this large stays in a core's innermost cache while it is repeated."""
_PER_FAR_BYTE = 0.2
"""Each byte that is written from a larger row."""
_PER_LARGE_BYTE = 4
"""Each byte of a temporary that is larger than `_CHAINED`."""
_PLAN = 400_000
"""Each plan that is one copy."""
_PER_ENTRY = 80
"""Each entry into the innermost loop of a copy; of words that are none of a number's, each word."""
_STEPS = 800_000
"""Each plan of several steps, which are carried out in Python."""
_PER_STEP = 60_000
"""Each round of a loop of such a plan."""
_PER_WORD = 8
"""Each word of up to 8 bytes that is written in a pass down the rows."""
_PER_ELEMENT = 40
"""The same for a computed word, or an element of any other width; and each one that is picked."""
_PER_SPREAD_BYTE = 0.4
"""Each byte that is written from a temporary."""
_PER_BYTE = 0.5
"""Each byte of the result, which two threads write in half the time."""
_ORDERS = 24
"""The most orders that are compared: all of four repetitions."""

# Bytes
_CHAINED = 768 * 1024
"""A temporary up to this large stays in a core's cache until it is repeated."""
_LARGEST = 3 * 1024 * 1024
"""No temporary of repetitions is larger: two of them are there at a time."""


def plan_rows(nest: Nest, is_new: bool) -> Chain:
    """Give rows and repeats, in the fastest order, if repeating rows is the fastest way; else ().

    Only for copies between contiguous memory. A library's own repetition writes all repeats of a
    row before the next row. Where several follow one another, all but the last make temporaries. If
    the result is not new, the last one repeats the outermost axis, and is written by broadcasting;
    one alone would be a copy, which a plan makes, and so is what other threads share.
    """
    steps, rows = [], 1
    for n, stride in zip(nest.sizes, nest.source, strict=True):
        if stride == 0:
            steps.append((rows, n))
        else:
            rows *= n
    if nest.copies > 1:
        repeats = steps.pop()[1] if nest.source[-1] == 0 else 1
        steps.append((rows, repeats * nest.copies))
    threads = min(2, threads_for(nest))
    if not steps or (not is_new and (len(steps) == 1 or threads > 1)):
        return ()
    inner_first = tuple(reversed(steps))
    orders = islice(permutations(range(len(steps))), _ORDERS if is_new else 1)
    chains = (_ordered(inner_first, order) for order in orders)
    cost, chain = min((_chain_cost(nest, chain, is_new), chain) for chain in chains)
    written = nest.nbytes * _PER_BYTE
    return chain if cost + written <= (_plan_cost(nest) + written) / threads else ()


def _ordered(steps: Chain, order: tuple[int, ...]) -> Chain:
    """Reorder repetitions: there are more rows where outer axes were repeated before."""
    chain = []
    for done, i in enumerate(order):
        rows, repeats = steps[i]
        outer = prod(steps[j][1] for j in order[:done] if j > i)
        chain.append((rows * outer, repeats))
    return tuple(chain)


def _chain_cost(nest: Nest, chain: Chain, is_new: bool) -> float:
    """Give what repetitions cost one after the other: infinity if a temporary is very large.

    The last of them is carried out by broadcasting if the result is not new.
    """
    cost, nbytes = 0.0, nest.nbytes // prod(repeats for _, repeats in chain)
    for i, (rows, repeats) in enumerate(chain):
        if i and nbytes > _LARGEST:
            return inf
        if i:
            cost += nbytes * (_PER_LARGE_BYTE if nbytes > _CHAINED else 1)
        row = nbytes // rows
        if i == len(chain) - 1 and not is_new:
            cost += rows * repeats * _PER_BROADCAST_ROW
        else:
            cost += rows * (1 if _has_loop(row) else repeats) * _PER_ROW
        nbytes *= repeats
        if row > _SOURCE:
            cost += nbytes * _PER_FAR_BYTE
    return cost


def _plan_cost(nest: Nest) -> float:
    """Give what a plan costs: what its steps do."""
    move = plan_host(nest)
    return (_PLAN if move is COPY else _STEPS) + _move_cost(nest, move)


def _move_cost(nest: Nest, move: Move) -> float:
    """Give what steps cost that carry a copy out."""
    words = prod(nest.sizes)
    match move:
        case Copy():
            if nest.word not in WORDS:
                return words * (_PER_ELEMENT if nest.word == LOOPED else _PER_ENTRY)
            innermost = next((n for n in reversed(nest.sizes) if n > 1), 1)
            return words / innermost * _PER_ENTRY
        case Columns(axes):
            entries = words / nest.sizes[-axes - 1]
            is_number = nest.word in (1, *NUMBERS) and nest.copies == 1
            return words * (_PER_WORD if is_number else _PER_ELEMENT) + entries * _PER_ENTRY
        case Pairs():
            return words / 2 * _PER_WORD
        case Loop(axis, step, body):
            return _move_cost(nest, body) + ceil(nest.sizes[axis] / step) * _PER_STEP
        case Stage(sizes, fill, spread):
            block = nest.block(sizes)
            blocks = nest.nbytes / (block.nbytes * times_written(nest, sizes))
            in_columns = isinstance(spread, Columns)
            spreading = words * _PER_WORD if in_columns else nest.nbytes * _PER_SPREAD_BYTE
            return blocks * _move_cost(block, fill) + spreading


def _has_loop(row: int) -> bool:
    """Whether NumPy repeats rows of so many bytes by a loop of their own."""
    return row in (*WORDS, LOOPED)

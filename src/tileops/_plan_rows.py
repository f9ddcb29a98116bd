"""Repetitions of rows, one axis after the other: where a library's own loops beat a plan.

`np.repeat` has a loop for words of each size, which is hard to beat while the result stays in the
cache; it has no `out=`, and one thread. The thresholds lie where NumPy 2.4 loses little on AMD EPYC
(Zen 4) and on an Intel Xeon.
"""

from itertools import islice, permutations
from math import inf, prod

from tileops._moves import COPY, WORDS, Nest
from tileops._plan_host import DIRECT, LOOPED, NUMBERS, column_axes, plan_host, threads_for

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
_PER_LARGE_BYTE = 3
"""Each byte of a temporary that is larger than `_CHAINED`."""
_PLAN = 300_000
"""Each plan that is one copy."""
_PER_ENTRY = 60
"""Each entry into the innermost loop of a plan that is one copy; of words that are none of a
number's, each word."""
_STEPS = 1_000_000
"""Each plan of several steps, which are carried out in Python."""
_PER_STEPPED_BYTE = 4
"""Each byte of such a plan."""
_ORDERS = 24
"""The most orders that are compared: all of four repetitions."""

# Bytes
_CHAINED = 768 * 1024
"""A temporary up to this large stays in a core's cache until it is repeated."""
_LARGEST = 3 * 1024 * 1024
"""No temporary of repetitions is larger: two of them are there at a time."""
_PASSED = 256 * 1024
"""Results at least this large: short repeats are written in passes."""
_LONG = 16
"""Rows of at least this much have fast loops, and so have rows whose repeats together take it."""

# Rows, words and repeats
_FEW_REPEATS = 3
"""Up to this many repeats of a word of up to 8 bytes are faster in passes than in a loop, too."""
_MANY_REPEATS = 512
"""Short rows that are repeated so often are faster in blocks."""
_IN_BLOCKS = 24 * 1024
"""The fewest repeats, of all rows together, for which they are."""
_COMPUTED_FROM = 2048
"""The fewest words whose repeats are faster to compute than to write by a library's loop."""


def plan_rows(nest: Nest, is_new: bool) -> Chain:
    """Give rows and repeats, in the fastest order, if repeating rows is the fastest way; else ().

    Only for copies between contiguous memory. A library's own repetition writes all repeats of a
    row before the next row. Where several follow one another, all but the last make temporaries. If
    the result is not new, the last one repeats the outermost axis, and is written by broadcasting;
    one alone would be a copy, which a plan makes.
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
    inner_first = tuple(reversed(steps))
    if len(steps) > 1:
        return _cheapest_chain(nest, inner_first, is_new)
    return inner_first if is_new and steps and _loop_is_fastest(nest, *steps[0]) else ()


def _cheapest_chain(nest: Nest, steps: Chain, is_new: bool) -> Chain:
    """Put repetitions into the order that costs least; () if a plan costs less.

    Inner ones first make rows long before they are repeated; those with few repeats first keep
    temporaries small.
    """
    if threads_for(nest) > 1:
        return ()
    orders = islice(permutations(range(len(steps))), _ORDERS if is_new else 1)
    chains = (_ordered(steps, order) for order in orders)
    cost, chain = min((_chain_cost(nest, chain, is_new), chain) for chain in chains)
    return chain if cost <= _plan_cost(nest) else ()


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
        row = nbytes // rows
        if i == len(chain) - 1 and not is_new:
            cost += nbytes + rows * repeats * _PER_BROADCAST_ROW
        else:
            cost += nbytes + rows * (1 if _has_loop(row) else repeats) * _PER_ROW
        if i and nbytes > _CHAINED:
            cost += nbytes * _PER_LARGE_BYTE
        nbytes *= repeats
        if row > _SOURCE:
            cost += nbytes * _PER_FAR_BYTE
    return cost


def _plan_cost(nest: Nest) -> float:
    """Give what a plan costs: by its loops if it is one copy, else by its bytes."""
    if plan_host(nest) is not COPY:
        return _STEPS + nest.nbytes * _PER_STEPPED_BYTE
    return _PLAN + prod(nest.sizes[:-1] if nest.word in WORDS else nest.sizes) * _PER_ENTRY


def _has_loop(row: int) -> bool:
    """Whether NumPy repeats rows of so many bytes by a loop of their own."""
    return row in (*WORDS, LOOPED)


def _loop_is_fastest(nest: Nest, rows: int, repeats: int) -> bool:
    """Whether a library's loop repeats rows fastest: of many short ones, words or passes may be."""
    row = nest.nbytes // (rows * repeats)
    if nest.copies > 1:
        if nest.source[-1] != 0:  # each word that is computed holds all repeats
            return rows < _COMPUTED_FROM
        return nest.nbytes < _PASSED or row * repeats >= _LONG
    is_fast = row >= (DIRECT if rows == 1 else _LONG) or _has_loop(row)
    if not is_fast and repeats >= _MANY_REPEATS:
        return rows * repeats < _IN_BLOCKS
    if is_fast and rows == 1:
        return threads_for(nest) == 1
    if row > nest.word:
        in_passes = nest.word < NUMBERS[-1]
    else:
        in_passes = nest.word <= NUMBERS[-1] and repeats <= _FEW_REPEATS
    return not (in_passes and nest.nbytes >= _PASSED and column_axes(nest))

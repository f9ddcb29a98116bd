"""The steps of a copy in the memory of a CPU: words, rows, and blocks that stay in its caches.

Measured with NumPy 2.4 on an AMD EPYC (Zen 4, 1 MiB of L2 for each core), a pass costs 0.3 ns for
each word of up to 8 bytes, 2 ns for each element of any other width, and 4 ns more for each entry
into the innermost loop. Adjacent repeats of a word cost next to nothing beyond that entry. The
thresholds lie where neither this processor nor an Intel Xeon loses much. docs/copies.md has what
decided them, and a table with steps of each kind.
"""

from functools import lru_cache
from math import ceil, gcd, isqrt, prod

from tileops._copies.steps import WORDS, Columns, Copy, Nest, Pairs, Slices, Stage, Steps, box
from tileops._plan import contiguous

NUMBERS = WORDS[1:]
"""The sizes, in bytes, of NumPy's integers. Repeats are computed as such numbers: a byte times
0x0101 is that byte twice."""

# Bytes
ALIGNMENT = 16
"""The alignment that allocators give to arrays."""
_LINE = 48
"""Rows up to this wide are fast in passes, one for each word of a row; passes over wider rows miss
the cache."""
_LINE_OF_NUMBERS = 24
"""The same for rows of numbers: passes over wider rows cost more than a loop for each row."""
DIRECT = 48
"""Runs of at least this length are copied as they are, because nothing is faster."""
_WIDE = 512
"""Shorter runs are combined until they have about this length."""
_ELEMENT = 2 * 1024
"""A run up to this long may be moved as one element.

Longer runs are cut into words, because NumPy holds Python's lock while it copies 500 elements or
fewer.
"""
_BLOCK = 512 * 1024
"""A block up to this size stays in a core's cache between two uses."""
_SHARE = 6
"""A temporary takes at most a sixth of its target, and at most a fifth together with temporaries
that are nested in it; that of `Pairs` at most two ninths."""

# Words, rows and repeats
_IN_LOOP = 13
"""Rows of at least this many words or elements are worth an inner loop each."""
_FEW_WORDS = 3
"""Rows of up to this many words are faster in passes, one for each word, than as one element."""
_ROWS = 1024
"""The fewest rows for which passes pay."""
_PAIRED = 65536
"""The fewest consecutive bytes whose repeats are worth writing in pairs."""
_OFTEN = 48
"""Some repeats of a row are put together first if it has at least this many, and if these are then
long enough to be copied as they are."""
MANY_RUNS = 8192
"""Copying fewer runs than this takes less time than the steps that would make the runs wider."""
_REPEATS_IN_PART = 32
"""A loop over repeats of short rows is cut only if each part has this many repeats to combine."""

# Threads
_PARTS = 4
"""Parts for each thread in a shared copy of long rows, so that no thread waits long for another."""


def host_words(nest: Nest, alignment: int) -> Nest:
    """Choose the words of a copy on a CPU; a short run of several words becomes one element."""
    run = nest.sizes[-1]
    if run in WORDS:
        return _widened(nest.in_words(run))
    word = gcd(NUMBERS[0], alignment, run, *nest.source[:-1], *nest.target[:-1])
    words = nest.in_words(word)
    in_passes = words.sizes[-1] <= _FEW_WORDS and column_axes(words)
    return words if run > _ELEMENT or in_passes else nest.in_words(run)


def _widened(nest: Nest) -> Nest:
    """Combine the repeats of a word into one wide word that holds all of them, or into several."""
    if len(nest.sizes) < 2 or nest.source[-1] != 0 or nest.target[-1] != nest.word:  # noqa: PLR2004
        return nest
    *sizes, repeats = nest.sizes
    source, target, row = nest.source[:-1], nest.target[:-1], repeats * nest.word
    word = gcd(row, *target, NUMBERS[0])
    if word != row:
        if word <= max(nest.word, 2) or row > _LINE_OF_NUMBERS:
            return nest  # passes would not pay
        sizes, source, target = [*sizes, row // word], (*source, 0), (*target, word)
    return Nest(tuple(sizes), source, target, word, word // nest.word)


@lru_cache(maxsize=4096)
def plan_steps(nest: Nest) -> Steps:
    """Plan the steps of a copy for a CPU with caches."""
    run = _run_bytes(nest)
    axes = column_axes(nest)
    if nest.repeats_per_word == 1 and run >= DIRECT:
        return Copy()  # the runs are wide enough as they are
    if nest.nbytes // run < MANY_RUNS:  # too few for combining them to pay
        return Columns(axes) if axes else Copy()
    return _plan_short(nest, run, axes)


def _plan_short(nest: Nest, run: int, axes: int) -> Steps:
    """Plan a copy of many short runs: by a temporary that is repeated as a whole, or in passes."""
    most = min(_BLOCK, nest.nbytes // _SHARE)
    block = box(_inside(nest), nest.word, most)
    if times_written(nest, block) == 1:
        block = box(_fewer_repeats(nest, run), nest.word, most)
    if times_written(nest, block) > 1:
        return _looped(nest, block, Stage(block, plan_steps(nest.block(block))))
    if not axes:
        return Copy()
    if _is_paired(nest):
        # Because a byte has three repeats or more, the temporary takes at most two thirds of the
        # block. An even number of rows makes each block begin with a pair.
        *outer, rows, n = box(nest.sizes, nest.word, 2 * most)
        block = (*outer, max(2, rows // 2 * 2), n)
        return _looped(nest, block, Pairs(prod(block) // n))
    return _looped(nest, box(nest.sizes, nest.word, _BLOCK), Columns(axes))


def _looped(nest: Nest, block: tuple[int, ...], body: Steps) -> Steps:
    """Loop over the blocks of the source, and leave its repeats to the body."""
    for axis in reversed(range(len(nest.sizes))):
        if nest.source[axis] != 0 and block[axis] < nest.sizes[axis]:
            body = Slices(axis, block[axis], body)
    return body


def _inside(nest: Nest) -> tuple[int, ...]:
    """Return the sizes of the nest, with 1 for each axis that repeats `_WIDE` bytes or more."""
    inside = contiguous(nest.sizes, nest.word)
    loops = zip(nest.sizes, nest.source, inside, strict=True)
    return tuple(1 if stride == 0 and nbytes >= _WIDE else n for n, stride, nbytes in loops)


def times_written(nest: Nest, block: tuple[int, ...]) -> int:
    """Return how often the target repeats a block."""
    loops = zip(nest.sizes, nest.source, block, strict=True)
    return prod(ceil(n / size) for n, stride, size in loops if stride == 0)


def _fewer_repeats(nest: Nest, run: int) -> tuple[int, ...]:
    """Return the sizes, with only some of the repeats of each row if it has many.

    It costs m elements to put m of n repeats together, and n / m entries into a loop to copy them
    to all n. An entry costs as much as two elements, so the sum is least where m * m is 2 * n. Of
    the numbers near that, the one is taken that divides n best, because what remains is copied
    apart.
    """
    axis = len(nest.sizes) - (1 if run == nest.word else 2)
    n = nest.sizes[axis]
    best = min(isqrt(2 * n), ceil(_WIDE / run))
    if nest.source[axis] != 0 or n < _OFTEN or best * run < DIRECT:
        return nest.sizes
    some = min(range(best - best // 4, best + best // 2 + 1), key=n.__mod__)
    return (*nest.sizes[:axis], some, *nest.sizes[axis + 1 :])


def _is_paired(nest: Nest) -> bool:
    """Whether many consecutive bytes are repeated, each three times or more in adjacent places."""
    if nest.sizes[-1] < 3 or nest.sizes[-2] < _PAIRED:  # noqa: PLR2004
        return False
    return nest.source[-2:] == (1, 0) and nest.target[-2:] == (nest.sizes[-1], 1)


def _run_bytes(nest: Nest) -> int:
    """Return how many bytes are written in one go: by the innermost loop, or as one element."""
    if nest.sizes and (nest.word in WORDS or nest.source[-1] == nest.word):
        return nest.sizes[-1] * nest.word
    return nest.word


def column_axes(nest: Nest) -> int:
    """Count the innermost axes that are better looped over outside the rows, in passes."""
    axes, passes = 0, 1
    line = _LINE_OF_NUMBERS if nest.word in NUMBERS else _LINE
    for n in reversed(nest.sizes[1:]):
        if n >= _IN_LOOP or passes * n * nest.word > line:
            break
        axes, passes = axes + 1, passes * n
    rows = nest.sizes[: len(nest.sizes) - axes]
    # All passes together may begin half as many loops as there are rows.
    return axes if axes and rows[-1] >= 2 * passes and prod(rows) >= _ROWS else 0


def cut(nest: Nest, threads: int) -> tuple[int, ...]:
    """Choose blocks for this many threads to share; `_threads.share` says who takes which.

    The outer loops are cut first, and at most one of them into parts of several rounds. So the
    parts of long rows are contiguous if the target is. Where rows are short, each thread has one
    part, and loops over a few repeats are left whole, because each part combines the rows anew.
    """
    is_long = _run_bytes(nest) >= DIRECT
    block, more = list(nest.sizes), threads * (_PARTS if is_long else 1)
    for axis, (n, source) in enumerate(zip(nest.sizes, nest.source, strict=True)):
        if more > 1 and (is_long or source != 0 or n >= _REPEATS_IN_PART * more):
            size = max(1, n // more) if is_long else ceil(n / more)
            if size >= _PAIRED:  # each part begins with a pair
                size += size % 2
            block[axis] = size
            more = ceil(more / n)
    return tuple(block)

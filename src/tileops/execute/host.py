"""Copies in the memory of the CPU, for every library whose arrays lie there."""

from collections import deque
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tileops import _threads
from tileops._moves import COPY, Move, Nest, contiguous, make_nest
from tileops._plan import Plan
from tileops._plan_host import cut, host_words, plan_host, rows_repeated, threads_for
from tileops.execute._memory import Memory, address_of, as_array, is_in_use, word_dtype
from tileops.execute.moving import Empty, carry_out

SMALL = 1024
"""The bytes of a result below which no plan saves the time that it takes."""
LEAST = 32 * 1024
"""The same for arrays that are not contiguous, and other libraries' memory."""

_LARGE = 2**20
"""The bytes of a result from which on any plan saves the time that it takes."""
_ROWS = 256
"""The rows from which on one for contiguous arrays does."""

FAR = 24 * 2**20
"""The bytes of memory in use from which on it is taken to be out of the cache."""


class Job(NamedTuple):
    """A copy that is planned: a nest, its parts at hand for small calls, and its steps."""

    sizes: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    read: Any
    """The words of the source as NumPy's dtype."""
    written: Any
    """Those of the target."""
    near: Move
    """The steps into memory in the cache."""
    far: Move
    """The steps into other memory."""
    is_alone: bool
    """Whether it is too small for other threads to help."""
    rows: tuple[int, int] | None
    """Rows and their repeats, if `ndarray.repeat` makes a new array as fast as any steps."""
    nest: Nest
    nbytes: int


def pays(plan: Plan) -> bool:
    """Whether the steps of a plan save more time than they take, between contiguous arrays."""
    return plan.nbytes > _ROWS * plan.row or plan.nbytes >= _LARGE


@lru_cache(maxsize=4096)
def make_job(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int, alignment: int
) -> Job:
    """Plan a copy between steps in bytes, and addresses that `alignment` divides."""
    nest = host_words(make_nest(plan, source, target, itemsize), alignment)
    moves = plan_host(nest, True), plan_host(nest, False)
    dtypes = word_dtype(nest.word // nest.copies), word_dtype(nest.word)
    is_alone = threads_for(nest, True, 2) == 1
    return Job(*nest[:3], *dtypes, *moves, is_alone, rows_repeated(nest), nest, nest.nbytes)


@lru_cache(maxsize=4096)
def make_contiguous_job(plan: Plan, rank: int, itemsize: int) -> Job:
    """Plan a copy of an array of some rank between arrays in the order of their elements."""
    source = contiguous(plan.source[len(plan.source) - rank :], itemsize)
    return make_job(plan, source, contiguous(plan.shape, itemsize), itemsize, 16)


def repetition(plan: Plan, x: Any) -> Any:
    """Repeat the rows of a NumPy array by NumPy's own means, along one axis, or give None.

    One that is not contiguous may be copied.
    """
    job = make_contiguous_job(plan, x.ndim, x.itemsize)
    if job.rows is None:
        return None
    rows, repeats = job.rows
    return x.reshape(rows, -1).repeat(repeats, 0).reshape(plan.shape)


def repeat_contiguous(plan: Plan, x: Any, out: Any) -> None:
    """Write the repetition of a NumPy array into another, both in the order of their elements."""
    job = make_contiguous_job(plan, x.ndim, x.itemsize)
    read = np.ndarray(job.sizes, job.read, x, 0, job.source)
    written = np.ndarray(job.sizes, job.written, out, 0, job.target)
    _share(job, read, written, None)


def repeat(
    plan: Plan,
    x: Any,
    source: Memory,
    out: Any,
    target: Memory,
    most_threads: int | None = None,
) -> None:
    """Write the repetition of `source`, the memory of `x`, into `target`, that of `out`."""
    alignment = (source.address | target.address) % 16 or 16
    job = make_job(plan, source.strides, target.strides, target.itemsize, alignment)
    words = job.read.itemsize, job.written.itemsize
    read = as_array(Memory(source.address, job.sizes, job.source, words[0]), x)
    written = as_array(Memory(target.address, job.sizes, job.target, words[1]), out, writable=True)
    _share(job, read, written, most_threads)


def _assign(written: Any, read: Any) -> None:
    """Copy words, or fill wider ones with them."""
    if written.itemsize != read.itemsize:
        np.multiply(read, _ONES[read.itemsize, written.itemsize], out=written)
    elif written.itemsize == _TAKEN and _is_repeated(written, read):
        _take(written, read[:, 0])
    else:
        written[...] = read


_TAKEN = 32
"""The bytes of elements for which NumPy has a loop where it picks them, and none where it copies.

So it copies them in three times the time.
"""
_INDICES = 8192


def _is_repeated(written: Any, read: Any) -> bool:
    """Whether elements that follow one another are repeated one by one, not often."""
    is_row = read.ndim == 2 and read.strides == (read.itemsize, 0)  # noqa: PLR2004
    return bool(is_row and read.shape[1] <= _INDICES and written.flags.c_contiguous)


def _take(written: Any, elements: Any) -> None:
    """Pick each element as often as it is repeated."""
    repeats = written.shape[1]
    indices = _indices(repeats)
    step = len(indices) // repeats
    for i in range(0, len(elements), step):
        part = elements[i : i + step]
        part.take(indices[: len(part) * repeats], 0, written[i : i + step].reshape(-1), "wrap")


@lru_cache(maxsize=16)
def _indices(repeats: int) -> Any:
    return np.repeat(np.arange(_INDICES // repeats), repeats)


def _pair(written: Any, read: Any, empty: Empty) -> None:
    """Write the repeats of each word, the last axis, in words that hold two of them.

    Of two words that follow each other, the first alone fills the front half of their repeats,
    the second the rear half; an odd number has both in the middle.
    """
    *outer, rows, n = written.shape
    pairs, half = rows // 2, n // 2
    words = read[..., : 2 * pairs, 0]
    dtype = word_dtype(2 * written.itemsize)
    wide = written[..., : 2 * pairs, :].reshape(*outer, -1).view(dtype).reshape(*outer, pairs, n)
    if not wide.flags.aligned:  # NumPy would be slower than byte by byte
        for i in range(n):
            np.copyto(written[..., i], read[..., i])
        return
    doubled = empty((*outer, 4 * pairs)).view(dtype)
    _assign(doubled, words)
    for i in range(half):
        np.copyto(wide[..., i], doubled[..., ::2])
        np.copyto(wide[..., n - 1 - i], doubled[..., 1::2])
    if n % 2:
        np.copyto(wide[..., half], words.view(dtype))
    if rows % 2:
        np.copyto(written[..., -1, :], read[..., -1, :])


_ONES = {
    (word, wider): np.array(sum(1 << 8 * i for i in range(0, wider, word)), f"u{wider}")
    for word in (1, 2, 4)
    for wider in (2, 4, 8)
    if word < wider
}
"""The number that, times a word, is a wider word full of it, in either order of bytes."""


def _carry_out(move: Move, written: Any, read: Any) -> None:
    """Carry out a copy, with temporaries that no other copy has at the time."""
    if move is COPY:
        _assign(written, read)
        return
    taken: dict[tuple[int, ...], Any] = {}

    def empty(sizes: tuple[int, ...]) -> Any:
        if sizes not in taken:
            taken[sizes] = _temporary(sizes, written)
        return taken[sizes]

    try:
        carry_out(move, written, read, _assign, empty, _pair)
    finally:
        _temporaries.extend(array.base for array in taken.values())


_temporaries: deque[Any] = deque(maxlen=16)
"""Memory of temporaries that no copy needs now, up to 1 MiB each: new pages would take longer."""

_PAGE = 4096
_APART = 2304
"""Bytes, modulo a page, between a temporary and what it is copied to.

Where their addresses agree in the last 12 bits, glibc copies backwards, at half the speed.
"""


def _temporary(sizes: tuple[int, ...], written: Any) -> Any:
    nbytes = prod(sizes) * written.itemsize + _PAGE
    try:
        memory = _temporaries.pop()
    except IndexError:
        memory = None
    if memory is None or memory.size < nbytes:
        memory = np.empty(nbytes, np.uint8)
    apart = address_of(written) - address_of(memory) + _APART
    return np.ndarray(sizes, written.dtype, memory, apart % _PAGE)


def _share(job: Job, read: Any, written: Any, most_threads: int | None) -> None:
    """Carry out a copy, with other threads if it is large."""
    nest = job.nest
    if job.is_alone and job.nbytes < FAR:
        _carry_out(job.near, written, read)
        return
    is_near = nest.nbytes < FAR or not is_in_use(written)

    def run(part: tuple[Any, ...]) -> None:
        there = written[part]
        _carry_out(plan_host(nest._replace(sizes=there.shape), is_near), there, read[part])

    available = 1 if job.is_alone else _threads.available(most_threads)
    threads = threads_for(nest, is_near, available)
    if threads == 1:
        _carry_out(job.near if is_near else job.far, written, read)
        return
    loops = zip(nest.sizes, cut(nest, threads, is_near), strict=True)
    slices = ([slice(i, i + step) for i in range(0, n, step)] for n, step in loops)
    _threads.share(run, product(*slices), threads)

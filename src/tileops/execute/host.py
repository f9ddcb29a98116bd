"""Copies in the memory of the CPU, for every library whose arrays lie there."""

from collections import deque
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tileops import _threads
from tileops._moves import COPY, Move, Nest, broadcast_nest, contiguous, make_nest
from tileops._plan import Plan
from tileops._plan_host import cut, host_words, plan_host, rows_repeated, threads_for
from tileops.execute._memory import Memory, address_of, as_array, is_in_use, word_dtype
from tileops.execute.moving import Means, carry_out

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
    nest: Nest
    nbytes: int
    rows: tuple[tuple[int, int], ...] = ()
    """Rows and repeats, if `ndarray.repeat` is as fast as any steps, between contiguous arrays."""


def pays(plan: Plan) -> bool:
    """Whether the steps of a plan save more time than they take, between contiguous arrays."""
    return plan.nbytes > _ROWS * plan.row or plan.nbytes >= _LARGE


@lru_cache(maxsize=4096)
def make_job(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...], itemsize: int, alignment: int
) -> Job:
    """Plan a repetition between steps in bytes, and addresses that `alignment` divides."""
    return plan_job(make_nest(plan, source, target, itemsize), alignment)


@lru_cache(maxsize=4096)
def plan_job(nest: Nest, alignment: int) -> Job:
    """Plan a copy byte by byte, between addresses that `alignment` divides."""
    nest = host_words(nest, alignment)
    moves = plan_host(nest, True), plan_host(nest, False)
    dtypes = word_dtype(nest.word // nest.copies), word_dtype(nest.word)
    is_alone = threads_for(nest, True, 2) == 1
    return Job(*nest[:3], *dtypes, *moves, is_alone, nest, nest.nbytes)


@lru_cache(maxsize=4096)
def make_contiguous_job(plan: Plan, rank: int, itemsize: int) -> Job:
    """Plan a copy of an array of some rank between arrays in the order of their elements."""
    source = contiguous(plan.source[len(plan.source) - rank :], itemsize)
    job = make_job(plan, source, contiguous(plan.shape, itemsize), itemsize, 16)
    return job._replace(rows=rows_repeated(job.nest))


def repetition(plan: Plan, x: Any) -> Any:
    """Repeat the rows of a NumPy array by NumPy's own means, or give None.

    One that is not contiguous is copied.
    """
    job = make_contiguous_job(plan, x.ndim, x.itemsize)
    return _repeated(x, job.rows).reshape(plan.shape) if job.rows else None


def _repeated(x: Any, steps: tuple[tuple[int, int], ...]) -> Any:
    flags = x.flags
    is_read = flags.carray or not flags.c_contiguous
    words = x if is_read and not x.dtype.names else _bytes(x)
    for rows, repeats in steps:
        words = words.reshape(rows, -1).repeat(repeats, 0)
    return words if words.dtype == x.dtype else words.reshape(-1).view(x.dtype)


def _bytes(x: Any) -> Any:
    """Give an array's bytes, padding included, as what `ndarray.repeat` reads.

    It would copy what is read-only or misaligned, and records field by field.
    """
    words = np.ascontiguousarray(x.view(f"V{x.itemsize}"))
    return as_array(Memory(address_of(words), (words.nbytes,), (1,), 1), words, writable=True)


def repeat_contiguous(plan: Plan, x: Any, out: Any) -> None:
    """Write the repetition of a NumPy array into another, both in the order of their elements.

    Where `ndarray.repeat` is the fastest way, that has to be copied; it pays for several axes.
    """
    job = make_contiguous_job(plan, x.ndim, x.itemsize)
    if len(job.rows) > 1:
        rows, repeats = job.rows[-1]
        inside = _repeated(x, job.rows[:-1]).reshape(rows, 1, -1)
        out.reshape(rows, repeats, -1)[...] = inside
        return
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
    written, read = _words(job, source.address, target.address, x, out)
    _share(job, read, written, most_threads)


def _words(job: Job, source: int, target: int, x: Any, out: Any) -> tuple[Any, Any]:
    """Give the words that are written, from an address in `out` on, and read, from one in `x`."""
    read = as_array(Memory(source, job.sizes, job.source, job.read.itemsize), x)
    written = Memory(target, job.sizes, job.target, job.written.itemsize)
    return as_array(written, out, writable=True), read


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
    means = _NumPy(written)
    try:
        carry_out(move, written, read, means)
    finally:
        means.give_back()


class _NumPy(Means):
    """What NumPy copies with into some target."""

    __slots__ = ("_taken", "_target")

    def __init__(self, target: Any) -> None:
        super().__init__(_assign)
        self._target = target
        self._taken: dict[tuple[int, ...], Any] = {}

    def empty(self, sizes: tuple[int, ...]) -> Any:
        if sizes not in self._taken:
            self._taken[sizes] = _temporary(sizes, self._target)
        return self._taken[sizes]

    def give_back(self) -> None:
        """Leave the temporaries to other copies."""
        _temporaries.extend(array.base for array in self._taken.values())

    def pair(self, target: Any, source: Any) -> None:
        """Write the repeats of each word, the last axis, in words that hold two of them.

        Of two words that follow each other, the first alone fills the front half of their repeats,
        the second the rear half; an odd number has both in the middle.
        """
        *outer, rows, n = target.shape
        pairs, half = rows // 2, n // 2
        words = source[..., : 2 * pairs, 0]
        dtype = word_dtype(2 * target.itemsize)
        wide = target[..., : 2 * pairs, :].reshape(*outer, -1).view(dtype)
        wide = wide.reshape(*outer, pairs, n)
        if not wide.flags.aligned:  # NumPy would be slower than byte by byte
            for i in range(n):
                np.copyto(target[..., i], source[..., i])
            return
        doubled = self.empty((*outer, 4 * pairs)).view(dtype)
        _assign(doubled, words)
        for i in range(half):
            np.copyto(wide[..., i], doubled[..., ::2])
            np.copyto(wide[..., n - 1 - i], doubled[..., 1::2])
        if n % 2:
            np.copyto(wide[..., half], words.view(dtype))
        if rows % 2:
            np.copyto(target[..., -1, :], source[..., -1, :])

    def again(self, target: Any, source: Any, *, is_near: bool) -> None:
        steps = source.strides, target.strides
        nest = broadcast_nest(source.shape, target.shape, *steps, target.itemsize)
        addresses = address_of(source), address_of(target)
        job = plan_job(nest, (addresses[0] | addresses[1]) % 16 or 16)
        written, read = _words(job, *addresses, source, target)
        _carry_out(job.near if is_near else job.far, written, read)


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
    is_near = job.nbytes < FAR or not is_in_use(written)

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

"""Copies in the memory of the CPU, for every library whose arrays lie there.

`new` makes a result by `ndarray.copy` if nothing is repeated and the result is not large, and by
`ndarray.repeat` if that is estimated to cost less, or if the result is small and one axis is
repeated or rows are short and many, or if one axis is repeated and the input holds rows of objects.
Otherwise it allocates a result, in huge pages if it is large, and calls `write`. `write` may first
copy an input that is not contiguous. It then makes a single assignment if the result is small or
holds references, or if one thread copies few rows or long ones. All other copies it carries out by
planned steps, and by several threads if that pays.
"""

import mmap
from math import prod
from typing import Any

import numpy as np

from tileops import _threads
from tileops._copies.chains import Chain, plan_chain
from tileops._copies.cpu import ALIGNMENT
from tileops._copies.job import (
    Job,
    Part,
    copy_plan,
    has_many_rows,
    has_temporaries,
    is_assigned,
    is_copied,
    make_contiguous_job,
    make_job,
    make_parts,
)
from tileops._plan import Plan
from tileops.execute._memory import (
    Memory,
    address_of,
    alignment_of,
    as_array,
    has_gaps,
    is_buffer,
    memory_of,
    word_dtype,
)
from tileops.execute.allocating import copy_apart, empty, empty_at_half_page
from tileops.execute.moving import Mover

_SMALL = 4 * 1024
"""Results of fewer bytes are copied by one assignment, because planning steps takes longer than
the steps save. New results with one repeated axis are made by `repeat`."""
_BY_AXES = 1024
"""New results of at least this many bytes are made by `repeat` along several axes as well, if they
have many short rows."""
LEAST = 32 * 1024
"""Results of fewer bytes in another library's memory are left to that library, because to ask for
addresses and to plan steps takes longer than the steps save."""

_READ_IN_PLACE = 32 * 1024
"""Inputs of at least this many bytes are repeated in place where `ndarray.repeat` would first copy
them."""

_LOCATED = 2**20
"""Results of at least this many bytes are copied in words that suit their addresses. For smaller
ones, asking for the addresses takes longer than the copy gains. Where nothing is repeated,
`ndarray.copy` makes the smaller ones, whatever the input's strides."""

_IN_HUGE_PAGES = 8 * 2**20
"""New results of at least this many bytes are placed in huge pages. For a smaller result, a page of
2 MiB would exceed the quarter by which a result may grow. If nothing is repeated and the input is
contiguous, `ndarray.copy` makes the smaller one."""

_REPEATED = 16 * 2**20
"""New results of fewer bytes may be made by NumPy's own `repeat`, which does not place its results
in huge pages."""

_LONG_ROW = 2 * 1024
"""Where rows of more bytes lie, it may matter to glibc."""
_AT_HALF_PAGE = 128 * 1024
"""New results and temporaries of at least this many bytes begin half a page into their memory if
long rows are written to them from a source of whole pages. Smaller ones seldom follow their
source, and would take longer."""

_FAR = 16 * 2**20
"""Results of at least this many bytes do not stay in the caches, and so it matters to libc where
their source lies."""
_SMALL_SOURCE = 128
"""A source is copied to where it lies well if its result has at least this many times its bytes."""


def new(x: Any, plan: Plan) -> Any:
    """Repeat a NumPy array into new memory, in the fastest known way."""
    dtype = x.dtype
    if plan.nbytes == 0 or dtype.itemsize == 0:
        # np.empty would make a string of zero width one character wide.
        return np.ndarray(plan.shape, dtype)
    if not plan.repeated and dtype.names is None:
        most = _IN_HUGE_PAGES if x.flags.c_contiguous else _LOCATED
        if plan.nbytes < most:
            return x.copy() if plan.is_identity else x.reshape(plan.shape).copy()
    if len(plan.repeated) == 1 and _is_by_rows(x, plan):
        return x.reshape(-1, plan.row_size).repeat(prod(plan.repeats), 0).reshape(plan.shape)
    nbytes = plan.nbytes
    is_short = _BY_AXES <= nbytes < _SMALL and dtype.names is None and has_many_rows(plan)
    if (is_short or _SMALL <= nbytes < _REPEATED) and not dtype.hasobject:
        chain = plan_chain(plan, x.itemsize, is_new=True)
        if chain and _may_reshape(x, plan):
            return _repeated(x, chain).reshape(plan.shape)
    is_large = plan.nbytes >= _AT_HALF_PAGE and not dtype.hasobject
    result = _placed(x, plan) if is_large else np.empty(plan.shape, dtype)
    if dtype.names is None or dtype.hasobject:
        write(x, plan, result)
    else:  # the bytes between fields as well
        write(_opaque(x), plan, _opaque(result))
    return result


def _may_reshape(x: Any, plan: Plan) -> bool:
    """Whether an input may be reshaped for `ndarray.repeat`, which may copy it."""
    return x.flags.c_contiguous or is_copied(plan, x.strides, x.itemsize)


def _is_by_rows(x: Any, plan: Plan) -> bool:
    """Whether one call of `ndarray.repeat` is known to make a new result with one repeated axis.

    It takes less time than an assignment for small results, and for rows of several objects. It is
    not used for other dtypes with references: before 2.2, NumPy repeats the memory of a
    `StringDType` without the strings that it refers to. Records it would copy field by field.
    """
    dtype = x.dtype
    if dtype.hasobject:
        return dtype.kind == "O" and plan.row_size > 1 and _may_reshape(x, plan)
    return plan.nbytes < _SMALL and dtype.names is None


def _placed(x: Any, plan: Plan) -> Any:
    """Allocate a large result where it is written fast.

    That is in huge pages, with up to a quarter more memory, temporaries included, or if it is not
    large enough for these, it may be half a page into its memory.
    """
    if plan.nbytes >= _IN_HUGE_PAGES:
        is_alone = x.flags.c_contiguous and not has_temporaries(plan, x.itemsize)
        nbytes = prod(plan.shape) * x.itemsize  # the plan of a masked array counts its mask as well
        return empty(plan.shape, x.dtype, nbytes // (4 if is_alone else 8))
    if _is_at_half_page(x.nbytes, plan.row_size * x.itemsize):
        return empty_at_half_page(plan.shape, x.dtype)
    return np.empty(plan.shape, x.dtype)


def write(x: Any, plan: Plan, out: Any, most_threads: int | None = None) -> None:
    """Write the repetition of a NumPy array into another array, in the fastest known way."""
    if plan.nbytes == 0:  # NumPy would go through elements of zero bytes one by one
        return
    dtype = x.dtype
    are_records = dtype.names is not None
    # An assignment leaves what lies in the gaps of `out` as it is.
    as_bytes = not (dtype.hasobject or (are_records and has_gaps(dtype)))
    if as_bytes and are_records:
        x, out = _opaque(x), _opaque(out)
    if as_bytes and plan.nbytes >= _SMALL:
        if not x.flags.c_contiguous and is_copied(plan, x.strides, x.itemsize):
            x = _contiguous(x, most_threads)
        if not is_assigned(plan, x.strides, out.strides, x.itemsize):
            if is_buffer(x) and out.flags.c_contiguous:
                _write_contiguous(x, plan, out, most_threads)
            else:
                _write_strided(plan, memory_of(x), memory_of(out), most_threads)
            return
    out.reshape(plan.spread)[...] = x.reshape(plan.split)


def _opaque(x: Any) -> Any:
    """View an array's elements as bytes, because NumPy would copy records field by field."""
    return x.view(f"V{x.itemsize}")


def _contiguous(x: Any, most_threads: int | None) -> Any:
    """Copy an array to contiguous memory, with threads if it is large."""
    copy = np.empty(x.shape, x.dtype)
    write(x, copy_plan(x.shape, x.itemsize), copy, most_threads)
    return copy


def _repeated(x: Any, chain: Chain) -> Any:
    """Carry out repetitions of rows, each into new memory."""
    flags = x.flags
    is_small = x.nbytes < _READ_IN_PLACE
    is_read = is_small or not flags.c_contiguous or (is_buffer(x) and flags.carray)
    words = x if is_read and x.dtype.names is None else _bytes(x)
    for rows, repeats in chain:
        nbytes = words.nbytes
        if nbytes * repeats >= _AT_HALF_PAGE and _is_at_half_page(nbytes, nbytes // rows):
            words = words.reshape(rows, 1, -1)
            shape = (rows, repeats, words.shape[2])
            target = empty_at_half_page(shape, words.dtype)
            target[...] = words
            words = target
        else:
            words = words.reshape(rows, -1).repeat(repeats, 0)
    return words if words.dtype == x.dtype else words.reshape(-1).view(x.dtype)


def _is_at_half_page(source: int, row: int) -> bool:
    """Whether a result begins half a page into its memory, for so many bytes of source and row."""
    return row > _LONG_ROW and source % mmap.PAGESIZE == 0


def _bytes(x: Any) -> Any:
    """Return an array's bytes, padding included, in a form that `ndarray.repeat` reads in place.

    `ndarray.repeat` would first copy an array that is read-only or misaligned (a small one in less
    time than this takes), and would copy records field by field.
    """
    words = np.ascontiguousarray(_opaque(x))
    return as_array(Memory(address_of(words), (words.nbytes,), (1,), 1, words), writable=True)


def _write_contiguous(x: Any, plan: Plan, out: Any, most_threads: int | None) -> None:
    """Write between contiguous arrays.

    `ndarray.repeat` has no `out=`, so its result has to be copied. It therefore repeats the inner
    axes only, and only where several axes are repeated.
    """
    if plan.nbytes >= max(_FAR, _SMALL_SOURCE * x.nbytes):
        x = copy_apart(x, out)
    is_large = plan.nbytes >= _LOCATED
    alignment = alignment_of(address_of(x), address_of(out)) if is_large else ALIGNMENT
    job = make_contiguous_job(plan, x.itemsize, alignment)
    if job.chain:
        rows, repeats = job.chain[-1]
        inside = _repeated(x, job.chain[:-1]).reshape(rows, 1, -1)
        out.reshape(rows, repeats, -1)[...] = inside
        return
    nest = job.nest
    written = np.ndarray(nest.sizes, word_dtype(nest.word), out, 0, nest.target)
    read = np.ndarray(nest.sizes, word_dtype(nest.source_word), x, 0, nest.source)
    _share(job, written, read, most_threads)


def _write_strided(plan: Plan, source: Memory, target: Memory, most_threads: int | None) -> None:
    """Write between arrays of any strides."""
    alignment = alignment_of(source.address, target.address)
    job = make_job(plan, source.strides, target.strides, target.itemsize, alignment)
    nest = job.nest
    read = Memory(source.address, nest.sizes, nest.source, nest.source_word, source.owner)
    written = Memory(target.address, nest.sizes, nest.target, nest.word, target.owner)
    _share(job, as_array(written, writable=True), as_array(read), most_threads)


def _share(job: Job, written: Any, read: Any, most_threads: int | None) -> None:
    """Carry out a planned copy, with other threads if it is large."""
    threads = 1 if job.threads == 1 else min(job.threads, _threads.available(most_threads))
    if threads == 1:
        Mover().carry_out(job.steps, written, read)
        return

    def carry_part(part: Part) -> None:
        Mover().carry_out(part.steps, written[part.slices], read[part.slices])

    _threads.share(carry_part, make_parts(job.nest, threads), threads)

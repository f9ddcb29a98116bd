"""New memory for NumPy's arrays: results in huge pages, and temporaries where libc is fast."""

import ctypes
import mmap
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tileops._copies import machine
from tileops._copies.places import PAGE, offset_apart
from tileops.execute._memory import address_of

HUGE = 4 * 2**20
"""The fewest bytes for which huge pages are requested, the same as in NumPy."""

_USED_AGAIN = 32 * 2**20
"""Below this many bytes glibc may reuse freed memory instead of asking the kernel for new memory:
its threshold grows to this at most (`DEFAULT_MMAP_THRESHOLD_MAX`, on 64 bits)."""


def empty(shape: tuple[int, ...], dtype: Any, place: int, most_room: int) -> Any:
    """Allocate an array in huge pages, if they take no more than `most_room` additional bytes.

    An ordinary allocation has its first and last bytes in small pages, up to 511 in all, which the
    kernel clears and maps one by one. For 32 MiB that takes a third of the time, for 8 MiB half. If
    there is room for only one additional huge page, the last bytes stay in small pages.

    The array begins in the small page before a huge page, as far into it as the address `place` is
    into its own page, rounded up to 16 bytes.
    """
    page, nbytes = machine.huge_page(), prod(shape) * dtype.itemsize
    if page:
        room = page + -nbytes % page
        if room > most_room:
            room = page
        if room <= most_room and not nbytes < _USED_AGAIN <= nbytes + room:
            # If this fails, the attempt below may succeed, or names the size of the result alone.
            with suppress(MemoryError):
                memory = np.empty(nbytes + room, np.uint8)
                before = -(-place // 16) * 16 % mmap.PAGESIZE - mmap.PAGESIZE
                start = (before - address_of(memory)) % page
                return np.ndarray(shape, dtype, memory, start)
    return np.empty(shape, dtype)


def prefer_huge_pages(address: int, nbytes: int) -> None:
    """Ask the kernel for huge pages under new memory, as NumPy does for its own arrays.

    The kernel clears each page when it is first touched. With pages of 4 KiB that takes longer than
    the copy.
    """
    madvise = _madvise()
    if madvise is not None and nbytes >= HUGE:
        start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        madvise(start, address + nbytes - start, mmap.MADV_HUGEPAGE)


@cache
def _madvise() -> Any:
    """Return the C library's `madvise` on Linux, and None elsewhere."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise


def temporary(sizes: tuple[int, ...], target: Any) -> Any:
    """Return new memory for words of `target`, placed so that copies from it to there are fast."""
    memory = np.empty(prod(sizes) * target.itemsize + PAGE, np.uint8)
    offset = offset_apart(address_of(memory), address_of(target))
    return np.ndarray(sizes, target.dtype, memory, offset)

"""New memory: large results in huge pages, and small sources where they are read fast."""

import ctypes
import mmap
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tileops.execute._memory import address_of

HUGE = 4 * 2**20
"""The fewest bytes for which huge pages are requested, the same as in NumPy."""

_USED_AGAIN = 32 * 2**20
"""Below this many bytes glibc may reuse freed memory instead of asking the kernel for new memory:
its threshold grows to this at most (`DEFAULT_MMAP_THRESHOLD_MAX`, on 64 bits)."""

_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"
"""The folder in which Linux reports its settings of huge pages."""

_OFFSET = 16
"""How many bytes into a page the C library's large blocks begin, and with them large arrays."""

_APART = 2304
"""How far apart, in bytes modulo a page, a source and its target are best for glibc on AMD's
processors: by a multiple of 32, and by more than 256 either way."""


def empty(shape: tuple[int, ...], dtype: Any, most_room: int) -> Any:
    """Allocate an array in huge pages, if they take no more than `most_room` additional bytes.

    An ordinary allocation has its first and last bytes in small pages, up to 511 in all, which the
    kernel clears and maps one by one. For 32 MiB that takes a third of the time, for 8 MiB half. If
    there is room for only one additional huge page, the last bytes stay in small pages.

    The array begins in the small page before a huge page, where large arrays begin in their page:
    glibc copies long runs faster to a place that has the same offset in a page as the source.
    """
    page, nbytes = _huge_page(), prod(shape) * dtype.itemsize
    if page:
        room = page + -nbytes % page
        if room > most_room:
            room = page
        if room <= most_room and not nbytes < _USED_AGAIN <= nbytes + room:
            # If this fails, the attempt below may succeed, or names the size of the result alone.
            with suppress(MemoryError):
                memory = np.empty(nbytes + room, np.uint8)
                start = (_OFFSET - mmap.PAGESIZE - address_of(memory)) % page
                return np.ndarray(shape, dtype, memory, start)
    return np.empty(shape, dtype)


def empty_at_half_page(shape: tuple[int, ...], dtype: Any) -> Any:
    """Allocate an array that begins half a page into its memory.

    Memory that follows an array of whole pages begins 16 bytes after it, modulo a page. There glibc
    before 2.40 copies rows of more than 2 KiB 15 times as slowly on AMD, with `rep movsb`, which is
    slow where the target begins up to 15 or 31 bytes after the source, modulo a page.
    """
    start = mmap.PAGESIZE // 2
    memory = np.empty(start + prod(shape) * dtype.itemsize, np.uint8)
    return np.ndarray(shape, dtype, memory, start)


def copy_apart(x: Any, out: Any) -> Any:
    """Copy an array to where it is read fast while it is written to `out`."""
    memory = np.empty(x.nbytes + mmap.PAGESIZE, np.uint8)
    start = (address_of(out) + _APART - address_of(memory)) % mmap.PAGESIZE
    copy = np.ndarray(x.shape, x.dtype, memory, start)
    copy[...] = x
    return copy


@cache
def _huge_page() -> int:
    """Return the size in bytes of the huge pages that the kernel gives on request, 0 for none."""
    try:
        if "[never]" in _read("enabled"):
            return 0
        return int(_read("hpage_pmd_size"))
    except (OSError, ValueError, NameError):  # while Python shuts down, `open` has no name any more
        return 0


def _read(setting: str) -> str:
    """Read a setting of huge pages without pathlib, whose import takes 3 ms."""
    with open(f"{_HUGE_PAGES}/{setting}", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


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

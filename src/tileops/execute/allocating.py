"""New memory for NumPy's arrays: results in huge pages, and temporaries that are used again."""

import ctypes
import mmap
from collections import deque
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tileops import _machine
from tileops._places import PAGE, offset_apart
from tileops.execute._memory import address_of

HUGE = 4 * 2**20
"""The fewest bytes for which huge pages are asked for, here as in NumPy."""

_USED_AGAIN = 32 * 2**20
"""Below this many bytes glibc may reuse freed memory instead of asking the kernel for new: the most
to which its threshold grows (`DEFAULT_MMAP_THRESHOLD_MAX`, on 64 bits)."""

_temporaries: deque[Any] = deque(maxlen=16)
"""Memory of temporaries that no copy needs now, up to 1 MiB each: new pages would take longer."""


def empty(shape: tuple[int, ...], dtype: Any, place: int, most_room: int) -> Any:
    """Allocate an array in huge pages, if they take no more than `most_room` bytes beside it.

    Elsewhere its first and last bytes lie in small pages, 511 in all, which the kernel
    clears and maps one by one: of 32 MiB that is a third of the time, of 8 MiB half. The last ones
    do if there is room for one huge page alone.

    It begins in the small page before a huge one, as far into it as the address `place` is into its
    own, rounded up to 16 bytes.
    """
    page, nbytes = _machine.huge_page(), prod(shape) * dtype.itemsize
    if page:
        room = page + -nbytes % page
        if room > most_room:
            room = page
        if room <= most_room and not nbytes < _USED_AGAIN <= nbytes + room:
            with suppress(MemoryError):  # the error of the result alone is the one to read
                memory = np.empty(nbytes + room, np.uint8)
                before = -(-place // 16) * 16 % mmap.PAGESIZE - mmap.PAGESIZE
                start = (before - address_of(memory)) % page
                return np.ndarray(shape, dtype, memory, start)
    return np.empty(shape, dtype)


def prefer_huge_pages(address: int, nbytes: int) -> None:
    """Ask the kernel for huge pages under new memory, as NumPy does for its own.

    Each page is cleared when it is first touched; of 4 KiB, that takes longer than the copy.
    """
    madvise = _madvise()
    if madvise is not None and nbytes >= HUGE:
        start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        madvise(start, address + nbytes - start, mmap.MADV_HUGEPAGE)


@cache
def _madvise() -> Any:
    """Return the C library's function where it is Linux's."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise


def temporary(sizes: tuple[int, ...], target: Any) -> Any:
    """Return words of memory that no other copy has, at a place from which `target` is copied fast.

    When the copy is over, `give_back` leaves them to the next.
    """
    try:
        memory = _temporaries.pop()
    except IndexError:
        return new_apart(sizes, target)
    if memory.size < _room(sizes, target):  # it is dropped, so that all grow
        return new_apart(sizes, target)
    return _apart(memory, sizes, target)


def give_back(array: Any) -> None:
    """Leave the memory of a `temporary` to other copies."""
    _temporaries.append(array.base)


def new_apart(sizes: tuple[int, ...], target: Any) -> Any:
    """Return words of new memory, at a place from which `target` is copied fast."""
    return _apart(np.empty(_room(sizes, target), np.uint8), sizes, target)


def _room(sizes: tuple[int, ...], target: Any) -> int:
    """Return the bytes in which the words find such a place, wherever these begin."""
    return prod(sizes) * int(target.itemsize) + PAGE


def _apart(memory: Any, sizes: tuple[int, ...], target: Any) -> Any:
    offset = offset_apart(address_of(memory), address_of(target))
    return np.ndarray(sizes, target.dtype, memory, offset)

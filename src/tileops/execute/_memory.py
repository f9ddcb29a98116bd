"""Memory as addresses and strides: where the elements lie of an array of any library."""

import ctypes
import mmap
from contextlib import suppress
from functools import cache, lru_cache, reduce
from math import prod
from operator import or_
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

_NUMBERS = {1: "|u1", 2: "=u2", 4: "=u4", 8: "=u8", 16: "=c16"}

_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"
"""Where Linux tells of its huge pages."""

HUGE = 4 * 2**20
"""The fewest bytes for which huge pages are asked for, here as in NumPy."""

_USED_AGAIN = 32 * 2**20
"""Below so many bytes glibc may reuse freed memory instead of asking the kernel for new."""


class Memory(NamedTuple):
    """Where the elements of an array lie."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    itemsize: int
    owner: Any = None
    """The array, which is kept alive as long as its memory is in use."""


@lru_cache(maxsize=256)
def word_dtype(word: int) -> Any:
    """Give the dtype whose elements NumPy moves fastest: of numbers, where there are such."""
    return np.dtype(_NUMBERS.get(word, f"V{word}"))


def address_of(array: Any) -> int:
    """Give the address of a NumPy array's first element."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def memory_of(array: Any) -> Memory:
    """Say where the elements of a NumPy array lie."""
    return Memory(address_of(array), array.shape, array.strides, array.itemsize, array)


def alignment_of(*addresses: int) -> int:
    """Give the power of two, 16 at most, that divides all addresses."""
    bits = reduce(or_, addresses, 16)
    return bits & -bits


def as_array(memory: Memory, *, writable: bool = False) -> Any:
    """Give memory as words in an array, which keeps its owner alive.

    Nothing is read here: without reads and writes, the memory can be any device's.
    """
    interface = {
        "version": 3,
        "data": (memory.address, not writable),
        "typestr": word_dtype(memory.itemsize).str,
        "shape": memory.shape,
        "strides": memory.strides,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=memory.owner))


def empty(shape: tuple[int, ...], dtype: Any, source: int) -> Any:
    """Allocate an array for a copy from an address, in huge pages where they add an eighth at most.

    Elsewhere its first and last bytes lie in small pages, 511 in all, which the kernel
    clears and maps one by one: of 32 MiB that is a third of the time.

    It begins a page before a huge one, at the place in its page that the source has in its own, to
    16 bytes: then glibc copies long runs by vectors, into lines that the kernel has just cleared.
    """
    page, nbytes = _huge_page(), prod(shape) * dtype.itemsize
    if page:
        room = page + -nbytes % page
        if room <= nbytes // 8 and not nbytes < _USED_AGAIN <= nbytes + room:
            with suppress(MemoryError):  # the error of the result alone is the one to read
                memory = np.empty(nbytes + room, np.uint8)
                place = -(-source // 16) * 16 % mmap.PAGESIZE - mmap.PAGESIZE
                start = (place - address_of(memory)) % page
                return np.ndarray(shape, dtype, memory, start)
    return np.empty(shape, dtype)


@cache
def _huge_page() -> int:
    """Give the bytes of the huge pages that the kernel gives on request, 0 for none."""
    try:
        if "[never]" in read_text(f"{_HUGE_PAGES}/enabled"):
            return 0
        return int(read_text(f"{_HUGE_PAGES}/hpage_pmd_size"))
    except (OSError, ValueError):
        return 0


def read_text(path: str) -> str:
    """Read what the kernel tells in a file; without pathlib, whose import takes 3 ms."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


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
    """Give the C library's function where it is Linux's."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise

"""Memory as addresses and strides: where the elements of any library's array lie."""

from functools import lru_cache
from math import gcd
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

_NUMBERS = {1: "|u1", 2: "=u2", 4: "=u4", 8: "=u8", 16: "=c16"}


class Memory(NamedTuple):
    """Where the elements of an array lie."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """The strides, in bytes."""
    itemsize: int
    owner: Any
    """The array, which is kept alive as long as its memory is in use."""


@lru_cache(maxsize=256)
def word_dtype(word: int) -> Any:
    """Return the dtype in which NumPy moves words fastest: of numbers, if any have this size."""
    return np.dtype(_NUMBERS.get(word, f"V{word}"))


@lru_cache(maxsize=256)
def has_gaps(dtype: Any) -> bool:
    """Whether records have bytes of no field: padding, or fields that a view of records leaves out.

    In an array that somebody else made, such bytes may hold the data of another array.
    """
    if dtype.subdtype is not None:
        return has_gaps(dtype.base)
    if dtype.names is None:
        return False
    end = 0
    for field, start in sorted((dtype.fields[n][:2] for n in dtype.names), key=itemgetter(1)):
        if start > end or has_gaps(field):
            return True
        end = max(end, start + field.itemsize)
    return end < dtype.itemsize  # type: ignore[no-any-return]


def is_buffer(array: Any) -> bool:
    """Whether an array can be the buffer of another one that is only read.

    It has to be contiguous. And of the first write to a result of `np.broadcast_arrays`, which the
    highest of its flags marks, NumPy warns: a buffer would count as that write.
    """
    flags = array.flags
    return flags.c_contiguous and flags.num >= 0  # type: ignore[no-any-return]


def address_of(array: Any) -> int:
    """Return the address of a NumPy array's first element."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def memory_of(array: Any) -> Memory:
    """Say where the elements of a NumPy array lie."""
    return Memory(address_of(array), array.shape, array.strides, array.itemsize, array)


def alignment_of(*addresses: int) -> int:
    """Return the power of two, up to the widest word's 16 bytes, that divides all addresses."""
    return gcd(16, *addresses)


def as_array(memory: Memory, *, writable: bool = False) -> Any:
    """Return memory as an array of words, which keeps the owner alive.

    The memory may belong to any device as long as nobody reads or writes it through the array.
    """
    interface = {
        "version": 3,
        "data": (memory.address, not writable),
        "typestr": word_dtype(memory.itemsize).str,
        "shape": memory.shape,
        "strides": memory.strides,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=memory.owner))

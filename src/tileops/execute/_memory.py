"""Memory as addresses and steps: where the elements of an array lie, whichever library's it is."""

from typing import Any, NamedTuple

import numpy as np

_NUMBERS = {1: "|u1", 2: "=u2", 4: "=u4", 8: "=u8", 16: "=c16"}


class Memory(NamedTuple):
    """Where the elements of an array lie."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    itemsize: int


def word_dtype(word: int) -> Any:
    """Give the dtype whose elements NumPy moves fastest: of numbers, where there are such."""
    return np.dtype(_NUMBERS.get(word, f"V{word}"))


def as_array(memory: Memory, owner: Any = None, *, writable: bool = False) -> Any:
    """Give memory as words in an array, which keeps its owner alive.

    Nothing is read here: without reads and writes, the memory can be any device's.
    """
    return np.asarray(_Interface(memory, owner, writable))


class _Interface:
    def __init__(self, memory: Memory, owner: Any, writable: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (memory.address, not writable),
            "typestr": word_dtype(memory.itemsize).str,
            "shape": memory.shape,
            "strides": memory.strides,
        }

"""How words are copied and from where: by assignments, or in faster ways where libc is slow."""

from collections.abc import Callable
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from tileops._copies import cpu, places
from tileops._copies.places import Rows
from tileops._copies.steps import blocks, box
from tileops.execute._memory import Memory, address_of, as_array, word_dtype
from tileops.execute.allocating import temporary

Assign = Callable[[Any, Any], None]
"""A function that copies words to a target from a source that broadcasts to it."""

_ONES = {
    (word, wider): np.array(sum(1 << 8 * i for i in range(0, wider, word)), f"u{wider}")
    for word in (1, 2, 4)
    for wider in (2, 4, 8)
    if word < wider
}
"""The number that turns a word, by multiplication, into a wider word filled with its repeats. The
product is right in either order of bytes."""

_PICKED = 4096
"""The fewest elements of `LOOPED` bytes that are picked, because `take` needs 13 µs to begin."""

_PIECES = range(256, 127, -1)
"""The sizes, in bytes, of the pieces in which `take` picks rows where libc is slow, the best first.

At some addresses libc takes twice the time or more, unless a cache holds the target. Pieces are
copied fast at every address, because glibc loads a whole piece before it stores it.
"""
_RELOCATED = 2**20
"""The most bytes of a source that is copied to a place where libc is fast."""
_REPEATED = 32
"""The fewest repeats for which a source is copied to such a place: copying it takes about as long
as writing one repeat."""
_FAR = 16 * 2**20
"""Targets of at least this many bytes do not stay in the caches."""
_INDICES = 16 * 1024
"""The most pieces that are picked at once."""


def choose_assignment(target: Any, source: Any) -> tuple[Assign, Any]:
    """Choose how words are copied and from where, once for all parts of a copy.

    If each part made this choice, threads would wait for each other. Each part decides only whether
    its rows are picked, and in which pieces.
    """
    if target.itemsize != source.itemsize or source.itemsize == cpu.LOOPED:
        return assign, source
    if not places.matter_to(_row(source)[0]):
        return np.copyto, source
    are_slow = places.are_slow if target.nbytes >= _FAR else places.are_slowest
    if not are_slow(_rows(target, source)):
        return np.copyto, source
    relocated = _relocated(target, source)
    return (assign_in_pieces, source) if relocated is None else (np.copyto, relocated)


def assign(target: Any, source: Any) -> None:
    """Copy words, or fill wider words with their repeats."""
    if target.itemsize != source.itemsize:
        np.multiply(source, _ONES[source.itemsize, target.itemsize], out=target)
    elif _are_looped(target, source):
        _pick(target, source, cpu.LOOPED)
    else:
        target[...] = source


def assign_in_pieces(target: Any, source: Any) -> None:
    """Copy words, in pieces where libc copies rows slowly."""
    piece = _piece(target, source)
    if piece:
        _pick(target, source, piece)
    else:
        np.copyto(target, source)


def _relocated(target: Any, source: Any) -> Any:
    """Copy a small source to where libc is fast; None if it is large or there is no such place."""
    once = source[tuple(slice(None if stride else 1) for stride in source.strides)]
    if once.nbytes > min(_RELOCATED, target.nbytes // _REPEATED):
        return None
    copy = temporary(once.shape, target)
    axes = zip(copy.strides, source.strides, strict=True)
    strides = tuple(written if read else 0 for written, read in axes)
    repeated = np.ndarray(source.shape, copy.dtype, copy, 0, strides)
    if places.are_slow(_rows(target, repeated)):
        return None
    np.copyto(copy, once)
    return repeated


def _piece(target: Any, source: Any) -> int:
    """Return the bytes of the pieces in which slow rows are picked; 0 for none."""
    if not places.are_slow(_rows(target, source)):
        return 0
    row, axes = _row(source)
    whole = gcd(row, *source.strides[:axes])
    piece = next((piece for piece in _PIECES if whole % piece == 0), 0)
    return piece if piece and _are_picked(target, source, piece) else 0


def _are_looped(target: Any, source: Any) -> bool:
    """Whether rows are short, and many elements are of the size that `take` has a loop for."""
    if source.itemsize != cpu.LOOPED or target.size < _PICKED or _row(source)[0] > cpu.DIRECT:
        return False
    return _are_picked(target, source, cpu.LOOPED)


def _are_picked(target: Any, source: Any, piece: int) -> bool:
    """Whether rows are repeated, and pieces of this many bytes divide each row and each stride."""
    row, axes = _row(source)
    strides = source.strides[:axes]
    is_whole = all(nbytes >= 0 and nbytes % piece == 0 for nbytes in (row, *strides))
    return bool(0 in strides and is_whole and target.flags.c_contiguous)


def _rows(target: Any, source: Any) -> Rows:
    """Describe the rows of a copy, which are the rows of its source."""
    row, axes = _row(source)
    distance = address_of(target) - address_of(source)
    return Rows(row, distance, target.strides[:axes], source.strides[:axes])


def _row(array: Any) -> tuple[int, int]:
    """Return the bytes of a row and the number of axes outside of it.

    A row is the last axis if that is contiguous, otherwise a single element.
    """
    if array.strides[-1:] == (array.itemsize,):
        return array.shape[-1] * array.itemsize, array.ndim - 1
    return array.itemsize, array.ndim


def _pick(target: Any, source: Any, piece: int) -> None:
    """Pick the pieces of each row as often as it is repeated."""
    row, axes = _row(source)
    sizes = source.shape[:axes]
    strides = tuple(stride // piece for stride in source.strides[:axes])
    for part in blocks(sizes, box(sizes, row, _INDICES * piece)):
        written, read = target[part], source[part]
        indices = _indices(read.shape[:axes], strides, row // piece)
        pieces = Memory(address_of(read), (int(indices[-1]) + 1,), (piece,), piece, read)
        as_array(pieces).take(indices, 0, written.reshape(-1).view(word_dtype(piece)), "wrap")


@lru_cache(maxsize=16)
def _indices(shape: tuple[int, ...], strides: tuple[int, ...], pieces: int) -> Any:
    """Return the index of each piece in the source; the last index is the highest."""
    axes = np.ogrid[tuple(map(slice, (*shape, pieces)))]
    indices = sum(axis * stride for axis, stride in zip(axes, (*strides, 1), strict=True))
    return np.ravel(indices)  # writable, because `take` would copy read-only indices

"""The steps of a planned copy, carried out on NumPy's views of the CPU's memory."""

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from tileops._moves import (
    COPY,
    Again,
    Columns,
    Copy,
    Loop,
    Move,
    Nest,
    Pairs,
    Stage,
    blocks,
    box,
    broadcast_nest,
)
from tileops._plan_host import ALIKE, host_words, plan_host
from tileops.execute._memory import (
    Memory,
    address_of,
    alignment_of,
    as_array,
    memory_of,
    word_dtype,
)

Assign = Callable[[Any, Any], None]
"""Copies words to a target from a source that broadcasts to it."""


def carry_out(move: Move, target: Any, source: Any, copy: Assign) -> None:
    """Copy `source`, which has a stride of 0 along axes that are repeated, into `target`.

    `copy` carries out a `Copy` among the steps, as `choose_assignment` gave it.
    """
    if move is COPY:
        copy(target, source)
        return
    mover = Mover(target, copy)
    try:
        mover.carry_out(move, target, source)
    finally:
        mover.give_back()


def as_words(nest: Nest, source: Memory, target: Memory) -> tuple[Any, Any]:
    """Give the words that are written, and those that are read."""
    word = nest.word // nest.copies
    read = Memory(source.address, nest.sizes, nest.source, word, source.owner)
    written = Memory(target.address, nest.sizes, nest.target, nest.word, target.owner)
    return as_array(written, writable=True), as_array(read)


def choose_assignment(target: Any, source: Any) -> tuple[Assign, Any]:
    """Choose how words are copied and from where, once for all parts of a copy.

    Were it chosen for each part, threads would wait for each other. Which pieces are picked is
    found for each part.
    """
    if target.itemsize != source.itemsize or source.itemsize == _TAKEN:
        return assign, source
    is_slow = _is_slow if target.nbytes >= _FAR else _is_very_slow
    if not is_slow(target, source):
        return np.copyto, source
    relocated = _relocated(target, source)
    return (assign_in_pieces, source) if relocated is None else (np.copyto, relocated)


def assign(target: Any, source: Any) -> None:
    """Copy words, or fill wider ones with them."""
    if target.itemsize != source.itemsize:
        np.multiply(source, _ONES[source.itemsize, target.itemsize], out=target)
    elif source.itemsize == _TAKEN and _are_picked(target, source, _TAKEN):
        _pick(target, source, _TAKEN)
    else:
        target[...] = source


def assign_in_pieces(target: Any, source: Any) -> None:
    """Copy words; rows that libc copies slowly in pieces."""
    piece = _piece(target, source)
    if piece:
        _pick(target, source, piece)
    else:
        np.copyto(target, source)


_ONES = {
    (word, wider): np.array(sum(1 << 8 * i for i in range(0, wider, word)), f"u{wider}")
    for word in (1, 2, 4)
    for wider in (2, 4, 8)
    if word < wider
}
"""The number that, times a word, is a wider word full of it, in either order of bytes."""

_PAGE = 4096

_TAKEN = 32
"""The bytes of elements that are picked by indices (`take`), in a third of a copy's time.

NumPy has a loop of their own for picking them, and none for copying them.
"""
_PIECES = range(256, 127, -1)
"""The bytes of pieces in which longer rows are picked, the best first, where libc is slow.

It is where some addresses are unlucky, and then takes twice the time or more, unless a cache holds
the target. No address is for pieces: glibc loads one as a whole before it stores it.
"""
_RELOCATED = 2**20
"""The most bytes of a source that is copied to where libc is fast."""
_REPEATED = 32
"""The fewest repeats of such a source: to copy it takes about as long as one of them."""
_FAR = 16 * 2**20
"""Targets of at least this many bytes do not stay in the caches."""
_BY_VECTORS = range(513, 2113)
"""The bytes of rows that glibc copies backwards where addresses agree."""
_AGREEING = 256
"""They do where the target is less than this ahead of the source, modulo a page."""
_BY_MICROCODE = range(2113, 2**20)
"""The bytes of rows that the processor copies (`rep movsb`), fast where they lie `ALIKE`."""
_CLOSE = 16
"""It takes ten times as long where the target is less than this ahead, modulo a page."""
_MANY = 512
"""Rows whose places in a page differ by this or more are there often enough for pieces to pay."""
_INDICES = 16 * 1024
"""The most pieces that are picked at once."""


def _relocated(target: Any, source: Any) -> Any:
    """Copy a small source to where libc is fast; None if it is large, or there is no such place."""
    once = source[tuple(slice(None if step else 1) for step in source.strides)]
    if once.nbytes > min(_RELOCATED, target.nbytes // _REPEATED):
        return None
    copy = _apart(np.empty(once.nbytes + _PAGE, np.uint8), once.shape, target)
    steps = zip(copy.strides, source.strides, strict=True)
    strides = tuple(written if read else 0 for written, read in steps)
    repeated = np.ndarray(source.shape, copy.dtype, copy, 0, strides)
    if _is_slow(target, repeated):
        return None
    np.copyto(copy, once)
    return repeated


def _piece(target: Any, source: Any) -> int:
    """Give the bytes of the pieces that are picked of rows that libc copies slowly; 0 for none."""
    if not _is_slow(target, source):
        return 0
    row, axes = _row(source)
    whole = gcd(row, *source.strides[:axes])
    piece = next((piece for piece in _PIECES if whole % piece == 0), 0)
    return piece if piece and _are_picked(target, source, piece) else 0


def _is_slow(target: Any, source: Any) -> bool:
    """Whether libc copies rows slowly, or some of them, for their length and place."""
    row, axes = _row(source)
    if row not in _BY_VECTORS and row not in _BY_MICROCODE:
        return False
    if row in _BY_VECTORS:
        return _ahead(target, source, axes)[0] < _AGREEING
    apart = address_of(target) - address_of(source)
    return gcd(ALIKE, apart, *target.strides[:axes], *source.strides[:axes]) != ALIKE


def _is_very_slow(target: Any, source: Any) -> bool:
    """Whether the processor takes ten times as long, in whichever cache the target is.

    It does where the target is 1 to 15 bytes ahead of the source, modulo a page, in many rows.
    """
    row, axes = _row(source)
    if row not in _BY_MICROCODE:
        return False
    ahead, step = _ahead(target, source, axes)
    return step >= _MANY and 0 < ahead < _CLOSE


def _ahead(target: Any, source: Any, axes: int) -> tuple[int, int]:
    """Give how far rows are ahead of their sources: modulo a step, and that step.

    It divides a page, and by multiples of it the distance differs from row to row.
    """
    steps = zip(target.strides[:axes], source.strides[:axes], strict=True)
    step = gcd(_PAGE, *(written - read for written, read in steps))
    return (address_of(target) - address_of(source)) % step, step


def _are_picked(target: Any, source: Any, piece: int) -> bool:
    """Whether rows are repeated, and pieces of so many bytes make them and all steps up."""
    row, axes = _row(source)
    steps = source.strides[:axes]
    is_whole = all(step >= 0 and step % piece == 0 for step in (row, *steps))
    return bool(0 in steps and is_whole and target.flags.c_contiguous)


def _row(array: Any) -> tuple[int, int]:
    """Give the bytes of a row, an element or some in contiguous memory, and the axes outside."""
    if array.strides[-1:] == (array.itemsize,):
        return array.shape[-1] * array.itemsize, array.ndim - 1
    return array.itemsize, array.ndim


def _pick(target: Any, source: Any, piece: int) -> None:
    """Pick the pieces of each row as often as it is repeated."""
    row, axes = _row(source)
    sizes = source.shape[:axes]
    steps = tuple(step // piece for step in source.strides[:axes])
    for part in blocks(sizes, box(sizes, row, _INDICES * piece)):
        written, read = target[part], source[part]
        indices = _indices(read.shape[:axes], steps, row // piece)
        pieces = Memory(address_of(read), (int(indices[-1]) + 1,), (piece,), piece, read)
        as_array(pieces).take(indices, 0, written.reshape(-1).view(word_dtype(piece)), "wrap")


@lru_cache(maxsize=16)
def _indices(shape: tuple[int, ...], steps: tuple[int, ...], pieces: int) -> Any:
    """Give the place of each piece in the source; that of the last is the highest."""
    axes = np.ogrid[tuple(map(slice, (*shape, pieces)))]
    places = sum(axis * step for axis, step in zip(axes, (*steps, 1), strict=True))
    return np.ravel(places)  # writable: `take` would copy it otherwise


class Mover:
    """Carries steps out, with temporaries that no other copy has at the time."""

    __slots__ = ("_copy", "_taken", "_target")

    assign = staticmethod(assign)

    def __init__(self, target: Any, copy: Assign) -> None:
        self._target = target
        self._copy = copy
        self._taken: dict[tuple[int, ...], Any] = {}

    def carry_out(self, move: Move, target: Any, source: Any) -> None:
        """Carry out the steps of a copy; `source` has the shape of `target`."""
        match move:
            case Copy():
                self._copy(target, source)
            case Columns(axes):
                for index in product(*map(range, target.shape[-axes:])):
                    column = (..., *index)
                    self.assign(target[column], source[column])
            case Pairs(words):
                self.pair(target, source, words)
            case Loop(axis, step, body):
                before = (slice(None),) * axis
                for i in range(0, target.shape[axis], step):
                    part = (*before, slice(i, i + step))
                    self.carry_out(body, target[part], source[part])
            case Stage():
                self._stage(move, target, source)

    def _stage(self, stage: Stage, target: Any, source: Any) -> None:
        # The last block along an axis that is looped over may be smaller.
        part = tuple(map(slice, map(min, stage.sizes, target.shape)))
        block = self.empty(stage.sizes)[part]
        self.carry_out(stage.fill, block, source[part])
        match stage.spread:
            case Columns():
                self.carry_out(stage.spread, target, np.broadcast_to(block, target.shape))
            case Again():
                self.again(target, block)
            case Copy():
                self._spread(target, block)

    def _spread(self, target: Any, block: Any) -> None:
        """Copy a block to each of its repeats: whole rounds of an axis, then what is left of it."""
        for axis, (n, size) in enumerate(zip(target.shape, block.shape, strict=True)):
            if 1 < size < n:
                before, after = target.shape[:axis], target.shape[axis + 1 :]
                ahead = (slice(None),) * axis
                whole = n // size
                rounds = target[(*ahead, slice(whole * size))]
                rounds = rounds.reshape((*before, whole, size, *after))
                self._spread(rounds, block.reshape((*block.shape[:axis], 1, *block.shape[axis:])))
                if n % size:
                    rest = slice(whole * size, n)
                    self._spread(target[(*ahead, rest)], block[(*ahead, slice(n % size))])
                return
        self.assign(target, block)

    def pair(self, target: Any, source: Any, most: int) -> None:
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
        doubled = self.empty((2 * most,)).view(dtype)[: words.size].reshape(words.shape)
        self.assign(doubled, words)
        for i in range(half):
            np.copyto(wide[..., i], doubled[..., ::2])
            np.copyto(wide[..., n - 1 - i], doubled[..., 1::2])
        if n % 2:
            np.copyto(wide[..., half], words.view(dtype))
        if rows % 2:
            np.copyto(target[..., -1, :], source[..., -1, :])

    def again(self, target: Any, source: Any) -> None:
        """Repeat a source that is contiguous now, by a plan of its own."""
        of, to = memory_of(source), memory_of(target)
        nest = broadcast_nest(of.shape, to.shape, of.strides, to.strides, to.itemsize)
        nest = host_words(nest, alignment_of(of.address, to.address))
        carry_out(plan_host(nest), *as_words(nest, of, to), assign)

    def empty(self, sizes: tuple[int, ...]) -> Any:
        """Give a temporary of the target's words."""
        if sizes not in self._taken:
            self._taken[sizes] = _temporary(sizes, self._target)
        return self._taken[sizes]

    def give_back(self) -> None:
        """Leave the temporaries to other copies."""
        _temporaries.extend(array.base for array in self._taken.values())


_temporaries: deque[Any] = deque(maxlen=16)
"""Memory of temporaries that no copy needs now, up to 1 MiB each: new pages would take longer."""

_APART = 2304
"""Bytes, modulo a page, between a temporary and what it is copied to, so that they never agree."""


def _temporary(sizes: tuple[int, ...], target: Any) -> Any:
    nbytes = prod(sizes) * target.itemsize + _PAGE
    try:
        memory = _temporaries.pop()
    except IndexError:
        memory = None
    if memory is None or memory.size < nbytes:
        memory = np.empty(nbytes, np.uint8)  # what is too small is dropped, so that all grow
    return _apart(memory, sizes, target)


def _apart(memory: Any, sizes: tuple[int, ...], target: Any) -> Any:
    """Give words in memory that has room for them and a page."""
    apart = address_of(target) - address_of(memory) + _APART
    return np.ndarray(sizes, target.dtype, memory, apart % _PAGE)

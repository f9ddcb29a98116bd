"""The steps of a planned copy, carried out on NumPy's views of the CPU's memory."""

from itertools import product
from typing import Any

import numpy as np

from tileops._copies.steps import Columns, Copy, Pairs, Slices, Stage, Steps
from tileops.execute._memory import word_dtype

_ONES = {
    (word, wider): np.array(sum(1 << 8 * i for i in range(0, wider, word)), f"u{wider}")
    for word in (1, 2, 4)
    for wider in (2, 4, 8)
    if word < wider
}
"""The number that turns a word, by multiplication, into a wider word filled with its repeats. The
product is right in either order of bytes."""


class Mover:
    """Carries out the steps of a copy, in temporaries of its own.

    tests/test_work.py overrides `assign`, `empty` and `pair` to count work instead of doing it.
    """

    __slots__ = ("_temporaries",)

    def __init__(self) -> None:
        self._temporaries: dict[tuple[int, ...], Any] = {}

    def carry_out(self, steps: Steps, target: Any, source: Any) -> None:
        """Copy `source` into `target` of the same shape; repeated axes have a stride of 0."""
        match steps:
            case Copy():
                self.assign(target, source)
            case Columns(axes):
                for index in product(*map(range, target.shape[-axes:])):
                    column = (..., *index)
                    self.assign(target[column], source[column])
            case Pairs(words):
                self.pair(target, source, words)
            case Slices(axis, width, body):
                before = (slice(None),) * axis
                for i in range(0, target.shape[axis], width):
                    part = (*before, slice(i, i + width))
                    self.carry_out(body, target[part], source[part])
            case Stage(sizes, fill):
                # The last block along an axis that is looped over may be smaller.
                part = tuple(map(slice, map(min, sizes, target.shape)))
                block = self.empty(sizes, target.dtype)[part]
                self.carry_out(fill, block, source[part])
                self._spread(target, block)

    def assign(self, target: Any, source: Any) -> None:
        """Copy words, or fill wider words with their repeats."""
        if target.itemsize == source.itemsize:
            target[...] = source
        else:
            np.multiply(source, _ONES[source.itemsize, target.itemsize], out=target)

    def _spread(self, target: Any, block: Any) -> None:
        """Copy a block to each of its repeats: along each axis whole rounds, then the remainder."""
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
        """Write the repeats of each word, along the last axis, in words that hold two of them.

        Two adjacent words are handled as a pair. Wide words filled with the first word make up the
        front half of the pair's repeats, and wide words filled with the second the rear half. If
        the number of repeats is odd, the wide word in the middle holds one of each.
        """
        *outer, rows, n = target.shape
        pairs, half = rows // 2, n // 2
        words = source[..., : 2 * pairs, 0]
        dtype = word_dtype(2 * target.itemsize)
        wide = target[..., : 2 * pairs, :].reshape(*outer, -1).view(dtype)
        wide = wide.reshape(*outer, pairs, n)
        if not wide.flags.aligned:  # NumPy would be slower than byte by byte
            self.carry_out(Columns(1), target, source)
            return
        doubled = self.empty((most,), dtype)[: words.size].reshape(words.shape)
        self.assign(doubled, words)
        for i in range(half):
            wide[..., i] = doubled[..., ::2]
            wide[..., n - 1 - i] = doubled[..., 1::2]
        if n % 2:
            wide[..., half] = words.view(dtype)
        if rows % 2:
            target[..., -1, :] = source[..., -1, :]

    def empty(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        """Return the temporary of these sizes, which all rounds of a loop write to.

        Temporaries of the same sizes have the same dtype: those of a `Stage` have the target's, and
        only `Pairs` asks for one with a single axis.
        """
        if sizes not in self._temporaries:
            self._temporaries[sizes] = np.empty(sizes, dtype)
        return self._temporaries[sizes]

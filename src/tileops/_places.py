"""Where libc copies rows slowly, for how their places lie to those of their sources. No arrays.

What is here is true of glibc 2.36 on processors of AMD; docs/copies.md has the measurements.
"""

from math import gcd
from typing import NamedTuple

from tileops import _machine

PAGE = 4096
"""The bytes of a page: places agree for libc where they do modulo this."""

ALIKE = 32
"""The processor copies long runs twice as fast to places that are a multiple of this away."""

_BY_VECTORS = range(513, 2113)
"""The bytes of rows that glibc copies backwards where addresses agree."""
_AGREEING = 256
"""They do where the target is less than this ahead of the source, modulo a page."""
_BY_MICROCODE = range(2113, 2**20)
"""The bytes of rows that the processor copies (`rep movsb`), fast where they lie `ALIKE`."""
CLOSE = 16
"""It takes ten times as long where the target is less than this ahead, modulo a page."""
_COARSE = 512
"""If that distance changes by multiples of at least this from row to row, enough rows are so close
for anything else to be faster."""
_APART = 2304
"""Bytes, modulo a page, between a temporary and what it is copied to, so that they never agree."""


class Rows(NamedTuple):
    """Rows that are copied, each to a place of its own."""

    nbytes: int
    """The bytes of each."""
    distance: int
    """How far the first is ahead of its source, in bytes."""
    target: tuple[int, ...]
    """The target's strides from row to row, in bytes."""
    source: tuple[int, ...]
    """The source's."""


def matter_to(row: int) -> bool:
    """Whether rows of this many bytes are copied slowly to some places.

    That is to be asked first: to look up places takes 3 µs. They are where glibc lets AMD's
    processors copy them; Intel's are as fast everywhere.
    """
    return _machine.is_amd() and (row in _BY_VECTORS or row in _BY_MICROCODE)


def are_slow(rows: Rows) -> bool:
    """Whether libc takes twice the time or more for some rows, unless a cache has the target."""
    if rows.nbytes in _BY_VECTORS:
        return _ahead(rows)[0] < _AGREEING
    alike = gcd(ALIKE, rows.distance, *rows.target, *rows.source) == ALIKE
    return rows.nbytes in _BY_MICROCODE and not alike


def are_slowest(rows: Rows) -> bool:
    """Whether the processor takes ten times as long, in whichever cache the target is.

    It does where the target is 1 to 15 bytes ahead of the source, modulo a page, in many rows.
    """
    ahead, step = _ahead(rows)
    return rows.nbytes in _BY_MICROCODE and step >= _COARSE and 0 < ahead < CLOSE


def _ahead(rows: Rows) -> tuple[int, int]:
    """Return how far rows are ahead of their sources: modulo a step, and that step.

    It divides a page, and by multiples of it the distance differs from row to row.
    """
    steps = zip(rows.target, rows.source, strict=True)
    step = gcd(PAGE, *(written - read for written, read in steps))
    return rows.distance % step, step


def place_for(row: int, source: int) -> int:
    """Return an address: memory as far into its page as that is a fast target of rows at `source`.

    In the source's own glibc copies long runs by vectors, into lines that the kernel has just
    cleared, and shorter ones backwards.
    """
    return source + _APART if row in _BY_VECTORS else source


def offset_apart(memory: int, target: int) -> int:
    """Return how far behind `memory` a temporary is to begin, so that its copy to `target` is fast.

    The offset is less than a `PAGE`.
    """
    return (target - memory + _APART) % PAGE

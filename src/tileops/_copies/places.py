"""When libc copies rows slowly because of where their target lies relative to their source.

This holds for glibc 2.36 on AMD's processors; docs/copies.md has the measurements.
"""

from math import gcd
from typing import NamedTuple

from tileops._copies import machine

PAGE = 4096
"""The bytes of a page. libc compares the addresses of source and target modulo this."""

_ALIKE = 32
"""The processor copies long runs twice as fast if the target lies a multiple of this many bytes
away from the source. Such runs *lie alike*."""

_BY_VECTORS = range(513, 2113)
"""The sizes, in bytes, of rows that glibc copies backwards where the addresses agree."""
_AGREEING = 256
"""The addresses agree if the target is less than this ahead of the source, modulo a page."""
_BY_MICROCODE = range(2113, 2**20)
"""The sizes, in bytes, of rows that the processor copies (`rep movsb`), fast if they lie alike."""
CLOSE = 16
"""The processor takes ten times as long if the target is ahead of the source by at least 1 byte and
less than this, modulo a page."""
_COARSE = 512
"""That distance changes from row to row by multiples of a step. If the step is at least this, so
many rows are that close (about one in eight, or more) that any other way of copying is faster."""
_APART = 2304
"""The bytes, modulo a page, from a target to a temporary, so that their addresses never agree."""


class Rows(NamedTuple):
    """Rows that are copied, each to a place of its own."""

    nbytes: int
    """The bytes of each row."""
    distance: int
    """How far the first row's target is ahead of its source, in bytes."""
    target: tuple[int, ...]
    """The target's strides from row to row, in bytes."""
    source: tuple[int, ...]
    """The source's strides from row to row, in bytes."""


def matter_to(row: int) -> bool:
    """Whether rows of this many bytes are copied slowly to some places.

    Callers ask this first, because looking up addresses takes 3 µs. Only AMD's processors have
    such places; Intel's copy at the same speed everywhere.
    """
    return machine.is_amd() and (row in _BY_VECTORS or row in _BY_MICROCODE)


def are_slow(rows: Rows) -> bool:
    """Whether libc takes at least twice the time for some rows, unless a cache holds the target."""
    if rows.nbytes in _BY_VECTORS:
        return _ahead(rows)[0] < _AGREEING
    alike = gcd(_ALIKE, rows.distance, *rows.target, *rows.source) == _ALIKE
    return rows.nbytes in _BY_MICROCODE and not alike


def are_slowest(rows: Rows) -> bool:
    """Whether the processor takes ten times as long, even if a cache holds the target.

    It does where the target is 1 to 15 bytes ahead of the source, modulo a page, in many rows.
    """
    ahead, step = _ahead(rows)
    return rows.nbytes in _BY_MICROCODE and step >= _COARSE and 0 < ahead < CLOSE


def _ahead(rows: Rows) -> tuple[int, int]:
    """Return how far targets are ahead of their sources, modulo a step, and that step.

    The step divides a page, and the distance changes from row to row by multiples of the step.
    """
    strides = zip(rows.target, rows.source, strict=True)
    step = gcd(PAGE, *(written - read for written, read in strides))
    return rows.distance % step, step


def fewest_alike(run: int) -> int:
    """Return the least number of runs of this many bytes after which a run lies like the first."""
    return _ALIKE // gcd(_ALIKE, run)


def place_for(row: int, source: int) -> int:
    """Return an address with the offset in a page at which rows at `source` have a fast target.

    At the source's own offset in a page, glibc copies long runs by vectors, into lines that the
    kernel has just cleared. It would copy shorter rows backwards there, so they get another offset.
    """
    return source + _APART if row in _BY_VECTORS else source


def offset_apart(memory: int, target: int) -> int:
    """Return how far after `memory` a temporary has to begin to be copied fast to `target`.

    The offset is less than a `PAGE`.
    """
    return (target - memory + _APART) % PAGE

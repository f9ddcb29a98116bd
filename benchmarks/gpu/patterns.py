"""Shapes and repeats with one open number, which sets the size of the result."""

import math
from typing import NamedTuple

Shape = tuple[int, ...]

N = -1
"""Stands in a pattern for the number that sets the size of the result."""


class Pattern(NamedTuple):
    """A shape and repeats, which may have one open number."""

    shape: Shape
    repeats: Shape

    def sized(self, elements: int, multiple: int = 1) -> "Pattern":
        """Put in the largest number for which the result has at most this many elements.

        A number of at least 16 is rounded down to a multiple of `multiple`. With 16, wide words
        divide many sizes.
        """
        others = math.prod(n for n in self.shape + self.repeats if n != N)
        number = max(1, elements // others)
        number -= number % multiple if number >= 16 else 0
        return Pattern(*(tuple(number if n == N else n for n in part) for part in self))

    @property
    def elements(self) -> int:
        """The number of elements of the result."""
        return math.prod(self.shape) * math.prod(self.repeats)

    @property
    def is_expand(self) -> bool:
        """Whether each repeated axis has size 1."""
        return all(n == 1 or r == 1 for n, r in zip(self.shape, self.repeats, strict=True))


PATTERNS = (
    Pattern((N,), (6,)),
    Pattern((3,), (N,)),
    Pattern((1,), (N,)),
    Pattern((N, 3), (1, 5)),
    Pattern((N, 1), (1, 3)),
    Pattern((N, 64), (1, 4)),
    Pattern((N, 7), (9, 1)),
    Pattern((N, 5), (2, 3)),
    Pattern((2, N, 333, 3), (1, 2, 3, 1)),
    Pattern((3, 1, N, 8), (1, 4, 1, 1)),
    Pattern((2, 3, N, 5, 1), (1, 2, 1, 3, 2)),
    Pattern((1, N, 1, 96), (5, 1, 7, 1)),
)
"""Short and long rows, with and without powers of two, repeated outside, inside, or both."""

SMALL = (
    Pattern((), ()),
    Pattern((5,), (4,)),
    Pattern((3, 4), (2, 3)),
    Pattern((1, 6), (4, 1)),
    Pattern((2, 1, 3), (1, 5, 2)),
)

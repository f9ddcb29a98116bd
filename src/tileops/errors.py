"""What a call can be refused for.

Each error is a :class:`TileOpsError` and also the builtin that Python uses for
its kind of mistake, so both ``except TileOpsError`` and ``except ValueError``
work. A text names the operator, the axis, the value, the rule and the remedy.
"""

import re

__all__ = [
    "DTypeError",
    "OutputError",
    "OutputTooLargeError",
    "RepeatsError",
    "RepeatsTypeError",
    "ShapeError",
    "ShapeTypeError",
    "TileOpsError",
    "UnsupportedError",
]


_LONGEST_WORD = 256
"""The most characters of a word in a text, such as the name of a node, a dtype or a device."""
_LONGEST_TEXT = 16 * 1024
"""The most characters of a text; where names hold spaces, their words may be short but many."""


class TileOpsError(Exception):
    """Any refusal of this package."""

    def __str__(self) -> str:
        """Return the text, with names in it cut short: they may be anybody's, and of any length."""
        # Not when the error is made: compilers trace that.
        text = super().__str__()
        if len(text) > _LONGEST_WORD:
            text = re.sub(r"\S+", lambda word: _shorten(word[0], _LONGEST_WORD), text)
        return _shorten(text, _LONGEST_TEXT)


def _shorten(text: str, most: int) -> str:
    """Leave out the middle of a long text: names differ at their ends, and remedies stand there."""
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]}...{text[-most // 8 :]}"


class RepeatsError(TileOpsError, ValueError):
    """Repeats that the operator does not define: negative, too many or few, or not in one axis."""


class ShapeError(TileOpsError, ValueError):
    """What is not a shape, or one that the operator or the library cannot give to the result."""


class DTypeError(TileOpsError, TypeError):
    """An argument of a wrong type: no array, or one of a dtype or kind that is not taken here."""


class RepeatsTypeError(RepeatsError, DTypeError):
    """Repeats that are not known integers (bool, float, traced): also a TypeError."""


class ShapeTypeError(ShapeError, DTypeError):
    """A shape whose sizes are not known integers (bool, float, traced): also a TypeError."""


class OutputError(TileOpsError, ValueError):
    """The result cannot be where the caller wants it.

    ``copy=False`` where only a copy is possible, or an ``out`` that overlaps
    the input, is read-only, is on another device, or would need a gradient.
    """


class OutputTooLargeError(TileOpsError, ValueError):
    """A result larger than ``max_bytes``, or than any array can be."""


class UnsupportedError(TileOpsError, ValueError):
    """What is not supported here: a feature level, a library, a kind of node, external data."""

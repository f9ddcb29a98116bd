"""The errors with which a call can be refused.

Each error is a :class:`TileOpsError` and also the builtin that Python uses for
its kind of mistake, so both ``except TileOpsError`` and ``except ValueError``
work. A message names the operator, the axis, the value, the rule and the remedy.
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
"""The most characters of a word in a message, such as the name of a node, a dtype or a device."""
_LONGEST_TEXT = 16 * 1024
"""The most characters of a message: a name with spaces may consist of many short words."""


class TileOpsError(Exception):
    """The base class of this package's errors."""

    def __str__(self) -> str:
        """Return the message with long names shortened: callers choose names of any length."""
        # Names are shortened here, and not when the error is made, because compilers trace that.
        text = super().__str__()
        if len(text) > _LONGEST_WORD:
            text = re.sub(r"\S+", lambda word: _shorten(word[0], _LONGEST_WORD), text)
        return _shorten(text, _LONGEST_TEXT)


def _shorten(text: str, most: int) -> str:
    """Leave out the middle of a long text: names differ at their ends, and remedies come last."""
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]}...{text[-most // 8 :]}"


class RepeatsError(TileOpsError, ValueError):
    """Repeats that the operator refuses: negative, too many, too few, or not one-dimensional."""


class ShapeError(TileOpsError, ValueError):
    """An invalid shape, or a shape that the operator or the library cannot give to the result."""


class DTypeError(TileOpsError, TypeError):
    """An argument of a wrong type: not an array, or an array of a dtype or kind that is refused."""


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
    """Something that is not supported: a feature level, library, kind of node or external data."""

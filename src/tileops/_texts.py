"""How the texts of errors write values: short, however long these are, and whoever gave them."""

from reprlib import Repr
from typing import Any

_LARGEST = (2**63 - 1) ** 2
"""The largest product of two sizes; what is past it is written as a power of two."""
_SHOWN = 64
"""The most counts that an error lists."""
_WIDEST = 200
"""The most characters of any other value that an error shows."""
_repr = Repr()  # unlike `repr`, it reads of a long list only what it shows
_repr.maxtuple = _repr.maxlist = _repr.maxdict = _repr.maxset = _SHOWN
_repr.maxstring = _repr.maxother = 3 * _WIDEST


def show(counts: int | tuple[int, ...]) -> str:
    """Write counts for an error: short, however long they are."""
    if isinstance(counts, tuple):
        shown = [show(count) for count in counts[:_SHOWN]]
        shown += ["..."] * (len(counts) > _SHOWN)
        return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
    if type(counts) is int and abs(counts) > _LARGEST:
        power = f"2**{counts.bit_length() - 1}"
        return f"{power} or more" if counts > 0 else f"-{power} or less"
    return str(counts)


def type_name(cls: type) -> str:
    """Name a class, by its module, too, unless it is built in."""
    name = cls.__qualname__
    return name if cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


def describe(value: Any) -> str:
    """Write what was given in place of something else: its type, and what fits of its value."""
    if value is None:
        return "None"
    name = type_name(type(value))
    try:
        text = show(value) if type(value) is int else " ".join(_repr.repr(value).split())
    except Exception:  # noqa: BLE001 (it is anybody's code, or an int of thousands of digits)
        return name
    return f"{name} {text if len(text) <= _WIDEST else text[:_WIDEST] + '...'}"

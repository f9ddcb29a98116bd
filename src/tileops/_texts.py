"""How error messages write values: briefly, however long a value is and whatever its class."""

from reprlib import Repr
from typing import Any

_LARGEST = (2**63 - 1) ** 2
"""The largest product of two sizes; larger numbers are written as a power of two."""
_SHOWN = 64
"""The most counts that an error lists."""
_WIDEST = 200
"""The most characters that an error shows of any other value."""
_repr = Repr()  # unlike `repr`, it reads only the part of a long list that it shows
_repr.maxtuple = _repr.maxlist = _repr.maxdict = _repr.maxset = _SHOWN
_repr.maxstring = _repr.maxother = 3 * _WIDEST


def show(counts: int | tuple[int, ...]) -> str:
    """Write counts for an error: briefly, however many or large they are."""
    if isinstance(counts, tuple):
        shown = [show(count) for count in counts[:_SHOWN]]
        shown += ["..."] * (len(counts) > _SHOWN)
        return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
    if type(counts) is int and abs(counts) > _LARGEST:
        power = f"2**{counts.bit_length() - 1}"
        return f"{power} or more" if counts > 0 else f"-{power} or less"
    return str(counts)


def type_name(cls: type) -> str:
    """Name a class, with its module unless it is a builtin."""
    name = cls.__qualname__
    return name if cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


def describe(value: Any) -> str:
    """Describe a value that is refused: its type, and as much of the value as fits."""
    if value is None:
        return "None"
    name = type_name(type(value))
    try:
        text = show(value) if type(value) is int else " ".join(_repr.repr(value).split())
    except Exception:  # noqa: BLE001 (foreign code, or an int of thousands of digits)
        return name
    return f"{name} {text if len(text) <= _WIDEST else text[:_WIDEST] + '...'}"

"""The rules of Tile and Expand: shapes and counts in, checked repeats out. No arrays.

A size or count is an ``int``, or a symbolic integer of a tracing library. A
symbolic one passes through arithmetic, and is compared only where Expand has to
know whether two sizes are equal: the library then decides, or fixes its value.
"""

from typing import NamedTuple

from tileops.errors import (
    OutputTooLargeError,
    RepeatsError,
    RepeatsTypeError,
    ShapeError,
    ShapeTypeError,
)

LIMIT = 2**63 - 1
"""The largest extent, element count and byte count: what a signed 64-bit integer holds."""

_SHOWN = 64
"""The most counts that an error lists."""


class Argument(NamedTuple):
    """A list of counts that an operator takes, as its errors speak of it."""

    operator: str
    name: str
    error: type[RepeatsError | ShapeError]
    type_error: type[RepeatsTypeError | ShapeTypeError]
    negative: str
    """What to pass instead of a negative count."""


TILE = Argument("tile", "repeats", RepeatsError, RepeatsTypeError, "0 makes the axis empty")
EXPAND = Argument("expand", "shape", ShapeError, ShapeTypeError, "1 keeps an axis as it is")


def input_shape(operator: str) -> Argument:
    """Describe the shape of the operator's input, where a caller gives it."""
    return Argument(operator, "input shape", ShapeError, ShapeTypeError, "0 is an empty axis")


def known(count: int) -> bool:
    """Whether a size or count is a number now, not a symbol."""
    return type(count) is int


def show(counts: int | tuple[int, ...]) -> str:
    """Write counts for an error: short, however long they are."""
    if isinstance(counts, tuple):
        shown = [show(count) for count in counts[:_SHOWN]]
        shown += ["..."] * (len(counts) > _SHOWN)
        return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
    if known(counts) and abs(counts) > LIMIT**2:
        return f"{'-' * (counts < 0)}2**{counts.bit_length() - 1} or more"
    return str(counts)


def check_counts(argument: Argument, counts: tuple[int, ...], rank: int = 0) -> None:
    """Refuse a negative count; `rank` is that of the array the counts are aligned with."""
    for i, count in enumerate(counts):
        if known(count) and count < 0:
            axis = i + max(rank - len(counts), 0)
            raise argument.error(
                f"{argument.operator}: axis {axis}: {argument.name}[{i}] is {show(count)} "
                f"({argument.name}={show(counts)}); no count may be negative; {argument.negative}"
            )


def align(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Put ones before the shorter of two tuples."""
    rank = max(len(shape), len(other))
    return (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other


def tile_repeats(
    argument: Argument, shape: tuple[int, ...], repeats: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tile: align shape and repeats on the right, the shorter one padded with ones."""
    check_counts(argument, repeats, len(shape))
    shape, repeats = align(shape, repeats)
    return shape, repeats


def expand_repeats(
    argument: Argument, shape: tuple[int, ...], target: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Expand as a Tile: a size of 1 is repeated up to the target, the rest is kept."""
    check_counts(argument, target, len(shape))
    given = target
    shape, target = align(shape, target)
    repeats = []
    for axis, (size, wanted) in enumerate(zip(shape, target, strict=True)):
        if known(size) and size == 1:
            repeats.append(wanted)
        elif (known(wanted) and wanted == 1) or size == wanted:
            repeats.append(1)
        elif size == 1:
            repeats.append(wanted)
        else:
            remedy = (
                f"pass 1 or {size}, or slice the input to drop elements"
                if known(size) and known(wanted) and wanted < size
                else f"pass 1 or {size}, or use tile to repeat the axis"
            )
            raise argument.error(
                f"{argument.operator}: axis {axis}: the input has size {size} and "
                f"{argument.name} asks for {show(wanted)} ({argument.name}={show(given)}); "
                f"two sizes must be equal or one of them 1; {remedy}"
            )
    return shape, tuple(repeats)


def check_size(
    argument: Argument, shape: tuple[int, ...], itemsize: int, max_bytes: int | None
) -> None:
    """Refuse a result that exceeds the caller's limit, or what any library can address.

    Zero sizes are left out of the product for the second: libraries multiply
    the others all the same, and JAX ends the process when that overflows.
    """
    extent = 1
    for size in shape:
        if known(size) and size:
            extent *= size
    if extent * max(itemsize, 1) > LIMIT:
        raise OutputTooLargeError(
            f"{argument.operator}: the result's shape {show(shape)} is larger than any array: "
            f"its sizes, zeros left out, multiply to {show(extent)} elements of {itemsize} bytes, "
            f"past 2**63-1; use smaller {argument.name}"
        )
    if max_bytes is None:
        return
    if not all(known(size) for size in shape):
        raise OutputTooLargeError(
            f"{argument.operator}: the result's shape {shape} is not known while tracing, so "
            f"max_bytes={max_bytes} cannot be kept; leave max_bytes away here"
        )
    nbytes = 0 if 0 in shape else extent * itemsize
    if nbytes > max_bytes:
        raise OutputTooLargeError(
            f"{argument.operator}: the result of shape {shape} takes {nbytes} bytes, more than "
            f"max_bytes={max_bytes}; use smaller {argument.name} or raise max_bytes"
        )

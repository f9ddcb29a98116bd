"""The rules of Tile and Expand: shapes and counts in, checked repeats out. No arrays.

A size or count is an ``int`` or, while a library traces, a symbol of that library.
Symbols pass through arithmetic, and are compared only where Expand has to know
whether two sizes are equal. The library then decides, fixes the symbol's value, or
leaves the question to the traced program.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import starmap
from math import inf, prod
from operator import index, mul
from typing import Any, NamedTuple

from tileops._texts import show
from tileops.errors import (
    DTypeError,
    OutputTooLargeError,
    RepeatsError,
    RepeatsTypeError,
    ShapeError,
    ShapeTypeError,
)

LIMIT = 2**63 - 1
"""The largest size, number of elements and number of bytes: a signed 64-bit integer's maximum."""

_ENOUGH = 2 * 63
"""The product of this many sizes of 2 or more is at least 2**126, which errors write as a power of
two, so that the exact product is not needed."""


class Argument(NamedTuple):
    """A list of counts that an operator takes: its rules, and the words for it in errors."""

    operator_name: str
    """The operator's name, with which errors begin."""
    name: str
    """The name of the operator's parameter."""
    error: type[RepeatsError | ShapeError]
    remedy: str
    """What to pass instead of a count that is too small."""
    least: int = 0
    greatest: float = inf
    dtype: str | None = None
    """The only dtype that an array of counts may have; None for any integer dtype."""
    is_vector: bool = False
    """Whether even a single count must come in a sequence."""

    @property
    def type_error(self) -> type[RepeatsTypeError | ShapeTypeError]:
        """The error for a count that is not an integer."""
        return ShapeTypeError if issubclass(self.error, ShapeError) else RepeatsTypeError

    @property
    def noun(self) -> str:
        """What an error calls one entry of the list."""
        return "size" if issubclass(self.error, ShapeError) else "count"


Aligned = tuple[tuple[int, ...], tuple[int, ...]]
"""Two tuples of the same length: the rules return a shape and the repeats of its axes."""

Align = Callable[[Argument, tuple[int, ...], tuple[int, ...]], Aligned]
"""A function that aligns shape and counts, or refuses them."""


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator of one specification, as a table of its rules.

    Operators are compared and hashed by identity, because the cache of plans has them in its keys.
    """

    argument: Argument
    align: Align
    general: str
    """The function without the operator's limits, which errors recommend."""
    dtypes: Mapping[str, str] | None = None
    """The dtypes that the input may have, and their names in the specification; None for all."""

    @property
    def name(self) -> str:
        """The operator's name in errors."""
        return self.argument.operator_name

    def derive(
        self,
        operator_name: str,
        *,
        align: Align | None = None,
        dtypes: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> "Operator":
        """Return an operator of another name; `changes` replace fields of its argument."""
        argument = self.argument._replace(operator_name=operator_name, **changes)
        return replace(
            self, argument=argument, align=align or self.align, dtypes=dtypes or self.dtypes
        )


def shape_argument(operator_name: str, name: str = "input shape") -> Argument:
    """Return the `Argument` for an input's shape that a caller passes in place of the array."""
    return Argument(operator_name, name, ShapeError, "0 is an empty axis")


def known(count: int) -> bool:
    """Whether a size or count is a number, not a symbol."""
    return type(count) is int


def is_equal(count: int, number: int) -> bool:
    """Whether a size or count is known to be equal to a number."""
    return type(count) is int and count == number  # `known`, without the time of a call


def is_empty(shape: tuple[int, ...]) -> bool:
    """Whether an axis is known to have no elements."""
    return any(is_equal(size, 0) for size in shape)


def is_less(count: int, other: int) -> bool:
    """Whether one count is known to be less than another."""
    return type(count) is int and type(other) is int and count < other


def exceeds(count: int, limit: float) -> bool:
    """Whether a count, or a product of sizes, is known to exceed a limit."""
    return type(count) is int and count > limit


def is_same(wanted: int, size: int) -> bool:
    """Whether Expand keeps an axis, because the target has its size."""
    return size == wanted if known(wanted) else is_same_symbol(wanted, size)


@singledispatch
def is_same_symbol(wanted: Any, size: int) -> bool:
    """Whether a symbol equals a size; a library may register how it decides that of its symbols."""
    return bool(size == wanted)


def check_counts(argument: Argument, counts: tuple[int, ...], rank: int = 0) -> None:
    """Refuse counts out of range; `rank` is the rank of the array that they are aligned with."""
    for i, count in enumerate(counts):
        if not in_range(argument, count):
            axis = i + max(rank - len(counts), 0)
            given = f"[{i}] is {show(count)} ({argument.name}={show(counts)})"
            raise out_of_range(argument, axis, count, given)


def in_range(argument: Argument, count: int) -> bool:
    """Whether a count lies between the least and the greatest, or is a symbol."""
    return not is_less(count, argument.least) and not exceeds(count, argument.greatest)


def out_of_range(argument: Argument, axis: int | str, count: int, given: str) -> Exception:
    """Return the error for a count out of range; `given` says which entry the count is."""
    rule = "be negative" if argument.least == 0 else f"be less than {argument.least}"
    remedy = argument.remedy
    if count > argument.greatest:
        rule, remedy = f"exceed {argument.greatest}", "use a smaller one"
    return argument.error(
        f"{argument.operator_name}: axis {axis}: {argument.name}{given}; no {argument.noun} may "
        f"{rule}; {remedy}"
    )


def check_dtype(operator: Operator, dtype: str) -> None:
    """Refuse an input whose dtype the specification does not allow."""
    if operator.dtypes is not None and dtype not in operator.dtypes:
        raise DTypeError(
            f"{operator.name}: the input has dtype {dtype}; {operator.name} takes "
            f"{', '.join(operator.dtypes.values())}; convert it, or use {operator.general}, "
            f"which has no such limit"
        )


def pad(shape: tuple[int, ...], other: tuple[int, ...]) -> Aligned:
    """Put ones before the shorter of two tuples."""
    rank = max(len(shape), len(other))
    return (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other


def tile_repeats(argument: Argument, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Aligned:
    """Tile: align shape and repeats on the right, the shorter one padded with ones."""
    check_counts(argument, repeats, len(shape))
    return pad(shape, repeats)


def tile_repeats_unpadded(
    argument: Argument, shape: tuple[int, ...], repeats: tuple[int, ...]
) -> Aligned:
    """Tile: one count for each axis, no more and no fewer."""
    if len(repeats) != len(shape):
        entries = "entry" if len(repeats) == 1 else "entries"
        raise argument.error(
            f"{argument.operator_name}: {argument.name} has {len(repeats)} {entries} for rank "
            f"{len(shape)} ({argument.name}={show(repeats)}, input shape {show(shape)}); "
            f"{argument.operator_name} does not pad (tileops.tile does); pass one count for each "
            f"axis"
        )
    return tile_repeats(argument, shape, repeats)


def expand_repeats(argument: Argument, shape: tuple[int, ...], target: tuple[int, ...]) -> Aligned:
    """Expand as a Tile: repeat axes of size 1 up to the target, and keep the others."""
    check_counts(argument, target, len(shape))
    padded, sizes = pad(shape, target)
    repeats = []
    for axis, (size, wanted) in enumerate(zip(padded, sizes, strict=True)):
        if is_equal(size, 1):
            repeats.append(wanted)
        elif is_equal(wanted, 1) or is_same(wanted, size):
            repeats.append(1)
        elif size == 1:  # only a symbol: a number was compared above, without a guard
            repeats.append(wanted)
        elif wanted == 1:  # likewise
            repeats.append(1)
        else:
            raise no_broadcast(argument, axis, size, wanted, shape, target)
    return padded, tuple(repeats)


def no_broadcast(
    argument: Argument,
    axis: int,
    size: int,
    wanted: int,
    shape: tuple[int, ...],
    given: tuple[int, ...],
) -> Exception:
    """Return the error for two sizes that Expand cannot broadcast against each other."""
    remedy = ""
    longer = (*shape, 1)
    if len(shape) < len(given) and not any(starmap(differ, zip(*pad(longer, given), strict=True))):
        remedy = ", or give the input an axis for the last size, as x[..., None] does"
    elif is_less(wanted, size):
        remedy = ", or slice the input to drop elements"
    elif is_less(0, size) and known(wanted) and wanted % size == 0 and wanted <= LIMIT:
        remedy = ", or use tile to repeat the axis"
    own = axis - max(len(given) - len(shape), 0)
    of_input = "" if own == axis else f" (axis {own} of the input)"
    return argument.error(
        f"{argument.operator_name}: axis {axis}{of_input}: the input has size {show(size)} and "
        f"{argument.name} asks for {show(wanted)} ({argument.name}={show(given)}, input shape "
        f"{show(shape)}); two sizes must be equal, or one of them 1; pass 1 or {show(size)}{remedy}"
    )


def differ(size: int, wanted: int) -> bool:
    """Whether two sizes are known to differ, and neither is 1."""
    return known(size) and known(wanted) and size != wanted and 1 not in {size, wanted}


TILE = Operator(
    Argument("tile", "repeats", RepeatsError, "0 makes the axis empty"),
    tile_repeats,
    "tileops.tile",
)
EXPAND = Operator(
    Argument("expand", "shape", ShapeError, "1 keeps an axis as it is"),
    expand_repeats,
    "tileops.expand",
)


def apply_rules(
    operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the aligned shape, the repeats of its axes and the result's shape, or refuse."""
    padded, repeats = operator.align(operator.argument, shape, counts)
    result = tuple(map(mul, padded, repeats))
    check_size(operator.argument, result, itemsize)
    return padded, repeats, result


def result_shape(
    operator: Operator, shape: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the shape of the result for an input of the given shape, or refuse the call.

    This makes no plan, because the shape may have a million axes, and a plan would take 100 MB.
    """
    return apply_rules(operator, shape, counts, itemsize=1)[-1]


def check_size(argument: Argument, shape: tuple[int, ...], itemsize: int) -> None:
    """Refuse a result that is larger than any library can address.

    Zeros are left out of the product, because libraries multiply the other sizes all the
    same, and JAX ends the process when their product overflows.
    """
    product = extent(shape)
    if exceeds(product * max(itemsize, 1), LIMIT):
        elements = f" elements of {itemsize} bytes" if itemsize > 1 else ""
        raise OutputTooLargeError(
            f"{argument.operator_name}: the result's shape {show(shape)} is larger than any array: "
            f"its sizes, zeros left out, multiply to {show(product)}{elements}, more than 2**63-1; "
            f"reduce the {argument.name} or the input"
        )


def check_limit(argument: Argument, shape: tuple[int, ...], itemsize: int, max_bytes: int) -> None:
    """Refuse a result that takes more bytes than the caller allows."""
    if not all(known(size) for size in shape):
        raise OutputTooLargeError(
            f"{argument.operator_name}: the result's shape {show(shape)} is not known while "
            f"tracing, so max_bytes={show(max_bytes)} cannot be enforced; omit max_bytes here"
        )
    most = index(max_bytes)
    nbytes = prod(shape) * itemsize
    if nbytes > most:
        remedy = "raise max_bytes" if most >= 0 else "pass None for no limit"
        raise OutputTooLargeError(
            f"{argument.operator_name}: the result of shape {show(shape)} takes {nbytes} bytes, "
            f"more than max_bytes={show(most)}; reduce the {argument.name} or {remedy}"
        )


def extent(shape: tuple[int, ...]) -> int:
    """Multiply the known sizes, zeros left out; if there are many, only the first `_ENOUGH`.

    The product of a million sizes would take many minutes, during which nothing can interrupt it.
    """
    sizes = [size for size in shape if known(size) and size > 1]
    return prod(sizes[:_ENOUGH])

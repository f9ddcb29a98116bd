"""How torch.compile traces a plan; imported only for that: loading TorchDynamo takes a second."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, TypeVar

import numpy as np
import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false, statically_known_true

from tileops._plan import Plan, make_plan
from tileops._rules import (
    LIMIT,
    Align,
    Argument,
    Operator,
    exceeds,
    is_equal,
    is_less,
    is_same,
    known,
)
from tileops._texts import show
from tileops.errors import RepeatsError, TileOpsError
from tileops.execute.torch import is_same_symint

_T = TypeVar("_T")

_substitute: Callable[[Any], Callable[[_T], _T]] = partial(
    torch.compiler.substitute_in_graph, can_constant_fold_through=True, skip_signature_check=True
)
"""Trace another function where an argument is a symbol; the compiler calls the original function
where all arguments are constants, and takes the result for a constant."""


def traceable(counts: Any) -> Any:
    """Turn NumPy's counts into a tensor, as the compiler would do without keeping their dtype."""
    return torch.as_tensor(counts) if isinstance(counts, np.ndarray) else counts


@torch.compiler.disable(  # type: ignore[untyped-decorator]
    reason="tileops writes into out= outside of compiled programs"
)
def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that asks for addresses, at which the compiler would stop many times."""
    return function(*arguments)


def plan_numbers(
    align: Align,
    least: int,
    greatest: float,
    shape: tuple[int, ...],
    counts: tuple[int, ...],
    itemsize: int,
) -> Plan | None:
    """Plan a call in which all sizes are numbers; None if one is a symbol or the rules refuse.

    The compiler calls this function, and takes the plan that it returns for a constant. So the
    compiler traces no rules, which would be three quarters of its work, and a program has fewer
    guards to check in each call.
    """
    argument = Argument("", "", RepeatsError, "", least, greatest)
    try:
        plan = make_plan(Operator(argument, align, ""), shape, counts, itemsize)
    except TileOpsError:
        return None
    return plan._replace(nbytes=0)  # the compiler itself decides what depends on size


@_substitute(known)
def _known(count: int) -> bool:
    """Whether the compiler can compare a count with 0 and 1 without a guard."""
    return bool(
        statically_known_true(count > 1)
        or statically_known_true(count == 1)
        or statically_known_true(count < 1)
    )


@_substitute(is_equal)
def _is_equal(count: int, number: int) -> bool:
    """Ask the compiler one question, where `known` would ask it three."""
    return bool(statically_known_true(count == number))


_substitute(is_same)(is_same_symint)


@_substitute(is_less)
def _is_less(count: int, other: int) -> bool:
    """Guard that a count is not less, except for a count that the program reads from data."""
    return bool(guard_or_false(count < other))


@_substitute(exceeds)
def _exceeds(count: int, limit: float) -> bool:
    """Guard a specification's limit only: other limits would bound the sizes of an export."""
    # `is_exporting()` is true in every program that PyTorch 2.10 compiles.
    if limit < LIMIT and not getattr(torch.compiler, "_is_exporting_flag", True):
        return bool(guard_or_false(count > limit))
    return limit != inf and bool(statically_known_true(count > limit))


@_substitute(show)
def _show(counts: int | tuple[int, ...]) -> str:
    """Write "?" for a symbol, which the compiler cannot write; write numbers as usual."""
    return f"({', '.join(map(show, counts))})" if isinstance(counts, tuple) else "?"


@_substitute(plan_numbers)
def _plan_symbols(*_: Any) -> Plan | None:
    """Make no plan where an argument is a symbol, so that `Torch.plan_shape` traces the rules."""
    return None

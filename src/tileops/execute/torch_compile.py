"""What torch.compile makes of a plan; loaded by it alone, since TorchDynamo takes a second."""

from math import inf
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false, statically_known_true

from tileops._plan import Plan, make_plan
from tileops._rules import LIMIT, Align, Argument, Operator, exceeds, is_equal, is_less, known
from tileops._texts import show
from tileops.errors import RepeatsError, TileOpsError


def traceable(counts: Any) -> Any:
    """Make a tensor of NumPy's counts: the compiler traces them as one, without their dtype."""
    return torch.as_tensor(counts) if isinstance(counts, np.ndarray) else counts


def plan_numbers(
    align: Align,
    least: int,
    greatest: float,
    shape: tuple[int, ...],
    counts: tuple[int, ...],
    itemsize: int,
) -> Plan | None:
    """Plan a call of numbers; None where the rules refuse it, and where a size is a symbol.

    The compiler calls this, and takes what it gives for a constant. So it traces no rule, which
    would be three quarters of its work, and a program has fewer things to guard in each call.
    """
    argument = Argument("", "", RepeatsError, "", least, greatest)
    try:
        plan = make_plan(Operator(argument, align), shape, counts, itemsize)
    except TileOpsError:
        return None
    return plan._replace(nbytes=0)  # what is done by size is the compiler's to do


@torch.compiler.substitute_in_graph(known, skip_signature_check=True)  # type: ignore[untyped-decorator]
def _known(count: int) -> bool:
    """Whether the compiler can compare a count with 0 and 1, and guards nothing for that."""
    return bool(
        statically_known_true(count > 1)
        or statically_known_true(count == 1)
        or statically_known_true(count < 1)
    )


@torch.compiler.substitute_in_graph(is_equal, skip_signature_check=True)  # type: ignore[untyped-decorator]
def _is_equal(count: int, number: int) -> bool:
    """Ask the compiler one question, where `known` would ask it three."""
    return bool(statically_known_true(count == number))


@torch.compiler.substitute_in_graph(is_less, skip_signature_check=True)  # type: ignore[untyped-decorator]
def _is_less(count: int, other: int) -> bool:
    """Guard that a count is no less; not if it is read from data in the program."""
    return bool(guard_or_false(count < other))


@torch.compiler.substitute_in_graph(exceeds, skip_signature_check=True)  # type: ignore[untyped-decorator]
def _exceeds(count: int, limit: float) -> bool:
    """Guard a specification's limit alone: another would bound what a program is exported for."""
    # `is_exporting()` is true in every program that PyTorch 2.10 compiles.
    if limit < LIMIT and not getattr(torch.compiler, "_is_exporting_flag", True):
        return bool(guard_or_false(count > limit))
    return limit != inf and bool(statically_known_true(count > limit))


@torch.compiler.substitute_in_graph(  # type: ignore[untyped-decorator]
    show, can_constant_fold_through=True, skip_signature_check=True
)
def _show(counts: int | tuple[int, ...]) -> str:
    """Write "?" for a symbol, of which the compiler makes no text; numbers are written as ever."""
    return f"({', '.join(map(show, counts))})" if isinstance(counts, tuple) else "?"


@torch.compiler.substitute_in_graph(  # type: ignore[untyped-decorator]
    plan_numbers, can_constant_fold_through=True, skip_signature_check=True
)
def _plan_symbols(*_: Any) -> Plan | None:
    return None

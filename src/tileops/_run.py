"""How every operator is applied to an array: rules first, then a plan, then its execution."""

from numbers import Integral
from operator import index
from typing import Any

from tileops._counts import is_array, read_counts
from tileops._plan import Plan
from tileops._rules import Operator, check_dtype, check_limit, is_equal
from tileops._texts import describe, show
from tileops.errors import DTypeError, OutputError
from tileops.execute import executor_of, executors
from tileops.execute.compiling import call_uncompiled, is_compiling


def run(
    operator: Operator,
    x: Any,
    counts: Any,
    copy: bool | None = True,
    out: Any = None,
    max_bytes: int | None = None,
) -> Any:
    """Apply an operator, or refuse the call before anything is allocated or written."""
    if out is not None and is_compiling():
        return call_uncompiled(run, operator, x, counts, copy, out, max_bytes)
    executor = executors.get(type(x))
    if executor is None:
        executor = executor_of(operator.name, x)
        x = executor.array(x)
    if max_bytes is not None or (copy is not True and copy is not None):
        check_options(operator.name, copy, out, max_bytes)
    if operator.dtypes is not None:  # naming a dtype takes time: only where the name is needed
        check_dtype(operator, executor.dtype(x))
    plan = executor.plan(operator, x, read_counts(operator.argument, counts, executor))
    if out is None and copy is not True:
        result = executor.view(x, plan)
        if result is not None:
            return result
        if copy is False:
            raise OutputError(_no_view(operator.name, executor.library, plan))
    if max_bytes is not None:
        check_limit(operator.argument, plan.shape, executor.itemsize(x), max_bytes)
    if out is None:
        return executor.copy(x, plan) if copy else executor.view_or_copy(x, plan)
    executor.write(operator.name, x, plan, out)
    return out


def check_options(name: str, copy: Any = True, out: Any = None, max_bytes: Any = None) -> None:
    """Refuse options of a wrong type, and options that exclude each other."""
    if copy is not None and not isinstance(copy, bool):
        raise DTypeError(
            f"{name}: copy is {describe(copy)}; it must be True (own memory), False (a view "
            f"or an error) or None (a view where one exists); in a traced function it must be "
            f"static"
        )
    if max_bytes is not None and not _is_integer(max_bytes):
        raise DTypeError(
            f"{name}: max_bytes is {describe(max_bytes)}; it must be an int, or None for no limit; "
            f"in a traced function it must be static"
        )
    if copy is False and out is not None:
        raise OutputError(
            f"{name}: copy=False asks for a view of the input, and out= is written to; "
            f"omit one of them"
        )


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool) or (is_array(value) and not isinstance(value, Integral)):
        return False  # an array is not an integer, although one of a single element has an index
    try:
        index(value)
    except Exception:  # noqa: BLE001 (foreign code may raise anything)
        return False
    return True


def _no_view(name: str, library: str, plan: Plan) -> str:
    refusal = f"{name}: copy=False, and no view gives this result"
    remedy = "use copy=None or copy=True"
    if plan.is_view:
        return f"{refusal}: {library} guarantees no view of this array; {remedy}"
    axis = next(
        i
        for i, (n, r) in enumerate(zip(plan.padded, plan.repeats, strict=True))
        if not is_equal(n, 1) and not is_equal(r, 1)
    )
    return (
        f"{refusal}: axis {axis} has size {show(plan.padded[axis])} and is repeated "
        f"{show(plan.repeats[axis])} times, and only axes of size 1 repeat without a copy; {remedy}"
    )

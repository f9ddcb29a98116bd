"""What PyTorch's copy on a CPU costs, and whether a plan costs less. No tensors.

In ns of one thread, beside what moving the bytes takes. The figures lie between those of an AMD
EPYC (Zen 4) and an Intel Xeon, with PyTorch 2.13.
"""

from functools import lru_cache
from math import prod

from tileops._moves import make_nest
from tileops._plan import Plan, contiguous
from tileops._plan_cost import LEAST_COST
from tileops._plan_job import copy_cost

_PER_CALL = 25.0
"""Each entry into its two innermost loops."""
_PER_ROW = 2.4
"""Each entry into the innermost one."""
_PER_APART = 0.7
"""Each element of a row whose elements do not lie side by side in the source."""
_GRAIN = 32 * 1024
"""Results of at least this many elements are shared by its threads."""
_PER_BYTE = 0.02
"""A plan has to cost less by this for each byte of the result: on Intel's, loops cost half."""


@lru_cache(maxsize=4096)
def plan_costs_less(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...] | None, threads: int
) -> bool:
    """Whether PyTorch's copy takes longer for its loops than a plan for its steps.

    Strides are in elements; None for a target in the order of its elements.
    """
    target = target or contiguous(plan.shape, 1)
    nest = make_nest(plan, source, target, 1)
    sizes, elements, apart = nest.sizes, nest.nbytes, 0
    if elements > sizes[-1] == 1:
        sizes, apart = sizes[:-1], elements if nest.source[-2] else 0
    time = prod(sizes[:-2]) * _PER_CALL + prod(sizes[:-1]) * _PER_ROW + apart * _PER_APART
    if elements >= _GRAIN:
        time /= threads
    time -= _PER_BYTE * plan.nbytes
    itemsize = plan.nbytes // elements
    source, target = (tuple(step * itemsize for step in steps) for steps in (source, target))
    return time > LEAST_COST and time > copy_cost(plan, source, target, itemsize, threads)

"""What PyTorch's copy on a CPU costs, and whether our own steps cost less. No tensors.

Costs are in ns of one thread, and come on top of the time that moving the bytes takes. The figures
lie between those of an AMD EPYC (Zen 4) and an Intel Xeon, with PyTorch 2.13.
"""

from functools import lru_cache
from math import prod

from tileops._copies.cost import PER_APART
from tileops._copies.job import copy_cost
from tileops._copies.steps import make_nest
from tileops._plan import Plan, contiguous

_PER_CALL = 25.0
"""The cost of each entry into the two innermost loops of PyTorch's copy."""
_PER_ROW = 2.4
"""The cost of each entry into the innermost loop."""
_GRAIN = 32 * 1024
"""PyTorch's threads share the copy of a result of at least this many elements."""
_PER_BYTE = 0.02
"""How much less steps have to cost for each byte of the result: on Intel, loops cost half."""
_BEGIN = 40_000.0
"""What steps take to begin, in addition to `copy_cost`, where other data have driven Python's
objects and code out of the caches."""


@lru_cache(maxsize=4096)
def steps_cost_less(
    plan: Plan, source: tuple[int, ...], target: tuple[int, ...] | None, threads: int
) -> bool:
    """Whether the loops of PyTorch's copy take longer than our own steps.

    Strides are in elements; `target` is None for a C-contiguous target.
    """
    target = target or contiguous(plan.shape, 1)
    nest = make_nest(plan, source, target, 1)  # in elements, as PyTorch's strides are
    sizes, elements, apart = nest.sizes, nest.nbytes, 0
    if sizes[-1] == 1 and elements > 1:  # the source has no runs: it repeats, or has gaps
        sizes, apart = sizes[:-1], elements if nest.source[-2] else 0
    time = prod(sizes[:-2]) * _PER_CALL + prod(sizes[:-1]) * _PER_ROW + apart * PER_APART
    if elements >= _GRAIN:
        time /= threads
    time -= _BEGIN + _PER_BYTE * plan.nbytes
    itemsize = plan.nbytes // elements
    source, target = (tuple(n * itemsize for n in strides) for strides in (source, target))
    # Planning a copy takes 20 µs, and costs are never less than 0.
    return time > 0 and time > copy_cost(plan, source, target, itemsize, threads)

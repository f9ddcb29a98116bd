"""What a small call costs, counted instead of timed: Python's functions that it enters."""

import gc
import sys

import numpy as np
import pytest

import tileops
from tileops._plan import cached_plan

MOST = {
    # NumPy, PyTorch
    "tile": (8, 8),
    "tile of one axis": (8, 8),
    "tile into out": (12, 23),
    "expand to a view": (6, 6),
    "expand to a copy": (8, 8),
}
"""The most functions that a call of each kind may enter."""


def calls_on(block, column, room):
    return {
        "tile": lambda: tileops.tile(block, (2, 3)),
        "tile of one axis": lambda: tileops.tile(block, (1, 3)),
        "tile into out": lambda: tileops.tile(block, (2, 3), out=room),
        "expand to a view": lambda: tileops.expand(column, (8, 24)),
        "expand to a copy": lambda: tileops.expand(column, (8, 24), copy=True),
    }


def entered(call):
    """Name the functions written in Python that a call enters once it has been planned."""
    names = []

    def note(frame, event, _):
        if event == "call":
            names.append(frame.f_code.co_name)

    call()
    before = sys.getprofile()
    gc.disable()  # others, such as Hypothesis, are called when it runs
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return names[1:]  # without the call itself


@pytest.mark.library("numpy", "torch")
@pytest.mark.parametrize("kind, of_numpy, of_torch", [(kind, *most) for kind, most in MOST.items()])
def test_a_small_call_enters_few_functions(kind, of_numpy, of_torch, request):
    arrays = [np.ones(shape, np.float32) for shape in ((8, 4), (8, 1), (16, 12))]
    is_torch = request.config.getoption("--library") == "torch"
    if is_torch:
        import torch

        arrays = list(map(torch.from_numpy, arrays))
    names = entered(calls_on(*arrays)[kind])
    assert len(names) <= (of_torch if is_torch else of_numpy), names


@pytest.mark.library("numpy")
def test_the_plans_of_thousands_of_calls_are_kept():
    x = np.ones((2, 1), np.float32)
    for is_planned in (False, True):
        before = cached_plan.cache_info().misses
        for n in range(3000, 6000):
            tileops.expand(x, (2, n))
        assert cached_plan.cache_info().misses - before == (0 if is_planned else 3000)

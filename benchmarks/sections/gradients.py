"""What it takes to sum the repeats again: gradients in PyTorch, and adjoints in NumPy."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tileops
from benchmarks.libraries import Sides
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, number, ratio
from benchmarks.workloads import random_array

TITLE = "Gradients"
SECTION = "gradients"
TITLES = {
    "torch": "PyTorch, the gradient of a tile",
    "numpy": "NumPy, the adjoint of a tile",
    "recorded": "PyTorch, a small tile and its gradient",
}
NOTES = {
    "torch": "`torch.autograd.grad` through `Tensor.repeat` and through `tileops.tile`; only the "
    "backward pass is timed.",
    "numpy": "`ndarray.sum` over the axes of the repeats, after a reshape, and "
    "`tileops.tile_adjoint`.",
    "recorded": "`Tensor.repeat` and `tileops.tile` of float32, forward and backward, below 4 MiB. "
    "The gradient is random, or that of a `sum()` right after the tile, which is 1 everywhere.",
}
CASES = {
    "rows and columns, twice each": ((2048, 2048), (2, 2)),
    "rows 8 times, columns 4 times": ((1024, 512), (8, 4)),
    "a plane, 5 times along each of 3 axes": ((50, 50, 50), (5, 5, 5)),
    "a number for each channel, in images": ((64, 1, 1), (64, 1, 56, 56)),
    "8 rows, 100,000 times, in 8 columns": ((8, 1), (100_000, 1, 8)),
    "a row, 64 times (one axis)": ((1, 262_144), (64, 1)),
}
"""The shape of the input, and the repeats. Gradients are float32 and take 26 to 67 MB."""
RECORDED = {
    "rows and columns, twice each, 32 KiB": ((32, 64), (2, 2)),
    "rows and columns, four times each, 256 KiB": ((64, 64), (4, 4)),
    "rows and columns, twice each, 1 MiB": ((256, 256), (2, 2)),
    "pairs, twice and all three times, 128 KiB": ((2730, 2), (3, 2)),
    "rows, 16 times (one axis), 256 KiB": ((64, 64), (16, 1)),
}
"""The same for small results, whose sizes the names give."""


def measure(recorder: Recorder) -> None:
    """Sum random numbers between 0 and 1, and note how far the sums are from those in float64."""
    for case, (shape, repeats) in CASES.items():
        total = tileops.tile_shape(shape, repeats)
        g = np.random.default_rng(0).random(total, np.float32)
        spread, axes = _split(shape, repeats)
        exact = g.astype(np.float64).reshape(spread).sum(axes).reshape(shape)
        for group, make in (("torch", _torch), ("numpy", _numpy)):
            sides = make(g, shape, repeats)
            recorder.compare(
                SECTION,
                group,
                case,
                sides,
                has_pauses=True,
                native_error=_error(sides["native"](), exact),
                tileops_error=_error(sides["tileops"](), exact),
            )
    for case, (shape, repeats) in RECORDED.items():
        for name, sides in _recorded(shape, repeats).items():
            recorder.compare(SECTION, "recorded", f"{case}: {name}", sides, has_pauses=True)


def _split(shape: tuple[int, ...], repeats: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
    """Return the shape of a gradient with an axis for each count, and these axes."""
    padded = (1,) * (len(repeats) - len(shape)) + shape
    spread = [n for pair in zip(repeats, padded, strict=True) for n in pair]
    return spread, tuple(range(0, len(spread), 2))


def _torch(g: np.ndarray, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Sides:
    x = torch.from_numpy(random_array(shape, "float32")).requires_grad_()
    backward = functools.partial(torch.autograd.grad, inputs=x, retain_graph=True)
    gradient = torch.from_numpy(g)
    return {
        "native": functools.partial(backward, x.repeat(repeats), grad_outputs=gradient),
        "tileops": functools.partial(backward, tileops.tile(x, repeats), grad_outputs=gradient),
    }


def _recorded(shape: tuple[int, ...], repeats: tuple[int, ...]) -> dict[str, Sides]:
    x = torch.from_numpy(random_array(shape, "float32")).requires_grad_()
    g = torch.from_numpy(random_array(tileops.tile_shape(shape, repeats), "float32"))

    def of_random_numbers(tile: Callable[..., Any]) -> Any:
        return torch.autograd.grad(tile(x, repeats), x, g)

    def of_a_sum(tile: Callable[..., Any]) -> Any:
        return torch.autograd.grad(tile(x, repeats).sum(), x)

    functions = {"native": torch.Tensor.repeat, "tileops": tileops.tile}
    return {
        name: {side: functools.partial(run, tile) for side, tile in functions.items()}
        for name, run in (("random", of_random_numbers), ("of a sum", of_a_sum))
    }


def _numpy(g: np.ndarray, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Sides:
    spread, axes = _split(shape, repeats)
    return {
        "native": lambda: g.reshape(spread).sum(axes).reshape(shape),
        "tileops": lambda: tileops.tile_adjoint(g, shape, repeats),
    }


def _error(found: Any, exact: np.ndarray) -> str:
    """Return the largest error as a fraction of the largest sum."""
    if isinstance(found, tuple):
        (found,) = found
    return f"{np.abs(np.asarray(found) - exact).max() / np.abs(exact).max():.0e}"


def tables(results: Results) -> list[Table]:
    """Show times, and the errors of large gradients."""
    return [
        _recorded_table(results) if group == "recorded" else _table(results, group)
        for group in results.groups(SECTION)
    ]


def _recorded_table(results: Results) -> Table:
    header = ("what is repeated: its gradient", "native µs", "tileops µs", "ratio")
    table = Table(TITLES["recorded"], NOTES["recorded"], header)
    for case in results.cases(SECTION, "recorded"):
        native, ours = (
            results.calm(SECTION, "recorded", case, side) for side in ("native", "tileops")
        )
        times = (number(native * 1e6, 0), number(ours * 1e6, 0), number(ratio(ours, native), 2))
        table.rows.append((case, *times))
    return table


def _table(results: Results, group: str) -> Table:
    table = Table(
        TITLES[group],
        f"{NOTES[group]} Numbers are float32, between 0 and 1, and gradients take 26 to 67 MB. An "
        "error is the largest difference from sums in float64, as a fraction of the largest sum.",
        ("what is summed", "native ms", "tileops ms", "ratio", "native error", "tileops error"),
    )
    for case in results.cases(SECTION, group):
        native, ours = (results.calm(SECTION, group, case, side) for side in ("native", "tileops"))
        errors = (
            str(results.fact(SECTION, group, case, side, f"{side}_error"))
            for side in ("native", "tileops")
        )
        times = (number(native * 1e3, 2), number(ours * 1e3, 2), number(ratio(ours, native), 2))
        table.rows.append((case, *times, *errors))
    return table

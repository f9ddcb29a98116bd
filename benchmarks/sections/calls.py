"""What a call costs where there is next to nothing to write."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

import tileops
from benchmarks.libraries import Sides, as_bytes, both, check, compiled, jitted, tiled, waited
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, number, ratio
from benchmarks.workloads import random_array

TITLE = "Small calls"
SECTION = "calls"
GROUP = "small"
REPEATS = (2, 3)
TARGET = (8, 24)


def measure(recorder: Recorder) -> None:
    """Repeat 8 by 4 numbers into 768 bytes, and expand 8 by 1 to as many."""
    block = random_array((8, 4), "float32")
    column = random_array((8, 1), "float32")
    tensor, array = torch.from_numpy(block), jnp.asarray(block)
    counts = np.array(REPEATS, np.int64)
    tiles = {
        "NumPy, tile": ("np.tile", tiled(np.tile, block, REPEATS)),
        "NumPy, onnx.tile": ("np.tile", both(np.tile, tileops.onnx.tile, block, counts)),
        "PyTorch, tile": ("torch.tile", tiled(torch.tile, tensor, REPEATS)),
        "PyTorch, tile in torch.compile": ("torch.tile", compiled(tensor, REPEATS)),
        "JAX, tile": ("jnp.tile", waited(tiled(jnp.tile, array, REPEATS))),
        "JAX, tile in jax.jit": ("jnp.tile", jitted(array, REPEATS)),
    }
    expands = {
        "NumPy, expand to a view": ("np.broadcast_to", _expanded(np.broadcast_to, column)),
        "PyTorch, expand to a view": (
            "Tensor.expand",
            _expanded(torch.Tensor.expand, torch.from_numpy(column)),
        ),
        "JAX, expand": (
            "jnp.broadcast_to",
            waited(_expanded(jnp.broadcast_to, jnp.asarray(column))),
        ),
    }
    for cases, expected in (
        (tiles, np.tile(block, REPEATS)),
        (expands, np.broadcast_to(column, TARGET)),
    ):
        for case, (name, sides) in cases.items():
            check(sides, as_bytes(expected), case)
            recorder.compare(SECTION, GROUP, case, sides, native=name)


def _expanded(native: Callable[..., Any], x: Any) -> Sides:
    return both(native, tileops.expand, x, TARGET)


def tables(results: Results) -> list[Table]:
    """Show nanoseconds per call."""
    table = Table(
        "Calls on less than 1 KB",
        "float32, 8×4 tiled by (2, 3) and 8×1 expanded to 8×24: the cost of the call itself, "  # noqa: RUF001
        "in an inner loop. The ratio is the time of the library's own function divided by the time "
        "of tileops: above 1, tileops is faster.",
        ("call", "native", "native ns", "tileops ns", "ratio"),
    )
    for case in results.cases(SECTION):
        native = results.calm(SECTION, GROUP, case, "native")
        ours = results.calm(SECTION, GROUP, case, "tileops")
        name = str(results.fact(SECTION, GROUP, case, "native", "native"))
        times = (number(native * 1e9, 0), number(ours * 1e9, 0), number(ratio(ours, native), 2))
        table.rows.append((case, f"`{name}`", *times))
    return [table]

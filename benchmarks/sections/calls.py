"""What a call costs where there is next to nothing to write."""

import functools

import jax.numpy as jnp
import numpy as np
import torch

import tileops
from benchmarks.libraries import Sides, as_bytes, check, compiled, jitted
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, number, ratio
from benchmarks.workloads import random_array

TITLE = "Small calls"
SECTION = "calls"
GROUP = "small"
REPEATS = (2, 3)
TARGET = (8, 24)

NATIVE = {
    "NumPy, tile": "np.tile",
    "NumPy, expand to a view": "np.broadcast_to",
    "NumPy, onnx.tile": "np.tile",
    "PyTorch, tile": "torch.tile",
    "PyTorch, expand to a view": "Tensor.expand",
    "PyTorch, tile in torch.compile": "torch.tile",
    "JAX, tile": "jnp.tile",
    "JAX, expand": "jnp.broadcast_to",
    "JAX, tile in jax.jit": "jnp.tile",
}


def measure(recorder: Recorder) -> None:
    """Repeat 8 by 4 numbers into 768 bytes, and expand 8 by 1 to as many."""
    block = random_array((8, 4), "float32")
    column = random_array((8, 1), "float32")
    tiled = as_bytes(np.tile(block, REPEATS))
    expanded = as_bytes(np.broadcast_to(column, TARGET))
    cases = {
        "NumPy, tile": (_numpy_tile(block), tiled),
        "NumPy, expand to a view": (_numpy_expand(column), expanded),
        "NumPy, onnx.tile": (_onnx_tile(block), tiled),
        "PyTorch, tile": (_torch_tile(block), tiled),
        "PyTorch, expand to a view": (_torch_expand(column), expanded),
        "PyTorch, tile in torch.compile": (compiled(torch.from_numpy(block), REPEATS), tiled),
        "JAX, tile": (_jax_tile(block), tiled),
        "JAX, expand": (_jax_expand(column), expanded),
        "JAX, tile in jax.jit": (jitted(jnp.asarray(block), REPEATS), tiled),
    }
    for case, (sides, expected) in cases.items():
        check(sides, expected, case)
        recorder.compare(SECTION, GROUP, case, sides, native=NATIVE[case])


def _numpy_tile(block: np.ndarray) -> Sides:
    return {
        "native": functools.partial(np.tile, block, REPEATS),
        "tileops": functools.partial(tileops.tile, block, REPEATS),
    }


def _numpy_expand(column: np.ndarray) -> Sides:
    return {
        "native": functools.partial(np.broadcast_to, column, TARGET),
        "tileops": functools.partial(tileops.expand, column, TARGET),
    }


def _onnx_tile(block: np.ndarray) -> Sides:
    repeats = np.array(REPEATS, np.int64)
    return {
        "native": functools.partial(np.tile, block, repeats),
        "tileops": functools.partial(tileops.onnx.tile, block, repeats),
    }


def _torch_tile(block: np.ndarray) -> Sides:
    tensor = torch.from_numpy(block)
    return {
        "native": functools.partial(torch.tile, tensor, REPEATS),
        "tileops": functools.partial(tileops.tile, tensor, REPEATS),
    }


def _torch_expand(column: np.ndarray) -> Sides:
    tensor = torch.from_numpy(column)
    return {
        "native": functools.partial(tensor.expand, TARGET),
        "tileops": functools.partial(tileops.expand, tensor, TARGET),
    }


def _jax_tile(block: np.ndarray) -> Sides:
    array = jnp.asarray(block)
    return {
        "native": lambda: jnp.tile(array, REPEATS).block_until_ready(),
        "tileops": lambda: tileops.tile(array, REPEATS).block_until_ready(),
    }


def _jax_expand(column: np.ndarray) -> Sides:
    array = jnp.asarray(column)
    return {
        "native": lambda: jnp.broadcast_to(array, TARGET).block_until_ready(),
        "tileops": lambda: tileops.expand(array, TARGET).block_until_ready(),
    }


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

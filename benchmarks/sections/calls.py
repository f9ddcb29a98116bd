"""What a call costs where there is next to nothing to write."""

import functools

import jax.numpy as jnp
import numpy as np
import torch

import tileops
from benchmarks.libraries import Sides, as_bytes, check, compiled, jitted, tiled, waited
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
    tensor, array = torch.from_numpy(block), jnp.asarray(block)
    tile_bytes = as_bytes(np.tile(block, REPEATS))
    expand_bytes = as_bytes(np.broadcast_to(column, TARGET))
    cases = {
        "NumPy, tile": (tiled(np.tile, block, REPEATS), tile_bytes),
        "NumPy, expand to a view": (_numpy_expand(column), expand_bytes),
        "NumPy, onnx.tile": (_onnx_tile(block), tile_bytes),
        "PyTorch, tile": (tiled(torch.tile, tensor, REPEATS), tile_bytes),
        "PyTorch, expand to a view": (_torch_expand(column), expand_bytes),
        "PyTorch, tile in torch.compile": (compiled(tensor, REPEATS), tile_bytes),
        "JAX, tile": (waited(tiled(jnp.tile, array, REPEATS)), tile_bytes),
        "JAX, expand": (_jax_expand(column), expand_bytes),
        "JAX, tile in jax.jit": (jitted(array, REPEATS), tile_bytes),
    }
    for case, (sides, expected) in cases.items():
        check(sides, expected, case)
        recorder.compare(SECTION, GROUP, case, sides, native=NATIVE[case])


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


def _torch_expand(column: np.ndarray) -> Sides:
    tensor = torch.from_numpy(column)
    return {
        "native": functools.partial(tensor.expand, TARGET),
        "tileops": functools.partial(tileops.expand, tensor, TARGET),
    }


def _jax_expand(column: np.ndarray) -> Sides:
    array = jnp.asarray(column)
    return waited(
        {
            "native": functools.partial(jnp.broadcast_to, array, TARGET),
            "tileops": functools.partial(tileops.expand, array, TARGET),
        }
    )


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

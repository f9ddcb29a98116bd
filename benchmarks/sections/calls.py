"""What a call costs where there is next to nothing to write."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import tileops
from benchmarks.libraries import Sides, as_bytes, both, check, compiled, jitted, tiled, waited
from benchmarks.results import Recorder, Results
from benchmarks.tables import Table, number, ratio
from benchmarks.timing import Call
from benchmarks.workloads import random_array

TITLE = "Small calls"
SECTION = "calls"
TITLES = {
    "small": "Calls on less than 1 KB",
    "others": "Less common calls on less than 1 KB",
    "programs": "Compiled programs on less than 1 KB",
}
NOTES = {
    "small": "float32, 8×4 tiled by (2, 3) and 8×1 expanded to 8×24: the cost of the call itself, "  # noqa: RUF001
    "in an inner loop.",
    "others": "The same shapes. Counts of 1 repeat nothing, and give a copy. With changing shapes, "
    "each call has another shape or other counts than the thousands of calls before it, so that "
    "tileops has to plan it; otherwise it finds the plan of an earlier call. Here the sizes of a "
    "float32 array have a product of at most 40, and it is tiled up to six times.",
    "programs": "Attention of one sequence of 4 positions and 8 heads of 4 numbers. Groups of 4 "
    "heads share their keys and values, which are expanded to the heads. Both sides are the same "
    "program, except for the function that expands.",
}
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
        "NumPy, onnx.tile, counts in an array": (
            "np.tile",
            both(np.tile, tileops.onnx.tile, block, counts),
        ),
        "PyTorch, tile": ("torch.tile", tiled(torch.tile, tensor, REPEATS)),
        "PyTorch, tile in torch.compile": ("torch.tile", compiled(tensor, REPEATS)),
        "PyTorch, onnx.tile, counts in a tensor": (
            "torch.tile",
            both(_torch_tile, tileops.onnx.tile, tensor, torch.from_numpy(counts)),
        ),
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
            recorder.compare(SECTION, "small", case, sides, native=name)
    _measure_others(recorder, block, column)
    _measure_programs(recorder)


def _measure_others(recorder: Recorder, block: np.ndarray, column: np.ndarray) -> None:
    """Measure what fewer programs do, and where tileops is not always faster."""
    tensor, narrow = torch.from_numpy(block), torch.from_numpy(column)
    halves = jnp.asarray(block, jnp.bfloat16)
    recorded = tensor.clone().requires_grad_()
    tiled_block = np.tile(block, REPEATS)
    wide = np.broadcast_to(column, TARGET)
    cases = {
        "NumPy, tile by counts of 1": ("np.tile", tiled(np.tile, block, (1, 1)), block),
        "PyTorch, tile by counts of 1": ("torch.tile", tiled(torch.tile, tensor, (1, 1)), block),
        "PyTorch, tile, recording a gradient": (
            "torch.tile",
            tiled(torch.tile, recorded, REPEATS),
            tiled_block,
        ),
        "JAX, tile of bfloat16": (
            "jnp.tile",
            waited(tiled(jnp.tile, halves, REPEATS)),
            np.tile(np.asarray(halves), REPEATS),
        ),
        "NumPy, expand to a copy": (
            "np.broadcast_to(...).copy()",
            _expanded(lambda x, shape: np.broadcast_to(x, shape).copy(), column, copy=True),
            wide,
        ),
        "PyTorch, expand to a copy": (
            "Tensor.expand(...).contiguous()",
            _expanded(lambda x, shape: x.expand(shape).contiguous(), narrow, copy=True),
            wide,
        ),
    }
    for case, (name, sides, expected) in cases.items():
        check(sides, as_bytes(expected), case)
        recorder.compare(SECTION, "others", case, sides, native=name)
    # The ranks differ, because tileops finds plans by shape and size, whatever the library.
    for library, name, native, make, rank in (
        ("NumPy", "np.tile", np.tile, np.asarray, 3),
        ("PyTorch", "torch.tile", torch.tile, torch.from_numpy, 4),
    ):
        case = f"{library}, tile, changing shapes"
        arguments = [(make(x), repeats) for x, repeats in _many_shapes(rank)]
        for x, repeats in arguments[::100]:
            check(tiled(native, x, repeats), as_bytes(native(x, repeats)), case)
        sides = {
            "native": _in_turn(native, arguments),
            "tileops": _in_turn(tileops.tile, arguments),
        }
        recorder.compare(SECTION, "others", case, sides, native=name)


def _many_shapes(rank: int) -> Iterator[tuple[np.ndarray, tuple[int, ...]]]:
    """Yield more arrays and counts than tileops keeps plans for, in results of less than 1 KB."""
    for shape in itertools.product(range(1, 41), repeat=rank):
        for repeats in itertools.product(range(1, 7), repeat=2):
            if math.prod(shape) <= 40 and math.prod(repeats) <= 6:
                yield np.ones(shape, np.float32), repeats


def _in_turn(tile: Callable[..., Any], arguments: list[Any]) -> Call:
    turns = itertools.cycle(arguments)
    return lambda: tile(*next(turns))


def _measure_programs(recorder: Recorder) -> None:
    """Attend to heads that share their keys and values."""
    arrays = [random_array((1, heads, 4, 4), "float32") for heads in (8, 2, 2)]
    torch.compiler.reset()
    tensors, of_jax = (list(map(make, arrays)) for make in (torch.from_numpy, jnp.asarray))
    in_torch = (
        torch.compile(_attention(expand, torch.softmax), fullgraph=True)
        for expand in (torch.Tensor.expand, tileops.expand)
    )
    in_jax = (
        jax.jit(_attention(expand, jax.nn.softmax)) for expand in (jnp.broadcast_to, tileops.expand)
    )
    programs = {
        "PyTorch, torch.compile": ("Tensor.expand", both(*in_torch, *tensors)),
        "JAX, jax.jit": ("jnp.broadcast_to", waited(both(*in_jax, *of_jax))),
    }
    for case, (name, sides) in programs.items():
        check(sides, as_bytes(sides["native"]()), case)
        recorder.compare(SECTION, "programs", case, sides, native=name)


def _attention(expand: Callable[..., Any], softmax: Callable[..., Any]) -> Callable[..., Any]:
    """Make attention of a library's functions."""

    def repeat(x: Any, groups: int) -> Any:
        batch, heads, length, width = x.shape
        wide = expand(x[:, :, None], (batch, heads, groups, length, width))
        return wide.reshape(batch, heads * groups, length, width)

    def attend(q: Any, k: Any, v: Any) -> Any:
        groups = q.shape[1] // k.shape[1]
        scores = q @ repeat(k, groups).swapaxes(2, 3)
        return softmax(scores, -1) @ repeat(v, groups)

    return attend


def _torch_tile(x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Tile by counts in a tensor, which `torch.tile` does not take."""
    return torch.tile(x, counts.tolist())


def _expanded(native: Callable[..., Any], x: Any, **options: Any) -> Sides:
    return both(native, functools.partial(tileops.expand, **options), x, TARGET)


def tables(results: Results) -> list[Table]:
    """Show nanoseconds per call."""
    return [_table(results, group) for group in results.groups(SECTION)]


def _table(results: Results, group: str) -> Table:
    table = Table(
        TITLES[group],
        f"{NOTES[group]} The ratio is the time of the library's own function divided by the time "
        "of tileops: above 1, tileops is faster.",
        ("call", "native", "native ns", "tileops ns", "ratio"),
    )
    for case in results.cases(SECTION, group):
        native = results.calm(SECTION, group, case, "native")
        ours = results.calm(SECTION, group, case, "tileops")
        name = str(results.fact(SECTION, group, case, "native", "native"))
        times = (number(native * 1e9, 0), number(ours * 1e9, 0), number(ratio(ours, native), 2))
        table.rows.append((case, f"`{name}`", *times))
    return table

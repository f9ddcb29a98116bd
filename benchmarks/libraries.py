"""The two sides of each comparison: a library's own operation, and tileops on its arrays."""

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

import tileops
from benchmarks.timing import Call
from benchmarks.workloads import Workload, numpy_dtype

Sides = dict[str, Call]

THREADS = 2
"""Threads of every library that lets them be set; JAX has as many as there are processors."""

ASSIGNMENT = "assignment"
"""The side that writes a broadcast view into a buffer by one call of the library."""

_CHUNK = 2**24


def configure() -> None:
    """Give tileops and PyTorch two threads, and JAX its 64-bit integers."""
    os.environ["TILEOPS_NUM_THREADS"] = str(THREADS)
    torch.set_num_threads(THREADS)
    jax.config.update("jax_enable_x64", True)


def to_torch(x: np.ndarray) -> torch.Tensor:
    """Share an array with PyTorch, including bfloat16."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def as_bytes(array: Any) -> np.ndarray:
    """View an array of any library as bytes, in the order of its elements."""
    if isinstance(array, torch.Tensor):
        array = array.contiguous().view(torch.uint8).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def check(sides: Mapping[str, Call], expected: np.ndarray, case: str) -> None:
    """Compare each side's result with the expected bytes, once, before anything is timed."""
    for name, call in sides.items():
        if not _equal(as_bytes(call()), expected):
            raise ValueError(f"{case}: {name} gives other bits than numpy.tile")


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    """Compare bytes in parts, so that a result of 1 GB needs no mask of 1 GB."""
    return first.size == second.size and all(
        np.array_equal(first[start : start + _CHUNK], second[start : start + _CHUNK])
        for start in range(0, first.size, _CHUNK)
    )


def used_memory(workload: Workload) -> np.ndarray:
    """Make a buffer for a result whose pages are already in memory."""
    buffer = np.empty(workload.target, numpy_dtype(workload.dtype))
    buffer.view(np.uint8).fill(1)
    return buffer


def numpy_limit(workload: Workload) -> Call:
    """Fill new memory, as the limit of NumPy."""

    def fill() -> np.ndarray:
        memory = np.empty(workload.result_bytes, np.uint8)
        memory.fill(1)
        return memory

    return fill


def numpy_out_limit(workload: Workload) -> Call:
    """Fill a buffer that is used again, as the limit of NumPy with `out=`."""
    return functools.partial(used_memory(workload).view(np.uint8).fill, 1)


def torch_limit(workload: Workload) -> Call:
    """Fill new memory with PyTorch's threads."""
    size = workload.result_bytes
    return lambda: torch.empty(size, dtype=torch.uint8).fill_(1)


def torch_out_limit(workload: Workload) -> Call:
    """Fill a buffer that is used again with PyTorch's threads."""
    return functools.partial(to_torch(used_memory(workload)).view(torch.uint8).fill_, 1)


def numpy_fresh(workload: Workload, x: np.ndarray) -> Sides:
    """Tile NumPy arrays into new memory."""
    return tiled(np.tile, x, workload.repeats)


def tiled(native: Callable[..., Any], x: Any, repeats: tuple[int, ...], **options: Any) -> Sides:
    """Tile an array with its library's own function, and with tileops and additional options."""
    return both(native, functools.partial(tileops.tile, **options), x, repeats)


def both(native: Callable[..., Any], ours: Callable[..., Any], *arguments: Any) -> Sides:
    """Make two sides that call functions with the same arguments."""
    return {
        "native": functools.partial(native, *arguments),
        "tileops": functools.partial(ours, *arguments),
    }


def numpy_out(workload: Workload, x: np.ndarray) -> Sides:
    """Tile NumPy arrays; tileops and an assignment write into a buffer that is used again."""
    buffer = used_memory(workload)
    sides = tiled(np.tile, x, workload.repeats, out=buffer)
    sides[ASSIGNMENT] = _assigned(np.copyto, buffer, x, workload)
    return sides


def _assigned(assign: Callable[[Any, Any], Any], out: Any, x: Any, workload: Workload) -> Call:
    """Broadcast an array in a single assignment, with the axes of both split as repeats and size.

    `assign` takes the target first, as `np.copyto` and `Tensor.copy_` do.
    """
    axes = zip(workload.repeats, workload.shape, strict=True)
    places = out.reshape([size for axis in axes for size in axis])
    rows = x.reshape([size for n in workload.shape for size in (1, n)])

    def call() -> Any:
        assign(places, rows)
        return out

    return call


def numpy_expand(workload: Workload, x: np.ndarray) -> Sides:
    """Expand NumPy arrays into new memory."""
    target = workload.target
    return {
        "native": lambda: np.array(np.broadcast_to(x, target), order="C", copy=True),
        "tileops": functools.partial(tileops.expand, x, target, copy=True),
    }


def torch_fresh(workload: Workload, x: np.ndarray) -> Sides:
    """Tile tensors into new memory."""
    return tiled(torch.tile, to_torch(x), workload.repeats)


def torch_out(workload: Workload, x: np.ndarray) -> Sides:
    """Tile tensors; tileops and an assignment write into a buffer that is used again."""
    tensor, buffer = to_torch(x), to_torch(used_memory(workload))
    sides = tiled(torch.tile, tensor, workload.repeats, out=buffer)
    sides[ASSIGNMENT] = _assigned(torch.Tensor.copy_, buffer, tensor, workload)
    return sides


def torch_expand(workload: Workload, x: np.ndarray) -> Sides:
    """Expand tensors into new memory."""
    tensor, target = to_torch(x), workload.target
    return {
        "native": lambda: tensor.expand(target).contiguous(),
        "tileops": functools.partial(tileops.expand, tensor, target, copy=True),
    }


def torch_compiled(workload: Workload, x: np.ndarray) -> Sides:
    """Tile tensors in a compiled function."""
    return compiled(to_torch(x), workload.repeats)


def compiled(tensor: torch.Tensor, repeats: tuple[int, ...]) -> Sides:
    """Tile a tensor, each side in a function that is compiled for it."""
    torch.compiler.reset()  # the limit on compilations of a function counts all tensors
    native = torch.compile(lambda a: torch.tile(a, repeats), fullgraph=True)
    ours = torch.compile(lambda a: tileops.tile(a, repeats), fullgraph=True)
    return both(native, ours, tensor)


def jax_eager(workload: Workload, x: np.ndarray) -> Sides:
    """Tile JAX arrays, and wait for the result."""
    return waited(tiled(jnp.tile, jnp.asarray(x), workload.repeats))


def waited(sides: Sides) -> Sides:
    """Wait for the results of JAX, which returns before they are computed."""
    return {name: functools.partial(_wait, call) for name, call in sides.items()}


def _wait(call: Call) -> jax.Array:
    return call().block_until_ready()


def jax_jitted(workload: Workload, x: np.ndarray) -> Sides:
    """Tile JAX arrays in a compiled function, and wait for the result."""
    return jitted(jnp.asarray(x), workload.repeats)


def jitted(array: jax.Array, repeats: tuple[int, ...]) -> Sides:
    """Tile a JAX array, each side in a compiled function."""
    native = jax.jit(lambda a: jnp.tile(a, repeats))
    ours = jax.jit(lambda a: tileops.tile(a, repeats))
    return waited(both(native, ours, array))


class Comparison(NamedTuple):
    """One way to run every workload that its operator covers."""

    title: str
    native: str
    make: Callable[[Workload, np.ndarray], Sides]
    limit: Callable[[Workload], Call] | None = None
    """Makes a call that writes as many bytes and reads none, timed in the same rounds, if any."""
    is_expand: bool = False
    has_pauses: bool = False
    has_twin: bool = False
    """Whether the native call is timed twice, because both sides run the same program."""
    assignment: str = ""
    """The function that assigns, if a third side does that."""
    note: str = ""


COMPARISONS = {
    "numpy": Comparison("NumPy, new memory", "`np.tile`", numpy_fresh, numpy_limit),
    "numpy_out": Comparison(
        "NumPy, `out=` used again",
        "`np.tile`",
        numpy_out,
        numpy_out_limit,
        assignment="`np.copyto`",
        note="`np.tile` has no `out=`: it makes new memory in each call, and tileops does not.",
    ),
    "numpy_expand": Comparison(
        "NumPy, `expand(copy=True)`",
        "`np.array(np.broadcast_to(...), order='C', copy=True)`",
        numpy_expand,
        numpy_limit,
        is_expand=True,
    ),
    "torch": Comparison(
        "PyTorch, new memory", "`torch.tile`", torch_fresh, torch_limit, has_pauses=True
    ),
    "torch_out": Comparison(
        "PyTorch, `out=` used again",
        "`torch.tile`",
        torch_out,
        torch_out_limit,
        has_pauses=True,
        assignment="`Tensor.copy_`",
        note="`torch.tile` has no `out=`: it makes new memory in each call, and tileops does not.",
    ),
    "torch_expand": Comparison(
        "PyTorch, `expand(copy=True)`",
        "`Tensor.expand(...).contiguous()`",
        torch_expand,
        torch_limit,
        is_expand=True,
        has_pauses=True,
    ),
    "torch_compiled": Comparison(
        "PyTorch, under `torch.compile`",
        "`torch.tile`",
        torch_compiled,
        has_pauses=True,
        has_twin=True,
    ),
    "jax": Comparison("JAX, eager", "`jnp.tile`", jax_eager, has_pauses=True, has_twin=True),
    "jax_jit": Comparison(
        "JAX, under `jax.jit`", "`jnp.tile`", jax_jitted, has_pauses=True, has_twin=True
    ),
}

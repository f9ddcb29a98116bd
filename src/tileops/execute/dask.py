"""Dask: lazy arrays stay lazy."""

from math import isnan
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks

from tileops import execute
from tileops._plan import Plan, cached_plan
from tileops.errors import ShapeError
from tileops.execute.array_api import Executor


class Dask(Executor):
    """Names chunks again, and repeats axes of size 1 inside them."""

    def shape(self, operator: str, x: Any) -> tuple[int, ...]:
        """Give the shape; a size that depends on data is not known before it is computed."""
        for axis, size in enumerate(x.shape):
            if isnan(size):
                raise ShapeError(
                    f"{operator}: axis {axis} of the input has no known size (shape {x.shape}); "
                    f"call x.compute_chunk_sizes() first"
                )
        return tuple(map(int, x.shape))

    def itemsize(self, x: Any) -> int:
        """Give the bytes of an element."""
        return int(x.dtype.itemsize)

    def view(self, x: Any, plan: Plan) -> Any:
        """Repeat; each chunk becomes a view when it is computed."""
        return _repeat(x, plan, "view") if plan.is_view else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat; each chunk owns its memory when it is computed."""
        return _repeat(x, plan, "copy")

    def is_integer(self, array: Any) -> bool:
        """Whether an array holds integers."""
        return array.dtype.kind in "iu"

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Wrap a NumPy array in a lazy one."""
        if device not in (None, "cpu"):
            raise ValueError(f"Dask arrays of NumPy have no device {device!r}, only 'cpu'")
        return da.from_array(array)

    def to_numpy(self, x: Any) -> Any:
        """Compute."""
        return np.asarray(x.compute())


def _repeat(x: Any, plan: Plan, how: str) -> Any:
    """Name the chunks of `x` again in the order of the result, then stretch those of size 1.

    The library's own tile and broadcast_to go through concatenation and bare NumPy, where
    masks, foreign byte orders and the layout of records are lost.
    """
    if 0 in plan.shape:
        return da.from_array(np.empty_like(x._meta, shape=plan.shape), chunks=-1)  # noqa: SLF001
    if plan.is_identity and how == "view":
        return x
    x = x[(np.newaxis,) * (len(plan.shape) - x.ndim)]
    grows = [n == 1 != r for n, r in zip(plan.source, plan.repeats, strict=True)]
    chunks = normalize_chunks(
        tuple("auto" if g else c for g, c in zip(grows, x.chunks, strict=True)),
        tuple(r if g else n for g, n, r in zip(grows, plan.source, plan.repeats, strict=True)),
        dtype=np.dtype((np.void, max(x.dtype.itemsize, 1))),
    )
    chunks = tuple(c if g else c * r for g, c, r in zip(grows, chunks, plan.repeats, strict=True))
    for axis, after in enumerate(chunks):
        before = x.numblocks[axis]
        if len(after) != before:
            order = list(range(before)) * (len(after) // before)
            x = x.blocks[(slice(None),) * axis + (order,)]
    return x.map_blocks(_stretch, how, chunks=chunks, dtype=x.dtype, meta=x._meta)  # noqa: SLF001


def _stretch(block: Any, how: str, block_info: Any = None) -> Any:
    """Repeat the axes of size 1 of a chunk up to the size of the result's chunk."""
    wanted = block_info[None]["chunk-shape"]
    repeats = tuple(m // max(n, 1) for m, n in zip(wanted, block.shape, strict=True))
    of_block = execute.executor_of("tile", block)
    return getattr(of_block, how)(block, cached_plan(block.ndim, tuple(block.shape), repeats))


executor = Dask()

"""Dask: lazy arrays stay lazy."""

from math import isnan
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks

from tileops._plan import Plan
from tileops.errors import ShapeError
from tileops.execute.array_api import Executor


class Dask(Executor):
    """Repeats by the library's own tile; axes of size 1 are broadcast chunk by chunk."""

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
        """Broadcast; each chunk becomes a view when it is computed."""
        return _repeat(x, plan) if plan.is_view else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat; each chunk owns its memory when it is computed."""
        result = _repeat(x, plan)
        owns = plan.merges or 0 in plan.shape
        return result if owns else result.map_blocks(_copied, dtype=x.dtype)

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


def _repeat(x: Any, plan: Plan) -> Any:
    if 0 in plan.shape:
        # The library's own empty results lose a foreign byte order, or divide by zero.
        return da.from_array(np.empty_like(x._meta, shape=plan.shape), chunks=-1)  # noqa: SLF001
    if plan.merges:
        if x.dtype.isnative:
            return da.tile(x, plan.repeats)
        # Concatenation turns a foreign byte order into the native one.
        return da.tile(x.view(x.dtype.newbyteorder()), plan.repeats).view(x.dtype)
    # Left to itself, broadcast_to makes one chunk of a broadcast axis, however long.
    kept = ((1,),) * (len(plan.source) - x.ndim) + x.chunks
    chunks = normalize_chunks(
        tuple("auto" if r != 1 else c for r, c in zip(plan.repeats, kept, strict=True)),
        plan.shape,
        dtype=np.dtype((np.void, max(x.dtype.itemsize, 1))),
    )
    return da.broadcast_to(x, plan.shape, chunks=chunks)


def _copied(block: Any) -> Any:
    return block.copy()


executor = Dask()

"""Dask: lazy arrays stay lazy."""

from itertools import product
from math import isnan, prod
from typing import Any

import array_api_compat.dask.array
import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.utils import parse_bytes

from tileops._plan import Plan
from tileops._rules import TILE, Operator
from tileops._run import run
from tileops._texts import show
from tileops._threads import single_threaded
from tileops.errors import OutputTooLargeError, ShapeError
from tileops.execute import executor_of
from tileops.execute.array_api import Executor, native
from tileops.execute.numpy import executor as numpy_executor

_MOST_CHUNKS = 2**20
"""The most chunks of a result, or along one axis; a graph of that many takes half a minute."""

_PART = 2**24
"""The size in bytes up to which an axis of one chunk is repeated inside the chunk: Dask puts chunks
of this size together faster than larger chunks are made."""
_MANY_PARTS = 1024
"""Results of more than this many parts are made of larger parts, up to Dask's chunk size."""


class Dask(Executor):
    """Reuses chunks, and repeats an axis of one chunk inside that chunk.

    As in Dask itself, equal chunks of a result are one chunk, which may be a chunk of the input,
    because nobody writes to chunks. A result that is computed as a whole has its own memory.
    """

    __slots__ = ()

    library = "dask"

    def namespace(self, x: Any) -> Any:
        """Return array_api_compat's namespace, because Dask's arrays name none."""
        return array_api_compat.dask.array

    def shape(self, name: str, x: Any, which: str = "the input") -> tuple[int, ...]:
        """Return the shape; a size that depends on data is not known before it is computed."""
        for axis, size in enumerate(x.shape):
            if isnan(size):
                raise ShapeError(
                    f"{name}: axis {axis} of {which} has no known size (shape {x.shape}); "
                    f"call its compute_chunk_sizes() first"
                )
        return tuple(map(int, x.shape))

    def numbers(self, array: Any) -> list[Any]:
        """Compute the values, all at once."""
        return super().numbers(array.compute())

    def dtype(self, x: Any) -> str:
        """Name the dtype; "string" for text. Objects are not inspected: that would compute them."""
        return "string" if x.dtype.kind in "UT" else str(x.dtype.name)

    def check(self, operator: Operator, x: Any, plan: Plan) -> None:
        """Refuse chunks of an unknown library, and more chunks than a graph may have."""
        if not plan.repeated:
            return
        executor_of(operator.name, x._meta, "a chunk of the input")  # noqa: SLF001
        if 0 in plan.shape:
            return
        for axis in range(-x.ndim, 0):
            count, repeats = x.numblocks[axis], plan.repeats[axis]
            if count > 1 and count * repeats > _MOST_CHUNKS:
                raise OutputTooLargeError(
                    f"{operator.name}: axis {axis + len(plan.shape)} has {count} chunks and is "
                    f"repeated {repeats} times; a graph of more than {_MOST_CHUNKS} chunks is "
                    f"refused; call x.rechunk({{{axis + x.ndim}: -1}}) first"
                )
        chunks = _least_chunks(x, plan)
        if chunks <= _MOST_CHUNKS:
            chunks = prod(map(len, _result_chunks(x, plan)))
        if chunks > _MOST_CHUNKS:
            larger = "larger chunks (x.rechunk, and Dask's configuration array.chunk-size)"
            raise _too_many(operator.name, plan.shape, chunks, f"smaller counts, or {larger}")

    def view(self, x: Any, plan: Plan) -> Any:
        """Repeat; each chunk is a view when it is computed."""
        return _repeat(x, plan, copy=None) if plan.is_view else None

    def copy(self, x: Any, plan: Plan) -> Any:
        """Repeat; a chunk that grows is copied when it is computed."""
        return _repeat(x.copy(), plan, copy=True)  # a new array, so that callers may assign to it

    def sum(self, name: str, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
        """Sum over what a plan repeats; Dask cannot split an axis of size 0."""
        if 0 in plan.spread:
            # Only the sum of an empty `g` can be larger than `g`.
            least = prod(shape) * g.dtype.itemsize // _chunk_bytes()
            if least > _MOST_CHUNKS:
                larger = "larger chunks (Dask's configuration array.chunk-size)"
                raise _too_many(name, shape, least, f"a smaller shape, or {larger}")
            # Dask divides by zero where it chooses the chunks of many axes, one of them empty.
            zeros = da.zeros(shape, dtype=g.dtype, chunks=-1 if 0 in shape else "auto")
            return zeros.map_blocks(_zeros_like, g._meta, meta=g._meta)  # noqa: SLF001
        # Dask's reshape fails if a chunk is empty.
        g = g.rechunk(tuple(tuple(filter(None, along)) for along in g.chunks))
        if not g.dtype.isnative:
            return self.sum(name, native(g), plan, shape).astype(g.dtype)
        return super().sum(name, g, plan, shape)

    def from_numpy(self, array: Any, device: str | None) -> Any:
        """Wrap a NumPy array in a lazy one; objects that are all of type str get a text dtype."""
        if array.dtype == object and numpy_executor.dtype(array) == "string":
            array = array.astype(np.dtypes.StringDType())
        # Dask chooses no chunks for objects, because it does not know how many bytes they take, and
        # divides by zero where it chooses those of an empty array.
        is_whole = array.dtype.hasobject or array.nbytes == 0
        return da.from_array(array, chunks=-1 if is_whole else "auto")

    def to_numpy(self, x: Any) -> Any:
        """Compute the values."""
        return np.asanyarray(x.compute())


def _too_many(name: str, shape: tuple[int, ...], chunks: int, remedy: str) -> OutputTooLargeError:
    """Return the error for a result of at least `chunks` chunks; `remedy` says what to use."""
    return OutputTooLargeError(
        f"{name}: the result of shape {show(shape)} has {show(chunks)} chunks or more; a graph of "
        f"more than {_MOST_CHUNKS} chunks is refused; use {remedy}"
    )


def _zeros_like(block: Any, meta: Any) -> Any:
    return np.zeros_like(meta, shape=block.shape)


def _repeat(x: Any, plan: Plan, *, copy: bool | None) -> Any:
    """Make each different chunk of the result once from a chunk of `x`, and put them in order.

    Dask's own tile and broadcast_to use concatenation and bare NumPy, which lose masks,
    foreign byte orders and the layout of records.
    """
    # For arrays without a given name Dask reads arrays, and fails for objects of over 32 axes.
    if 0 in plan.shape:
        name = f"empty-{tokenize(x, plan.shape)}"
        return da.from_array(np.empty_like(x._meta, shape=plan.shape), -1, name)  # noqa: SLF001
    if plan.is_identity and not copy:
        return x
    if x.ndim == 0 and x.dtype.kind in "OSTU":
        x = x.map_blocks(_boxed, x.dtype, meta=x._meta)  # noqa: SLF001
    chunks = _result_chunks(x, plan)
    x = x[(np.newaxis,) * (len(plan.shape) - x.ndim)]
    parts = [_parts(before, after) for before, after in zip(x.chunks, chunks, strict=True)]
    made = [{part: i for i, part in enumerate(dict.fromkeys(along))} for along in parts]
    x = _take_blocks(x, [[block for block, _ in along] for along in made])
    # Each task carries the counts. The chunks of an axis with several are not stretched, so a
    # single count of 1 stands for all of them.
    counts = tuple(tuple(dict.fromkeys(count for _, count in along)) for along in made)
    # Dask returns the only chunk of a result as it is, so `copy` has to copy that chunk.
    is_bare = copy and all(len(along) == 1 for along in parts)
    if is_bare or any(count != 1 for along in counts for count in along):
        sizes = tuple(
            tuple(n * count for n, (_, count) in zip(before, along, strict=True))
            for before, along in zip(x.chunks, made, strict=True)
        )
        name = f"tile-{tokenize(x, copy, counts, sizes)}"
        meta = x._meta  # noqa: SLF001
        x = x.map_blocks(_stretch, copy, counts, name=name, chunks=sizes, meta=meta)
    return _take_blocks(
        x, [[place[part] for part in along] for place, along in zip(made, parts, strict=True)]
    )


def _boxed(block: Any, dtype: Any) -> Any:
    """Return the chunk of a single object or text as an array: NumPy's sums and items are bare.

    `np.asarray` would take a list for an array of its items, and text for shorter text.
    """
    if isinstance(block, np.ndarray):
        return block
    array = np.empty((), dtype)
    array[()] = block
    return array


def _parts(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return, for each chunk of the result along an axis, the input's chunk and its repeats."""
    blocks = (i % len(before) for i in range(len(after)))
    return [(i, n // before[i] if before[i] else 1) for i, n in zip(blocks, after, strict=True)]


def _take_blocks(x: Any, orders: list[list[int]]) -> Any:
    """Take an array's chunks along each axis in the given order, some of them several times.

    This adds one layer to the graph. `x.blocks` would add one for each axis, and takes at most 63
    axes.
    """
    if all(order == list(range(n)) for order, n in zip(orders, x.numblocks, strict=True)):
        return x
    name = f"blocks-{tokenize(x, orders)}"
    places = product(*(range(len(order)) for order in orders))
    names = {(name, *to): (x.name, *of) for to, of in zip(places, product(*orders), strict=True)}
    graph = HighLevelGraph.from_collections(name, names, dependencies=[x])
    chunks = tuple(tuple(c[i] for i in order) for c, order in zip(x.chunks, orders, strict=True))
    return da.Array(graph, name, chunks, meta=x._meta)  # noqa: SLF001


def _itemsize(x: Any) -> int:
    """Return the bytes of an element; 1 for elements of no bytes, which still need chunks."""
    return max(1, int(x.dtype.itemsize))


def _least_chunks(x: Any, plan: Plan) -> int:
    """Return a lower bound of the number of chunks, without listing them.

    No chunk exceeds `_part_bytes`, except those that hold a single repeat.
    """
    nbytes = _itemsize(x) * prod(plan.shape)
    return min(prod(plan.repeats), nbytes // _part_bytes(plan))


def _part_bytes(plan: Plan) -> int:
    """Return the most bytes of a chunk that grows, which are never more than Dask's chunk size."""
    return min(_chunk_bytes(), max(_PART, plan.nbytes // _MANY_PARTS))


def _chunk_bytes() -> int:
    """Return Dask's chunk size: the most bytes of a chunk where Dask chooses the chunks.

    Dask accepts sizes below 1, and makes chunks of one element then.
    """
    return max(1, int(parse_bytes(dask.config.get("array.chunk-size"))))


def _result_chunks(x: Any, plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the result's chunks along each axis.

    An axis of one chunk gets chunks of as many repeats as `_part_bytes` has room for. An axis of
    several chunks has them again for each repeat.
    """
    chunks = ((1,),) * (len(plan.shape) - x.ndim) + x.chunks
    axes = list(zip(plan.padded, plan.repeats, chunks, strict=True))
    grows = [r != 1 and len(c) == 1 for _, r, c in axes]
    a_round = _itemsize(x) * prod(n for g, (n, _, _) in zip(grows, axes, strict=True) if g)
    rounds = normalize_chunks(
        tuple("auto" if g else c for g, (_, _, c) in zip(grows, axes, strict=True)),
        tuple(r if g else n for g, (n, r, _) in zip(grows, axes, strict=True)),
        limit=_part_bytes(plan),
        dtype=np.dtype((np.void, min(a_round, 2**31 - 1))),
    )
    return tuple(
        tuple(n * count for count in counts) if g else counts * r
        for g, counts, (n, r, _) in zip(grows, rounds, axes, strict=True)
    )


def _stretch(
    block: Any, copy: bool | None, counts: tuple[tuple[int, ...], ...], block_id: Any = None
) -> Any:
    """Repeat a chunk as `tile` repeats an array, by the counts for its place along each axis.

    The chunk's own size does not matter, because it may differ from what the graph says.
    """
    repeats = tuple(along[i % len(along)] for along, i in zip(counts, block_id, strict=True))
    with single_threaded():  # the scheduler's own threads share the chunks
        return run(TILE, block, repeats, copy)


executor = Dask()

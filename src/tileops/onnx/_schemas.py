"""The version table: what each published version of ONNX Tile and Expand takes.

Source: https://onnx.ai/onnx/operators/onnx__Tile.html and onnx__Expand.html,
sections Inputs and Type Constraints.
"""

from typing import Any

from tileops._rules import (
    EXPAND,
    LIMIT,
    TILE,
    Aligned,
    Argument,
    Operator,
    in_range,
    out_of_range,
    tile_repeats_unpadded,
)
from tileops._texts import show
from tileops.errors import ShapeError

FLOATS = {"float16": "tensor(float16)", "float32": "tensor(float)", "float64": "tensor(double)"}

INT64 = "int64"
"""The dtype of ONNX's counts; those of Tile-1 may have the input's dtype instead."""

_ALL_6 = {
    **{name: f"tensor({name})" for name in ("bool", "complex64", "complex128", "string")},
    **{f"int{bits}": f"tensor(int{bits})" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"tensor(uint{bits})" for bits in (8, 16, 32, 64)},
    **FLOATS,
}

_ALL_13 = {**_ALL_6, "bfloat16": "tensor(bfloat16)"}

_INT64_VECTOR: dict[str, Any] = {"dtype": INT64, "is_vector": True, "greatest": LIMIT}
"""How counts differ from those of `TILE` and `EXPAND`, in every version except Tile-1."""


def _along_axis(argument: Argument, shape: tuple[int, ...], counts: tuple[int, ...]) -> Aligned:
    """Align Tile-1, whose counts say how often an axis is repeated, and which axis."""
    tiles, axis = counts
    rank = len(shape)
    if not -rank <= axis < rank:
        axes = f"pass one from {-rank} to {rank - 1}" if rank else "a scalar has none to repeat"
        raise ShapeError(
            f"{argument.operator_name}: axis is {show(axis)} for rank {rank} "
            f"(input shape {show(shape)}); {axes}"
        )
    check_tiles(argument, axis % rank, tiles)
    repeats = [1] * rank
    repeats[axis] = tiles
    return shape, tuple(repeats)


def check_tiles(argument: Argument, axis: int | str, tiles: int) -> None:
    """Refuse a count of Tile-1 that is out of range."""
    if not in_range(argument, tiles):
        raise out_of_range(argument, axis, tiles, f" is {show(tiles)}")


TILE_1 = TILE.derive("Tile-1", align=_along_axis, dtypes=FLOATS, name="tiles", greatest=LIMIT)
TILE_6 = TILE.derive("Tile-6", align=tile_repeats_unpadded, dtypes=_ALL_6, **_INT64_VECTOR)
TILE_13 = TILE_6.derive("Tile-13", dtypes=_ALL_13)
EXPAND_8 = EXPAND.derive("Expand-8", dtypes=_ALL_6, **_INT64_VECTOR)
EXPAND_13 = EXPAND_8.derive("Expand-13", dtypes=_ALL_13)

VERSIONS = {
    "Tile": {1: TILE_1, 6: TILE_6, 13: TILE_13},
    "Expand": {8: EXPAND_8, 13: EXPAND_13},
}
"""Each operator's rules by the opset that introduced them."""


def in_opset(op_type: str, opset: int) -> Operator | None:
    """Return the version of an operator that an opset has; None if it has none."""
    versions = VERSIONS[op_type]
    since = max((version for version in versions if version <= opset), default=None)
    return None if since is None else versions[since]

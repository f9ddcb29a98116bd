"""Tile and Expand, the operators that repeat an array, with one meaning in every library."""

from tileops._ops import expand, expand_shape, tile, tile_shape
from tileops.errors import (
    DTypeError,
    OutputError,
    OutputTooLargeError,
    RepeatsError,
    RepeatsTypeError,
    ShapeError,
    ShapeTypeError,
    TileOpsError,
)

__all__ = [
    "DTypeError",
    "OutputError",
    "OutputTooLargeError",
    "RepeatsError",
    "RepeatsTypeError",
    "ShapeError",
    "ShapeTypeError",
    "TileOpsError",
    "__version__",
    "expand",
    "expand_shape",
    "tile",
    "tile_shape",
]

__version__ = "0.1.0"

"""Tile and Expand as ONNX, OpenVINO and DirectML specify them, on ordinary arrays."""

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

"""Tile and Expand, as ONNX, OpenVINO and DirectML specify them, on arrays of any library."""

from tileops import directml, onnx, openvino
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
    UnsupportedError,
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
    "UnsupportedError",
    "__version__",
    "directml",
    "expand",
    "expand_shape",
    "onnx",
    "openvino",
    "tile",
    "tile_shape",
]

__version__ = "0.1.0"

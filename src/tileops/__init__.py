"""Tile and Expand, as ONNX, OpenVINO and DirectML specify them, on arrays of any library."""

from tileops import directml, onnx, openvino
from tileops._adjoint import expand_adjoint, tile_adjoint
from tileops._ops import expand, expand_shape, tile, tile_shape
from tileops._threads import single_threaded
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
    "expand_adjoint",
    "expand_shape",
    "onnx",
    "openvino",
    "single_threaded",
    "tile",
    "tile_adjoint",
    "tile_shape",
]

__version__ = "0.1.0"

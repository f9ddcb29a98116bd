"""Tile and Expand, as ONNX, OpenVINO and DirectML specify them, on arrays of any library."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from tileops import directml, onnx, openvino
else:

    def __getattr__(name: str) -> Any:
        """Import a specification's module when it is first asked for, not with the package."""
        if name in {"directml", "onnx", "openvino"}:
            return import_module(f"tileops.{name}")
        raise AttributeError(f"module 'tileops' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the specifications' modules, too."""
    return __all__

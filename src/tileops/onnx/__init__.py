"""ONNX Tile and Expand, each version as published, on arrays of any library.

The operators and the shape inference do not need the package ``onnx``. The modules ``backend``,
``reference`` and ``upgrade`` do; this distribution's extra ``onnx`` installs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tileops.onnx._inference import infer_expand_shape, infer_tile_shape
from tileops.onnx._operators import expand_8, expand_13, tile_1, tile_6, tile_13

__all__ = [
    "expand",
    "expand_8",
    "expand_13",
    "infer_expand_shape",
    "infer_tile_shape",
    "tile",
    "tile_1",
    "tile_6",
    "tile_13",
]

_NEED_ONNX = ("backend", "reference", "upgrade")

tile = tile_13
expand = expand_13

if TYPE_CHECKING:
    from tileops.onnx import backend as backend
    from tileops.onnx import reference as reference
    from tileops.onnx import upgrade as upgrade
else:

    def __getattr__(name: str) -> Any:
        """Import a module that needs ``onnx`` when it is first asked for."""
        if name not in _NEED_ONNX:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return import_module(f"{__name__}.{name}")
        except ImportError as error:
            if (error.name or "onnx").partition(".")[0] != "onnx":
                raise
            # An ImportError would break `hasattr` and `help`, which ask for every name.
            raise AttributeError(
                f"{__name__}.{name} needs the package onnx ({error}); install array-tileops with "
                f"its extra 'onnx'"
            ) from error


def __dir__() -> list[str]:
    """List all public names, including the modules that need ``onnx``."""
    return [*__all__, *_NEED_ONNX]

"""ONNX Tile and Expand, each version as published, on arrays of any library.

The operators and the shape inference need no ``onnx``. The modules ``backend``,
``reference`` and ``upgrade`` do: ``pip install 'array-tileops[onnx]'``.
"""

from importlib import import_module
from typing import Any

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

tile = tile_13
expand = expand_13


def __getattr__(name: str) -> Any:
    """Import a module that needs ``onnx`` when it is first asked for."""
    if name in {"backend", "reference", "upgrade"}:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The ways that an array can lie in memory."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.patterns import Shape


class Layout(NamedTuple):
    """A way for an array to lie in the memory of a larger one."""

    name: str
    base: Callable[[Shape], Shape]
    take: Callable[[Any, Any, Shape], Any]
    """Takes the array out of the larger one, by a library's functions."""


def reverse_axes(xp: Any, a: Any, shape: Shape) -> Any:
    """Transpose, with functions that NumPy, PyTorch and CuPy share."""
    axes = tuple(range(len(shape)))
    return xp.moveaxis(a, axes, axes[::-1])


PLAIN = Layout("plain", lambda shape: shape, lambda _xp, a, _shape: a)

BACKWARD = Layout(
    "negative strides",
    lambda shape: shape,
    lambda _xp, a, shape: a[(slice(None, None, -1),) * len(shape)],
)

EXPANDED = Layout(
    "stride 0",
    lambda shape: (1, *shape[1:]),
    lambda xp, a, shape: xp.broadcast_to(a, shape),
)

LAYOUTS = (
    PLAIN,
    Layout(
        "from element 1",
        lambda shape: (math.prod(shape) + 1,),
        lambda _xp, a, shape: a[1:].reshape(shape),
    ),
    Layout(
        "from element 4",
        lambda shape: (math.prod(shape) + 4,),
        lambda _xp, a, shape: a[4:].reshape(shape),
    ),
    Layout(
        "middle columns",
        lambda shape: (*shape[:-1], shape[-1] + 3),
        lambda _xp, a, _shape: a[..., 1:-2],
    ),
    Layout(
        "every second column",
        lambda shape: (*shape[:-1], 2 * shape[-1]),
        lambda _xp, a, _shape: a[..., ::2],
    ),
    Layout("transposed", lambda shape: shape[::-1], reverse_axes),
)
"""Layouts of an input or an `out` that all libraries with views have."""


def layouts_of(library: Library) -> tuple[Layout, ...]:
    """Return the layouts that a library has; if there are several, the last is only for inputs."""
    if not library.has_out:
        return (PLAIN,)
    return (*LAYOUTS, *([BACKWARD] if library.name == "cupy" else []), EXPANDED)

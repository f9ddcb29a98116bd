"""The libraries, each in a module of its own.

A library itself is imported when an object of its class is made: it need not be installed.
"""

from collections.abc import Callable

from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.libraries.cupy import CuPy
from benchmarks.gpu.libraries.jax import Jax
from benchmarks.gpu.libraries.torch import Torch

LIBRARIES: dict[str, Callable[[str], Library]] = {"torch": Torch, "cupy": CuPy, "jax": Jax}
"""Each is made for a device, "cpu" or "cuda"; in the order of a run."""

"""The libraries, each in a module of its own.

A library itself is imported when an object of its class is made: it need not be installed.
"""

from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.libraries.cupy import CuPy
from benchmarks.gpu.libraries.jax import Jax
from benchmarks.gpu.libraries.torch import Torch

LIBRARIES: dict[str, type[Library]] = {"torch": Torch, "cupy": CuPy, "jax": Jax}
"""In the order of a run."""

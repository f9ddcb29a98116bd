"""The libraries, each in a module of its own.

Making an object of a class imports its library, so the others need not be installed.
"""

from collections.abc import Callable

from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.libraries.cupy import CuPy
from benchmarks.gpu.libraries.jax import Jax
from benchmarks.gpu.libraries.torch import Torch

LIBRARIES: dict[str, Callable[[str], Library]] = {"torch": Torch, "cupy": CuPy, "jax": Jax}
"""The classes by name, in the order of a run; each is made for a device, "cpu" or "cuda"."""

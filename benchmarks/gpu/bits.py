"""Elements as raw bits: dtypes of every width, random bits, and poison."""

import math

import numpy as np

from benchmarks.gpu.patterns import Shape

BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
"""For each width in bytes, a dtype that every library has."""

POISON = 0xA5
"""A byte that fills memory before a result is written into it."""


def random_bits(dtype: str, itemsize: int, shape: Shape, seed: int = 0) -> np.ndarray:
    """Draw raw elements of random bits, including NaN payloads and both zeros; bools are 0 or 1."""
    raw = np.random.default_rng(seed).integers(0, 256, math.prod(shape) * itemsize, np.uint8)
    if dtype == "bool":
        raw &= 1
    return raw.view(f"V{itemsize}").reshape(shape)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """View an array as bytes, in the order of its elements."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

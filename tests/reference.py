"""The oracle: Tile and Expand by index arithmetic on raw bytes, independent of the package."""

import numpy as np


def tiled(bits, repeats):
    """Take element ``i % n`` of each axis, which is how the specifications define a tile."""
    rank = max(bits.ndim, len(repeats))
    repeats = (1,) * (rank - len(repeats)) + tuple(repeats)
    bits = bits.reshape((1,) * (rank - bits.ndim) + bits.shape)
    return _take(bits, [n * r for n, r in zip(bits.shape, repeats, strict=True)])


def expanded(bits, shape):
    """Take element 0 of each axis of size 1, and keep the others."""
    rank = max(bits.ndim, len(shape))
    shape = (1,) * (rank - len(shape)) + tuple(shape)
    bits = bits.reshape((1,) * (rank - bits.ndim) + bits.shape)
    return _take(bits, [m if n == 1 else n for n, m in zip(bits.shape, shape, strict=True)])


def _take(bits, sizes):
    if not sizes:
        return bits.copy()
    return bits[np.ix_(*(np.arange(m) % max(n, 1) for m, n in zip(sizes, bits.shape, strict=True)))]

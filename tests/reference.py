"""The oracle: Tile and Expand by index arithmetic on raw bytes, independent of the package."""

import numpy as np


def tiled(bits, repeats):
    """Take element ``i % n`` of each axis, which is how the specifications define a tile."""
    bits, repeats = _aligned(bits, repeats)
    return _take(bits, [n * r for n, r in zip(bits.shape, repeats, strict=True)])


def expanded(bits, shape):
    """Take element 0 of each axis of size 1, and keep the others."""
    bits, shape = _aligned(bits, shape)
    return _take(bits, [m if n == 1 else n for n, m in zip(bits.shape, shape, strict=True)])


def _aligned(bits, counts):
    """Put ones before the shorter of an array's shape and the counts."""
    rank = max(bits.ndim, len(counts))
    shape = (1,) * (rank - bits.ndim) + bits.shape
    return bits.reshape(shape), (1,) * (rank - len(counts)) + tuple(counts)


def _take(bits, sizes):
    if not sizes:
        return bits.copy()
    return bits[np.ix_(*(np.arange(m) % max(n, 1) for m, n in zip(sizes, bits.shape, strict=True)))]

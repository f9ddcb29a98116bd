"""What only the strict library shows: that the agnostic route uses the standard and no more."""

import pytest

import tileops

pytestmark = pytest.mark.library("array_api_strict")


def test_every_version_and_device_of_the_standard():
    import array_api_strict as xp

    for version in ("2022.12", "2023.12", "2024.12"):
        with xp.ArrayAPIStrictFlags(api_version=version):
            assert tileops.tile(xp.ones((2, 1)), (2, 3)).shape == (4, 3)
    for name in ("CPU_DEVICE", "device1"):
        device = xp.Device(name)
        x = xp.asarray([1, 2], device=device)
        for result in (tileops.tile(x, 2), tileops.expand(x, (2, 2))):
            assert result.device == device


def test_an_unknown_size_is_refused():
    class Lazy:
        shape = (2, None)
        dtype = None

        def __array_namespace__(self):
            raise AssertionError

    with pytest.raises(tileops.ShapeError, match="axis 1 of the input has no known size"):
        tileops.tile(Lazy(), 2)


def test_sizes_that_are_numpy_integers():
    import array_api_strict as xp
    import numpy as np

    class Wide:
        """An array that gives its shape in NumPy's integers."""

        def __init__(self, values):
            self.values, self.dtype, self.device = values, values.dtype, values.device
            self.shape = tuple(map(np.int64, values.shape))

        def __array_namespace__(self, api_version=None):
            return xp

    with pytest.raises(tileops.ShapeError, match="must be equal or one of them 1"):
        tileops.expand(Wide(xp.ones(2)), (3,))
    with pytest.raises(tileops.OutputTooLargeError, match="max_bytes=1"):
        tileops.tile(Wide(xp.ones(2)), 2, max_bytes=1)

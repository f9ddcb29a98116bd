"""What only CuPy has: devices, streams, subclasses."""

import pytest

import tileops

pytestmark = pytest.mark.library("cupy")


@pytest.fixture
def cp():
    import cupy

    return cupy


def test_the_current_stream_is_used(cp):
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        x = cp.arange(1_000_000)
        result = tileops.tile(x, 3)
    stream.synchronize()
    assert (result.reshape(3, -1) == x).all()


def test_a_subclass_is_refused(cp):
    class Mine(cp.ndarray):
        pass

    with pytest.raises(TypeError, match="subclass whose meaning would be lost"):
        tileops.tile(cp.arange(3).view(Mine), 2)


def test_out_of_another_library_is_refused(cp):
    import numpy as np

    with pytest.raises(TypeError, match=r"out is numpy\.ndarray"):
        tileops.tile(cp.arange(3), 2, out=np.zeros(6, int))

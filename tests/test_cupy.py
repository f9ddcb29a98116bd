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


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("current", [0, 1])
def test_arrays_may_be_on_another_device_than_the_current_one(cp, current):
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device here")
    for device in range(2):
        with cp.cuda.Device(device):
            x, out = cp.arange(6).reshape(2, 3), cp.empty((4, 9), int)
        with cp.cuda.Device(current):
            result = tileops.tile(x, (2, 3))
            assert tileops.tile(x, (2, 3), out=out) is out
            assert tileops.expand(x, (4, 1, 1)).device == result.device == x.device
            assert cp.cuda.Device().id == current
            total = tileops.tile_adjoint(out, (2, 3), (2, 3))
        assert (result.get() == out.get()).all()
        assert (total.get() == 6 * x.get()).all()


@pytest.mark.usefixtures("thresholds")
def test_out_may_lie_between_the_elements_of_the_input(cp):
    """The library would copy all repeats of the input."""
    whole, pool = cp.arange(4000).reshape(4, 1000), cp.cuda.MemoryPool()
    x, out = whole[:, :2], whole[:, 3:999]
    expected = cp.tile(x, (1, 498)).get()
    with cp.cuda.using_allocator(pool.malloc):
        tileops.tile(x, (1, 498), out=out)
    assert (out.get() == expected).all()
    assert (whole[:, 999].get() == range(999, 4000, 1000)).all()
    assert pool.total_bytes() < out.nbytes / 4
    pool.free_all_blocks()


def test_a_subclass_is_refused(cp):
    class Mine(cp.ndarray):
        pass

    with pytest.raises(TypeError, match="subclass whose meaning would be lost"):
        tileops.tile(cp.arange(3).view(Mine), 2)


def test_out_of_another_library_is_refused(cp):
    import numpy as np

    with pytest.raises(TypeError, match=r"out is numpy\.ndarray"):
        tileops.tile(cp.arange(3), 2, out=np.zeros(6, int))

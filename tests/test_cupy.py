"""What only CuPy has: devices, streams, subclasses."""

import numpy as np
import pytest

import tileops
from tileops.execute import executor_named

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
def test_arrays_may_be_on_a_device_that_is_not_the_current_one(cp, current):
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
    """CuPy itself would copy all repeats of the input to temporary memory."""
    whole, pool = cp.arange(4000).reshape(4, 1000), cp.cuda.MemoryPool()
    x, out = whole[:, :2], whole[:, 3:999]
    expected = cp.tile(x, (1, 498)).get()
    with cp.cuda.using_allocator(pool.malloc):
        tileops.tile(x, (1, 498), out=out)
    assert (out.get() == expected).all()
    assert (whole[:, 999].get() == range(999, 4000, 1000)).all()
    assert pool.total_bytes() < out.nbytes / 4
    pool.free_all_blocks()


RECORDS = [
    np.dtype("i2,f8"),
    np.dtype("i1,i4", align=True),
    np.dtype({"names": ["a", "b"], "formats": ["i2", "i4"], "offsets": [1, 6], "itemsize": 12}),
]
"""Dtypes with unaligned fields, with gaps between fields, and with both."""


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("dtype", RECORDS, ids=str)
def test_records_keep_every_byte(cp, dtype):
    """CuPy's own copies leave the gaps unwritten, and refuse unaligned fields."""
    bits = np.random.default_rng(0).integers(1, 256, (3, 4, dtype.itemsize), np.uint8)
    x, out = (cp.asarray(array).view(dtype)[..., 0] for array in (bits, np.tile(bits, (4, 3, 1))))
    expected = np.tile(bits, (2, 3, 1))
    results = [tileops.tile(x, (2, 3)), tileops.tile(x[::-1], (2, 3))[::-1]]
    if dtype == RECORDS[0]:
        results.append(tileops.tile(x, (2, 3), out=out[::-2]))
    else:
        before = out.get().tobytes()
        with pytest.raises(tileops.OutputError, match="have gaps between their fields"):
            tileops.tile(x, (2, 3), out=out[::-2])
        assert out.get().tobytes() == before
    for result in results:
        assert result.dtype == dtype
        assert executor_named("cupy").to_numpy(result).tobytes() == expected.tobytes()


@pytest.mark.parametrize("device", [None, "cuda", "cuda:0"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", RECORDS[0]], ids=str)
def test_a_scalar_from_the_host_keeps_its_bits(dtype, device):
    """CuPy would clear the memory for a -0.0, and so lose its sign."""
    value, executor = np.array(-0.0).astype(dtype), executor_named("cupy")
    x = executor.from_numpy(value, device)
    assert (x.shape, x.dtype) == ((), value.dtype)
    assert executor.to_numpy(x).tobytes() == value.tobytes()


def test_values_are_read_in_the_stream_of_their_own_device(cp):
    """CuPy uses the stream of the current device: it raises an error, or does not wait."""
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device here")
    with cp.cuda.Device(0):
        x, counts = cp.arange(12).reshape(4, 3)[::2], cp.array([2, 9, 3])[::2]
    with cp.cuda.Device(1), cp.cuda.Stream(non_blocking=True):
        assert executor_named("cupy").to_numpy(x).tolist() == [[0, 1, 2], [6, 7, 8]]
        assert tileops.tile(x, counts).shape == (4, 9)


def test_a_subclass_is_refused(cp):
    class Mine(cp.ndarray):
        pass

    with pytest.raises(TypeError, match="subclass whose meaning would be lost"):
        tileops.tile(cp.arange(3).view(Mine), 2)


def test_out_of_another_library_is_refused(cp):
    import numpy as np

    with pytest.raises(TypeError, match=r"out is numpy\.ndarray"):
        tileops.tile(cp.arange(3), 2, out=np.zeros(6, int))


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "u4", "c8", "f8", "c16", "V3", "V5"])
@pytest.mark.parametrize("repeats", [2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 24, 25])
def test_each_element_is_followed_by_its_repeats(cp, dtype, repeats):
    dtype = np.dtype(dtype)
    bits = np.random.default_rng(repeats).integers(0, 2, (1000, dtype.itemsize), np.uint8)
    x = cp.asarray(bits).view(dtype)
    result = tileops.tile(x, (1, repeats))
    assert result.dtype == dtype
    assert result.get().tobytes() == np.tile(bits, (1, repeats)).tobytes()
    out = cp.empty((1000, repeats + 1), dtype)[:, 1:]
    tileops.tile(x, (1, repeats), out=out)
    assert out.get().tobytes() == result.get().tobytes()

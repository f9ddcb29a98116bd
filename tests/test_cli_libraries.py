"""The command line with libraries other than NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.library("torch", "jax", "dask")


def run(library, *words, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tileops", *map(str, words), "--library", library],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )


@pytest.fixture
def library(request):
    return request.config.getoption("--library")


def test_the_command_gives_the_results_of_numpy(library, tmp_path, rng):
    x = rng.integers(0, 256, (3, 2, 3), dtype=np.uint8)
    np.save(tmp_path / "x.npy", x)
    done = run(library, "tile", "x.npy", "y.npy", "--repeats", 2, 3, 1, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.tile(x, (2, 3, 1)))
    done = run(library, "expand", "x.npy", "y.npy", "--shape", 2, 1, 1, 1, cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "y.npy"), [x, x])


def test_64_bits_are_kept_or_refused(library, tmp_path):
    x = np.array([2**40, 2**62])
    np.save(tmp_path / "x.npy", x)
    words = ("tile", "x.npy", "y.npy", "--repeats", 2)
    done = run(library, *words, cwd=tmp_path)
    if library == "jax":
        assert (done.returncode, done.stdout) == (2, "")
        assert "JAX_ENABLE_X64=1" in done.stderr
        assert done.stderr.count("\n") == 1
        done = run(library, *words, cwd=tmp_path, JAX_ENABLE_X64="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.tile(x, 2))


def test_a_foreign_byte_order_is_kept_in_the_file(library, tmp_path):
    x = np.array([[1, 2**30]], ">i4")
    np.save(tmp_path / "x.npy", x)
    done = run(library, "tile", "x.npy", "y.npy", "--repeats", 2, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    result = np.load(tmp_path / "y.npy")
    assert result.dtype == x.dtype
    assert result.tolist() == [[1, 2**30] * 2]


@pytest.mark.parametrize("device", ["cpu", "CPU", "cpu:0"])
def test_a_device_may_be_spelled_as_for_the_onnx_backend(library, tmp_path, device):
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.int32))
    done = run(library, "tile", "x.npy", "y.npy", "--repeats", 2, "--device", device, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").tolist() == [0, 1, 2, 0, 1, 2]


def test_a_missing_device_is_refused_in_one_line(library, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.int32))
    words = ("tile", "x.npy", "y.npy", "--repeats", 2, "--device")
    for device in ("nowhere", "cpu:99", "cpu:x"):
        done = run(library, *words, device, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--device {device}: {library} has cpu" in done.stderr
        assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]


def test_a_dtype_that_the_library_lacks_is_refused_in_one_line(library, tmp_path):
    np.save(tmp_path / "x.npy", np.array(["a"]))
    done = run(library, "tile", "x.npy", "y.npy", "--repeats", 2, cwd=tmp_path)
    if library == "dask":  # its chunks are NumPy's arrays
        assert (done.returncode, done.stderr) == (0, "")
        assert np.load(tmp_path / "y.npy").tolist() == ["a", "a"]
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--library {library} cannot hold <U1 on its default device: " in done.stderr
        assert done.stderr.count("\n") == 1

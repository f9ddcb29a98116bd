"""What docs/guide.md says of the libraries' own operations still holds, and is right here."""

import subprocess
import sys

import numpy as np
import pytest

import tileops
import variants

INT8 = np.array([100, 100], np.int8)


@pytest.mark.library("numpy")
def test_the_readme_is_right_about_numpy():
    empty = np.empty((0, 3))
    assert np.tile(empty, (-1, 1)).shape == (0, 3)
    with pytest.raises(tileops.RepeatsError):
        tileops.tile(empty, (-1, 1))
    with pytest.raises(ValueError, match="reshape"), np.errstate(over="ignore"):
        np.tile(np.ones((2, 3)), INT8)
    assert tileops.tile(np.ones((2, 3)), INT8).shape == (200, 300)
    assert np.tile(np.ones(3), True).shape == (3,)
    assert np.tile(np.ndarray((2,), "U0"), 2).dtype == "U1"
    with pytest.raises(TypeError):
        np.tile(np.ones(3), 2, out=np.ones(6))
    for shape, target in (((3, 1), (2, 1, 6)), ((2, 3), (3,))):
        with pytest.raises(ValueError, match="operand"):
            np.broadcast_to(np.ones(shape), target)
    masked = np.ma.array([1, 2], mask=[0, 1])
    assert not np.any(np.broadcast_to(masked, (2, 2), subok=True).mask)


@pytest.mark.library("torch")
def test_the_readme_is_right_about_torch():
    import torch

    x = torch.ones(3)
    for counts in (2, torch.tensor([2])):
        with pytest.raises(TypeError, match="must be tuple of ints"):
            torch.tile(x, counts)
    with pytest.raises(NotImplementedError):
        torch.zeros(2, dtype=torch.uint8).view(torch.uint4).repeat(2)
    with pytest.raises(TypeError):
        torch.tile(x, (2,), out=torch.ones(6))
    for shape, target in (((3, 1), (2, 1, 6)), ((2, 3), (3,))):
        with pytest.raises(RuntimeError, match="expand"):
            torch.ones(shape).expand(target)
    assert torch.ones(3, 1).expand(2, -1, 6).shape == (2, 3, 6)
    with pytest.raises(RuntimeError, match="can not be smaller"):
        torch.ones(3, 1).repeat(2)


@pytest.mark.library("jax")
def test_the_readme_is_right_about_jax():
    import jax
    import jax.numpy as jnp

    assert jnp.tile(jnp.ones(3), True).shape == (3,)
    subnormal = jax.lax.bitcast_convert_type(jnp.ones((1, 1), jnp.uint16), jnp.bfloat16)
    if jax.default_backend() == "cpu" and variants.converts_bfloat16():
        for tile in (jnp.tile, jax.jit(tileops.tile, static_argnums=1)):
            assert not np.any(np.asarray(tile(subnormal, (3, 2))).view(np.uint16))
    assert np.all(np.asarray(tileops.tile(subnormal, (3, 2))).view(np.uint16) == 1)
    with pytest.raises(Exception, match="invalid tensor dimension size"):
        jnp.tile(jnp.ones(3), -1)
    for shape, target in (((3, 1), (2, 1, 6)), ((2, 3), (3,))):
        with pytest.raises(ValueError, match="broadcast"):
            jnp.broadcast_to(jnp.ones(shape), target)
    code = "import jax.numpy as jnp; jnp.tile(jnp.ones((1, 1)), (2**32, 2**32))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    by_a_signal = jax.__version_info__ < (0, 11)
    assert (done.returncode < 0) if by_a_signal else (done.returncode == 1)
    assert "overflow in static extent product" in done.stderr


@pytest.mark.library("dask")
def test_the_readme_is_right_about_dask():
    import dask.array as da

    assert da.tile(da.from_array(np.ones(3, ">f8")), 2).dtype == np.dtype("<f8")
    assert da.tile(da.ones(3), True).shape == (3,)
    for shape, target in (((3, 1), (2, 1, 6)), ((2, 3), (3,))):
        with pytest.raises(ValueError, match="broadcast"):
            da.broadcast_to(da.ones(shape), target)
    assert da.broadcast_to(da.ones((3, 1)), (3, 10**9)).numblocks == (1, 1)
    assert da.tile(da.ones((3, 1)), 1000).numblocks == (1, 1000)
    assert tileops.tile(da.ones((3, 1)), 1000).numblocks == (1, 1)
    masked = da.from_array(np.ma.array([1, 2], mask=[0, 1]), asarray=False)
    assert not np.ma.isMaskedArray(da.broadcast_to(masked, (2, 2)).compute())


@pytest.mark.library("array_api_strict")
def test_the_readme_is_right_about_the_standard():
    import array_api_strict as xp

    with pytest.raises(TypeError, match="must be a tuple"):
        xp.tile(xp.ones(3), 2)
    assert xp.tile(xp.ones(3), (True,)).shape == (3,)
    for shape, target in (((3, 1), (2, 1, 6)), ((2, 3), (3,))):
        with pytest.raises(ValueError, match=r"broadcast|operand"):
            xp.broadcast_to(xp.ones(shape), target)

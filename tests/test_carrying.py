"""Arrays carried into a library and back: refusals name the reason, copies are writable."""

import sys
import types

import numpy as np
import pytest

import tileops
from tileops import execute
from tileops.onnx import _carrying as carrying


@pytest.mark.library("jax")
def test_values_carried_to_the_host_are_writable():
    import jax.numpy as jnp

    values = carrying.to_host("Concat", jnp.arange(3))
    values[0] = 7
    assert values.tolist() == [7, 1, 2]


@pytest.mark.library("torch")
def test_values_that_are_writable_are_not_copied_to_the_host():
    import torch

    x = torch.arange(3)
    carrying.to_host("Concat", x)[0] = 7
    assert x.tolist() == [7, 1, 2]


@pytest.mark.library("numpy")
def test_arrays_of_numpy_are_not_copied_to_the_host():
    for x in (np.arange(3), np.broadcast_to(1, 3)):
        assert carrying.to_host("Concat", x) is x


@pytest.mark.library("array_api_strict")
@pytest.mark.parametrize("name", ["foreign", "array_api_strict.numpy"])
def test_a_library_that_makes_arrays_of_another_library_is_refused(name, monkeypatch):
    """Also a module of a library: its arrays are found under the name of the library."""
    import array_api_strict

    foreign = types.ModuleType(name)
    foreign.__dict__.update(vars(array_api_strict), __name__=name)
    monkeypatch.setitem(sys.modules, name, foreign)
    with pytest.raises(
        tileops.UnsupportedError,
        match=r"makes a .*\.Array, which is an array of the library 'array_api_strict'\)",
    ):
        carrying.executor_for(name)
    monkeypatch.setattr(foreign, "asarray", lambda x, **_: x.tolist())
    with pytest.raises(tileops.UnsupportedError, match=r"makes a list, which is no array\)"):
        carrying.executor_for(name)


@pytest.mark.library("torch")
def test_dtypes_and_devices_that_a_library_lacks_are_refused():
    torch = execute.executor_named("torch")
    with pytest.raises(tileops.DTypeError, match=r"^Tile-13: torch cannot hold string on its def"):
        carrying.to_library("Tile-13", np.array(["a"], object), torch, None)
    with pytest.raises(tileops.DTypeError, match=r"cannot hold float64 on its device nowhere: "):
        carrying.to_library("Tile-13", np.ones(1), torch, "nowhere")


@pytest.mark.library("array_api_strict")
def test_a_memory_error_of_the_library_is_passed_on(monkeypatch):
    strict = execute.executor_named("array_api_strict")

    def fail(*_, **_options):
        raise MemoryError

    values = strict.from_numpy(np.ones(1), None)
    monkeypatch.setattr("array_api_strict.asarray", fail)
    with pytest.raises(MemoryError):
        carrying.to_library("Tile-13", np.ones(1), strict, None)
    monkeypatch.setattr(type(strict), "to_numpy", fail)
    with pytest.raises(MemoryError):
        carrying.to_host("Concat", values)


@pytest.mark.library("array_api_strict")
@pytest.mark.parametrize("dtype", ["<i4", ">i4"])
def test_values_carried_to_a_library_are_a_copy_in_the_byte_order_of_the_machine(dtype):
    import array_api_strict as xp

    values = np.array([1, 2**30], dtype)
    carried = carrying.to_library("Tile-13", values, execute.executor_named(xp.__name__), None)
    values[0] = 7
    assert carried.dtype == xp.int32
    assert np.asarray(carried).tolist() == [1, 2**30]


@pytest.mark.library("array_api_strict")
@pytest.mark.parametrize(
    "name, found",
    [
        *(("cpu", "cpu"), ("CPU", "cpu"), ("cpu:0", "cpu"), ("cpu:1", None), ("cpu:00", None)),
        *(("gpu", "gpu"), ("GPU:0", "gpu:0"), ("gpu:1", "gpu:1"), ("gpu:2", None)),
        *(("", None), (":0", None), ("tpu", None), (None, None), (0, None)),
    ],
)
def test_a_device_is_found_by_its_kind_or_its_number(monkeypatch, name, found):
    executor = execute.executor_named("array_api_strict")
    monkeypatch.setattr(type(executor), "devices", lambda _: ["cpu", "gpu:0", "gpu:1"])
    assert executor.find_device(name) == found


@pytest.mark.library("numpy")
def test_a_library_that_cannot_start_is_refused(tmp_path, monkeypatch):
    """The import of a library may raise any error: a missing driver, a missing file."""
    (tmp_path / "driverless.py").write_text("raise RuntimeError('the driver is too old')")
    monkeypatch.syspath_prepend(tmp_path)
    for make in (tileops.onnx.backend.for_library, tileops.onnx.reference.ops):
        with pytest.raises(tileops.UnsupportedError, match=r"'driverless' .*driver is too old"):
            make("driverless")


@pytest.mark.library("numpy")
def test_a_library_that_is_missing_is_not_recommended(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # makes its import fail
    with pytest.raises(
        tileops.UnsupportedError,
        match="; install it, or pass one of 'numpy', 'torch', 'jax', 'dask', or the name",
    ):
        carrying.executor_for("cupy")

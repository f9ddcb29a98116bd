"""PyTorch's side of the kernel on a GPU, tested without one: a stand-in replaces the driver."""

import ctypes
import sys
from enum import IntEnum
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import kernels
import tileops
from tileops._copies.gpu import Variant
from tileops.execute import device, host

pytestmark = pytest.mark.library("torch")


class Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2


class Driver:
    """Runs a kernel on the host, with the arguments that a device would get."""

    CUresult = Result

    def __init__(self):
        self.is_too_old = False
        self.sources, self.loaded, self.launched, self.devices, self.results = [], [], [], [], []

    def compiled(self, source, _):
        self.sources.append(source)
        if self.is_too_old:
            raise RuntimeError("the compiler knows no such GPU")
        return source.encode()

    def cuLibraryLoadData(self, cubin, *_):  # noqa: N802 (NVIDIA's name)
        self.loaded.append(cubin.decode())
        return Result.CUDA_SUCCESS, len(self.loaded) - 1

    def cuLibraryGetKernel(self, library, name):  # noqa: N802
        assert f" {name.decode()}(" in self.loaded[library]
        return Result.CUDA_SUCCESS, library

    def CUfunction(self, kernel):  # noqa: N802
        return kernel

    def cudaSetDevice(self, index):  # noqa: N802
        self.devices.append(index)
        return (Result.CUDA_SUCCESS,)

    def cuLaunchKernel(self, kernel, x, y, z, *rest):  # noqa: N802
        *threads, shared, stream, arguments, extra = rest
        assert (z, threads, shared, stream, extra) == (1, [device.THREADS, 1, 1], 0, 7, 0)
        result = self.results.pop(0) if self.results else Result.CUDA_SUCCESS
        if result == Result.CUDA_SUCCESS:
            source, target, launch = (ctypes.c_void_p * 3).from_address(arguments)
            addresses = (ctypes.c_void_p.from_address(each).value for each in (source, target))
            defined = dict(line.split()[1:] for line in self.loaded[kernel].splitlines()[:9])
            variant = Variant(*(int(defined[name.upper()]) for name in Variant._fields))
            prepared = device.Prepared(variant, (x, y), None, launch)
            kernels.launch(prepared, *addresses)
            self.launched.append(variant)
        return (result,)


def install(monkeypatch, driver, nvrtc_version):
    """Replace NVIDIA's bindings by a stand-in, and treat tensors of the CPU as a GPU's."""
    from tileops.execute import torch_bytes

    bindings = ModuleType("cuda.bindings")
    bindings.driver, bindings.runtime = driver, driver
    bindings.nvrtc = SimpleNamespace(nvrtcVersion=nvrtc_version)
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setattr(torch_bytes, "_is_on_gpu", lambda _: True)
    monkeypatch.setattr(torch_bytes, "_FEWEST", 1)
    monkeypatch.setattr(host, "LEAST", 1)


@pytest.fixture
def driver(monkeypatch):
    """Make number -1, which tensors of the CPU have, the current device."""
    import torch

    import tileops.execute
    from tileops.execute import torch_bytes

    found = Driver()
    install(monkeypatch, found, lambda: (Result.CUDA_SUCCESS, 13, 0))
    file = Path(tileops.execute.__file__).with_name("torch_cuda.py")
    spec = spec_from_file_location("torch_cuda_of_a_stand_in", file)
    torch_cuda = module_from_spec(spec)
    spec.loader.exec_module(torch_cuda)
    monkeypatch.setattr(torch_cuda, "_compiled", found.compiled)
    monkeypatch.setattr(torch_bytes, "_cuda", lambda: torch_cuda)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: -1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _: 7, raising=False)
    return found


def tiled(x, repeats):
    return np.tile(x.numpy(), repeats).tobytes()


def test_a_kernel_is_compiled_once_and_launched_with_its_arguments(driver):
    import torch

    x = torch.arange(48, dtype=torch.int16).reshape(12, 4)
    for repeats in ((1, 5), (2, 5), (1, 5)):
        assert tileops.tile(x, repeats).numpy().tobytes() == tiled(x, repeats)
        assert tileops.tile(x.T, repeats).numpy().tobytes() == tiled(x.T, repeats)
        out = torch.zeros(12 * repeats[0], 24, dtype=torch.int16)[:, 4:]
        assert tileops.tile(x, repeats, out=out) is out
        assert out.numpy().tobytes() == tiled(x, repeats)
    assert len(driver.launched) == 9
    assert len(driver.loaded) == len(set(driver.launched)) > 1


def test_the_device_is_set_in_the_driver_before_each_launch(driver):
    """A thread may be new to the device, and PyTorch may not have told the driver of a change."""
    import torch

    for _ in range(2):
        assert tileops.tile(torch.arange(8), 3).tolist() == [*range(8)] * 3
    assert driver.devices == [-1, -1]


def test_torchs_own_kernel_is_used_where_no_other_can_be_built(driver):
    """Compilation is tried only once, and `out` is still marked as written."""
    import torch

    driver.is_too_old = True
    x, out = torch.arange(8), torch.empty(24, dtype=torch.int64)
    version = out._version
    for _ in range(2):
        assert tileops.tile(x, 3).tolist() == [*range(8)] * 3
        assert tileops.tile(x, 3, out=out).tolist() == [*range(8)] * 3
    assert out._version > version
    assert len(driver.sources) == 1
    assert driver.launched == []


def test_narrow_stores_are_left_to_torchs_own_kernel(driver):
    import torch

    x, out = torch.arange(64, dtype=torch.uint8), torch.empty(129, dtype=torch.uint8)[1:]
    assert tileops.tile(x, 2, out=out).tolist() == [*range(64)] * 2
    assert driver.launched == []


def test_a_failed_launch_raises_an_error(driver):
    import torch

    driver.results = [Result.CUDA_ERROR_OUT_OF_MEMORY]
    with pytest.raises(RuntimeError, match=r"^CUDA: .*CUDA_ERROR_OUT_OF_MEMORY"):
        tileops.tile(torch.arange(8), 3)


def test_a_tensor_of_another_device_is_copied_on_that_device(driver, monkeypatch):
    import torch

    class Guard:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            monkeypatch.setattr(torch.cuda, "current_device", lambda: self.index)

        def __exit__(self, *_):
            monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "device", Guard)
    assert tileops.tile(torch.arange(8), 3).tolist() == [*range(8)] * 3
    assert len(driver.launched) == 1
    assert torch.cuda.current_device() == 1


VARIANTS = [
    Variant(16, 16, 0, 1, crosses=False, is_run=False, bits=32, inner_bits=32),
    Variant(16, 16, 3, 1, crosses=False, is_run=False, bits=64, inner_bits=64),
    Variant(8, 16, 1, 1, crosses=True, is_run=False, bits=32, inner_bits=32),
    Variant(4, 16, 2, 2, crosses=True, is_run=False, bits=32, inner_bits=64),
    Variant(2, 16, 3, 1, crosses=True, is_run=True, bits=32, inner_bits=32),
    Variant(1, 16, 1, 3, crosses=False, is_run=False, bits=64, inner_bits=32),
    Variant(1, 4, 0, 1, crosses=False, is_run=True, bits=32, inner_bits=32),
    Variant(1, 2, 2, 1, crosses=True, is_run=False, bits=32, inner_bits=32),
    Variant(1, 1, 2, 1, crosses=False, is_run=False, bits=32, inner_bits=32),
]


def test_kernels_compile_for_old_and_new_gpus():
    """This needs PyTorch's packages for CUDA, or NVIDIA's bindings and compiler."""
    try:
        from tileops.execute import torch_cuda
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"nothing compiles CUDA here: {error}")
    for variant in VARIANTS:
        for capability in ((7, 5), (8, 9), (9, 0), (12, 1)):
            cubin = torch_cuda._compiled(device.text(variant), capability)
            assert cubin[:4] == b"\x7fELF"
            assert device.NAME.encode() in cubin
    with pytest.raises(RuntimeError, match=r"^a kernel of tileops does not compile:\nrepeat\.cu"):
        torch_cuda._compiled("nonsense", (9, 0))


@pytest.mark.parametrize("missing", ["bindings", "compiler"])
def test_torchs_own_kernel_is_used_without_bindings_or_compiler(monkeypatch, missing):
    import torch

    import tileops.execute
    from tileops.execute import torch_bytes

    def fail():
        raise RuntimeError("the compiler is not found")

    install(monkeypatch, Driver(), fail)
    if missing == "bindings":
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.delitem(sys.modules, "tileops.execute.torch_cuda", raising=False)
    monkeypatch.delattr(tileops.execute, "torch_cuda", raising=False)
    monkeypatch.setattr(torch_bytes, "_cuda", torch_bytes._cuda.__wrapped__)
    assert torch_bytes._cuda() is None
    assert tileops.tile(torch.arange(8), 3).tolist() == [*range(8)] * 3
    out = torch.empty(24, dtype=torch.int64)
    assert tileops.tile(torch.arange(8), 3, out=out).tolist() == [*range(8)] * 3

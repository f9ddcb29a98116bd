"""PyTorch's tensors on NVIDIA GPUs: our own kernel, launched by NVIDIA's Python bindings.

On Linux, PyTorch's packages for CUDA depend on the bindings, and bring the compiler. Importing this
module raises ImportError without the bindings, and RuntimeError without the compiler.
"""

import ctypes
from functools import cache
from typing import Any

import torch
from cuda.bindings import driver, nvrtc, runtime

from tileops._copies.gpu import Variant
from tileops._plan import Plan
from tileops.execute import device
from tileops.execute._memory import alignment_of

nvrtc.nvrtcVersion()  # raises a RuntimeError without the compiler

_POINTER = ctypes.sizeof(ctypes.c_void_p)
_Two, _Three = ctypes.c_void_p * 2, ctypes.c_void_p * 3


def repeat(x: Any, plan: Plan, out: Any) -> bool:
    """Queue a repetition in the current stream of the tensors' device.

    Return False if PyTorch's own kernel is as fast, or if ours cannot be built for this device.
    """
    index, source, target = x.get_device(), x.data_ptr(), out.data_ptr()
    if index != torch.cuda.current_device():
        with torch.cuda.device(index):
            return repeat(x, plan, out)
    size, alignments = x.element_size(), (alignment_of(source), alignment_of(target))
    prepared = device.prepare(plan, x.stride(), out.stride(), size, size, *alignments)
    if prepared is None or (kernel := _kernel(prepared.variant, index)) is None:
        return False
    addresses = _Two(source, target)
    start = ctypes.addressof(addresses)
    arguments = _Three(start, start + _POINTER, prepared.address)
    stream = torch._C._cuda_getCurrentRawStream(index)  # noqa: SLF001 (a 30th of a Stream's time)
    # The driver's current context may be that of another device: PyTorch sets this device's context
    # only when PyTorch itself next calls CUDA in this thread.
    _checked(runtime.cudaSetDevice(index))
    sizes = (*prepared.grid, 1, device.THREADS, 1, 1, 0)
    _checked(driver.cuLaunchKernel(kernel, *sizes, stream, ctypes.addressof(arguments), 0))
    return True


@cache
def _kernel(variant: Variant, index: int) -> Any:
    """Compile a kernel for a device, and load it there for good.

    Return None if that fails, for example because the compiler or the driver is too old or too new
    for the device.
    """
    try:
        cubin = _compiled(device.text(variant), torch.cuda.get_device_capability(index))
        library = _checked(driver.cuLibraryLoadData(cubin, [], [], 0, [], [], 0))
        kernel = _checked(driver.cuLibraryGetKernel(library, device.NAME.encode()))
    except RuntimeError:
        return None
    return driver.CUfunction(int(kernel))


def _compiled(kernel: str, capability: tuple[int, int]) -> bytes:
    major, minor = capability
    known = _checked(nvrtc.nvrtcGetSupportedArchs())
    # A kernel compiled for one GPU also runs on later GPUs of the same generation.
    fitting = [number for number in known if number // 10 == major and number % 10 <= minor]
    if not fitting:
        raise RuntimeError(f"the compiler knows no GPU of the generation {major}.{minor}: {known}")
    program = _checked(nvrtc.nvrtcCreateProgram(kernel.encode(), b"repeat.cu", 0, [], []))
    try:
        options = [f"--gpu-architecture=sm_{max(fitting)}".encode()]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytes(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
            _checked(nvrtc.nvrtcGetProgramLog(program, log))
            text = log.decode().rstrip("\0\n")
            raise RuntimeError(f"a kernel of tileops does not compile:\n{text}")
        cubin = bytes(_checked(nvrtc.nvrtcGetCUBINSize(program)))
        _checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return cubin


def _checked(returned: tuple[Any, ...]) -> Any:
    """Return the value that a function of CUDA returns after its status, or raise an error."""
    status, *values = returned
    if status != 0:
        raise RuntimeError(f"CUDA: {status!r}")
    return values[0] if values else None

"""The GPU copy kernel, compiled for the host so that its bits can be tested without a GPU."""

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path

import pytest

from tileops.execute import device
from tileops.execute._memory import Memory, alignment_of

_HEADER = Path(__file__).with_name("cuda_on_host.h")

_ENTRIES = """
extern "C" void run(
    const char* source, char* target, const Launch* launch, unsigned x, unsigned y) {
    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)
            for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
                tileops_repeat(source, target, *launch);
}

extern "C" void run_thread(
    const char* source, char* target, const Launch* launch, unsigned x, unsigned y,
    unsigned thread) {
    blockIdx.x = x;
    blockIdx.y = y;
    threadIdx.x = thread;
    tileops_repeat(source, target, *launch);
}
"""

_OPTIONS = (
    *("-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing"),
    # CUDA faults on words that are not aligned to their size, and so does this build.
    *("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"),
)


def repeat(x, plan, out):
    """Call `torch_cuda.repeat`, or do the same on the host if the tensors lie in host memory."""
    if x.is_cuda:
        from tileops.execute import torch_cuda

        return torch_cuda.repeat(x, plan, out)
    size = x.element_size()
    source, target = (
        Memory(t.data_ptr(), tuple(t.shape), tuple(s * size for s in t.stride()), size, t)
        for t in (x, out)
    )
    return run(plan, source, target)


def run(plan, source, target):
    """Repeat one host memory into another; return False if no kernel is worth launching."""
    prepared = prepare(plan, source, target)
    if prepared is None:
        return False
    launch(prepared, source.address, target.address)
    return True


def prepare(plan, source, target):
    """Plan how to repeat one memory into another."""
    alignments = (alignment_of(memory.address) for memory in (source, target))
    return device.prepare(plan, source.strides, target.strides, 1, source.itemsize, *alignments)


def launch(prepared, source, target):
    """Run a prepared launch on a source and a target address."""
    run = library(prepared.variant).run
    run(*map(ctypes.c_void_p, (source, target, prepared.address)), *prepared.grid)


def stores_of(prepared, source, target, store, block):
    """Run one thread on addresses without memory; return the addresses and bytes it stores.

    The bytes it loads are those that `read` gives.
    """
    found = library(prepared.variant, "-DRECORDED")
    addresses = map(ctypes.c_void_p, (source, target, prepared.address))
    x, thread = divmod(store, device.THREADS)
    found.run_thread(*addresses, x, block, thread)
    count = ctypes.c_uint.in_dll(found, "recorded").value
    records = (_Record * count).in_dll(found, "records")
    stores = [(record.address, bytes(record.bytes[: record.size])) for record in records]
    ctypes.c_uint.in_dll(found, "recorded").value = 0
    return stores


def read(address):
    """Return the byte that a load from an address without memory gives."""
    return (address * 0x9E3779B97F4A7C15 >> 56) & 0xFF


class _Record(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("bytes", ctypes.c_ubyte * 16),
    )


def library(variant, *options):
    """Return a kernel compiled for the host; threads that ask at once share one compilation."""
    with _compiling:
        return _library(variant, *options)


_compiling = threading.Lock()


@cache
def _library(variant, *options):
    compiler = shutil.which("c++")
    if compiler is None and not os.environ.get("CI"):
        pytest.skip("there is no C++ compiler, which the kernel needs to run on the host")
    name = "-".join(str(int(value)) for value in variant)
    built = _folder() / f"{name}{''.join(options)}.so"
    text = f'#include "{_HEADER}"\n{device.text(variant)}{_ENTRIES}'
    command = [compiler, *_OPTIONS, *options, "-o", built, "-"]
    subprocess.run(command, input=text, text=True, check=True)
    return ctypes.CDLL(str(built))


@cache
def _folder():
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)

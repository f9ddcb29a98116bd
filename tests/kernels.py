"""The kernel of copies on GPUs, compiled for the host: its bits can be tested without a GPU."""

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tileops.execute import device
from tileops.execute._memory import Memory, alignment_of

_HEADER = Path(__file__).with_name("cuda_on_host.h")

_GRID = """
extern "C" void run(const char* source, char* target, const Nest* nest, unsigned x, unsigned y) {
    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)
            for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
                tileops_repeat(source, target, *nest);
}
"""

_OPTIONS = (
    *("-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing"),
    # CUDA faults on words across their alignment, and so does this.
    *("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"),
)


def repeat(x, plan, out):
    """Do what `torch_cuda.repeat` does, on the host if the tensors lie there."""
    if x.is_cuda:
        from tileops.execute import torch_cuda

        torch_cuda.repeat(x, plan, out)
        return
    size = x.element_size()
    source, target = (
        Memory(t.data_ptr(), tuple(t.shape), tuple(s * size for s in t.stride()), size)
        for t in (x, out)
    )
    run(plan, source, target)


def run(plan, source, target):
    """Repeat one memory of the host into another."""
    alignments = (alignment_of(memory.address) for memory in (source, target))
    prepared = device.prepare(plan, source.strides, target.strides, source.itemsize, *alignments)
    launch(prepared, source.address, target.address)


def launch(prepared, source, target):
    """Run a launch between two addresses; its nest may be an address, too."""
    nest = prepared.nest if isinstance(prepared.nest, int) else prepared.nest.ctypes.data
    run = _library(prepared.variant).run
    run(*map(ctypes.c_void_p, (source, target, nest)), *prepared.grid)


@cache
def _library(variant):
    compiler = shutil.which("c++")
    if compiler is None and not os.environ.get("CI"):
        pytest.skip("there is no C++ compiler, which the kernel needs to run on the host")
    built = _folder() / f"{'-'.join(str(int(value)) for value in variant)}.so"
    text = f'#include "{_HEADER}"\n{device.source(variant)}{_GRID}'
    subprocess.run([compiler, *_OPTIONS, "-o", built, "-"], input=text, text=True, check=True)
    return ctypes.CDLL(str(built))


@cache
def _folder():
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)

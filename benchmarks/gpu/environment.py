"""The step ``environment``: the facts that the figures depend on."""

import datetime as dt
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import tileops
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.libraries.jax import Jax
from benchmarks.gpu.run import Run, say

PACKAGES = (
    *("array-tileops", "numpy", "ml_dtypes", "torch", "cuda-bindings", "triton", "jax", "jaxlib"),
    *("cupy-cuda13x", "cupy-cuda12x", "jax-cuda13-plugin", "jax-cuda12-plugin"),
)


def describe(run: Run) -> None:
    """Describe the machine and the software that the figures depend on."""
    found = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": command(sys.argv[1:]),
        "device": run.device,
        "scale": run.scale,
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "tileops": tileops.__version__,
        "packages": {p: version for p in PACKAGES if (version := version_of(p))},
    }
    run.results["environment"] = found
    found["nvidia-smi"] = nvidia_smi()
    for library in run.libraries:
        with run.attempt(f"environment of {library.name}"):
            found.update(DESCRIPTIONS[library.name](library) if run.is_gpu else {})
    for name, value in found.items():
        say(f"  {name}: {value}")


def command(words: list[str]) -> str:
    """Return the command of a run, without the path of its results."""
    before = ("", *words)
    parts = [
        word
        for last, word in zip(before, words, strict=False)
        if last != "--out" and word.partition("=")[0] != "--out"
    ]
    return " ".join(["python -m benchmarks.gpu", *parts])


def version_of(package: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def nvidia_smi() -> str | None:
    """Ask the driver for the card's name, versions, and present clocks and limits."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    asked = "name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    asked += ",power.limit,temperature.gpu,mig.mode.current"
    line = [command, f"--query-gpu={asked}", "--format=csv"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603 (no part of it comes from outside)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def describe_torch(library: Library) -> dict[str, Any]:
    """Describe the card as PyTorch sees it."""
    card = library.xp.cuda.get_device_properties(0)
    return {
        "card": card.name,
        "capability": f"{card.major}.{card.minor}",
        "multiprocessors": card.multi_processor_count,
        "memory bytes": card.total_memory,
        "free bytes": library.free_bytes(),
        "L2 bytes": getattr(card, "L2_cache_size", None),
        "CUDA of torch": library.xp.version.cuda,
    }


def describe_cupy(library: Library) -> dict[str, Any]:
    """Name the versions that CuPy runs with."""
    runtime = library.xp.cuda.runtime
    card = runtime.getDeviceProperties(0)
    return {
        "CUDA of cupy": runtime.runtimeGetVersion(),
        "CUDA of the driver": runtime.driverGetVersion(),
        "L2 bytes, cupy": card["l2CacheSize"],
        "cupy knows bfloat16": "bfloat16" in library.dtypes(),
    }


def describe_jax(library: Jax) -> dict[str, Any]:
    """Name the device that JAX runs on."""
    return {"jax device": f"{library.place.device_kind}, {library.place.client.platform_version}"}


DESCRIPTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "torch": describe_torch,
    "cupy": describe_cupy,
    "jax": describe_jax,
}

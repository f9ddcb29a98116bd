"""Checks of streams, graphs and threads, and that no call makes the host wait."""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import tileops
from benchmarks.gpu.assertions import require, require_bytes, require_result
from benchmarks.gpu.bits import BITS, POISON, as_bytes, random_bits
from benchmarks.gpu.correctness.checks import Checks, outcome
from benchmarks.gpu.libraries.base import Call, Library
from benchmarks.gpu.patterns import PATTERNS, Pattern

SPIN = 50_000_000
"""Cycles that keep a stream busy for at least 25 ms, longer than the host needs for any call."""


def check_streams(checks: Checks) -> None:
    """Check that work stays in its own stream, and that the host does not wait for it."""
    library = checks.library
    if not checks.run.is_gpu:
        checks.leave_out("a CPU has no streams")
        return
    for pattern in PATTERNS:
        sized = pattern.sized(2**22, 16)
        with checks.case(f"stream {sized.shape} x {sized.repeats}"):
            require_stream(library, sized)
        with checks.case(f"the host does not wait {sized.shape} x {sized.repeats}"):
            require_no_wait(library, sized)


def require_stream(library: Library, pattern: Pattern) -> None:
    """Write the input late in a stream: a call that read it in another stream would read poison."""
    bits = random_bits("uint8", 1, pattern.shape)
    late = library.from_bits(bits, "uint8")
    x = library.from_bits(np.full(pattern.shape, POISON, np.uint8).view("V1"), "uint8")
    stream = library.new_stream()
    library.synchronize()
    with library.use(stream):
        library.spin(SPIN)
        library.assign(x, late)
        result = tileops.tile(x, pattern.repeats)
        stream.synchronize()
        require_bytes(library.bits(result), as_bytes(np.tile(bits, pattern.repeats)))


def require_no_wait(library: Library, pattern: Pattern) -> None:
    """Require each call to return while its stream is still busy with earlier work."""
    x = library.random(pattern.shape, "uint8")
    out = library.tile(x, pattern.repeats)
    shape = tuple(out.shape)
    stream = library.new_stream()
    calls: dict[str, Call] = {
        "tile": lambda: tileops.tile(x, pattern.repeats),
        "out=": lambda: tileops.tile(x, pattern.repeats, out=out),
    }
    if pattern.is_expand:
        calls["expand"] = lambda: tileops.expand(x, shape, copy=True)
    library.synchronize()
    with library.use(stream):
        for name, call in calls.items():
            call()  # compiles and takes memory from the driver, both of which wait
            stream.synchronize()
            library.spin(SPIN)
            result = call()
            is_busy = not library.is_done(stream)
            stream.synchronize()
            del result
            require(is_busy, f"{name} waits for the device")


def check_sync_mode(checks: Checks) -> None:
    """Make first and second calls while PyTorch treats any synchronisation as an error."""
    if not checks.run.is_gpu:
        checks.leave_out("a CPU has nothing to wait for")
        return
    library = checks.library
    for itemsize, dtype in BITS.items():
        for pattern in PATTERNS:
            shape, repeats = pattern.sized(2**22 // itemsize, 16)
            x = library.random(shape, dtype)
            out = library.tile(x, repeats)
            with checks.case(f"{dtype} {shape} x {repeats}"), synchronisation_forbidden(library):
                for _ in range(2):
                    tileops.tile(x, repeats)
                    tileops.tile(x, repeats, out=out)
                    if pattern.is_expand:
                        tileops.expand(x, tuple(out.shape), copy=True)
    with checks.case("the mode sees a synchronisation"):
        with synchronisation_forbidden(library):
            found = outcome(out.cpu)
        require(found.startswith("RuntimeError"), f"a copy to the host {found}")


@contextlib.contextmanager
def synchronisation_forbidden(library: Library) -> Iterator[None]:
    """Make PyTorch raise an error wherever the host would wait for the device."""
    cuda = library.xp.cuda
    cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        cuda.set_sync_debug_mode("default")


def check_graph(checks: Checks) -> None:
    """Capture calls in a CUDA graph, and replay it with other values."""
    if not checks.run.is_gpu:
        checks.leave_out("a CPU has no graphs")
        return
    library, torch = checks.library, checks.library.xp
    for pattern in PATTERNS:
        shape, repeats = pattern.sized(2**20, 16)
        bits = random_bits("uint8", 1, shape, seed=5)
        with checks.case(f"graph {shape} x {repeats}"):
            x = library.random(shape, "uint8")
            side = library.new_stream()
            with library.use(side):
                tileops.tile(x, repeats)
            library.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                result = tileops.tile(x, repeats)
            x.copy_(library.from_bits(bits, "uint8"))
            graph.replay()
            require_result(library, x, result, np.tile(bits, repeats))


def check_threads(checks: Checks) -> None:
    """Call in two threads at once, on the default stream and on streams of their own.

    First, call in a thread that has not used the device before.
    """
    library = checks.library
    sized = PATTERNS[7].sized(checks.elements(1), 16)
    with checks.case(f"first use {sized.shape} x {sized.repeats}"):
        bits = random_bits("uint8", 1, sized.shape, seed=1)
        x, expected = library.from_bits(bits, "uint8"), np.tile(bits, sized.repeats)
        out = library.empty(expected.shape, x)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(tileops.tile, x, sized.repeats, out=out).result()
        require_result(library, x, out, expected)
    streams = [False, True] if checks.run.is_gpu else [False]
    for pattern, has_stream in itertools.product((PATTERNS[3], PATTERNS[7], PATTERNS[8]), streams):
        sized = pattern.sized(checks.elements(1), 16)
        name = "own streams" if has_stream else "one stream"
        with checks.case(f"{name} {sized.shape} x {sized.repeats}"):
            errors: list[BaseException] = []
            threads = [
                threading.Thread(target=call_often, args=(library, sized, seed, has_stream, errors))
                for seed in range(2)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors:
                raise errors[0]


def call_often(
    library: Library, pattern: Pattern, seed: int, has_stream: bool, errors: list[BaseException]
) -> None:
    """Tile different arrays in one thread, and record its first error."""
    try:
        stream = library.new_stream() if has_stream else None
        with library.use(stream) if has_stream else contextlib.nullcontext():
            for number in range(10):
                bits = random_bits("uint8", 1, pattern.shape, seed=100 * seed + number)
                x = library.from_bits(bits, "uint8")
                result = tileops.tile(x, pattern.repeats)
                require_result(library, x, result, np.tile(bits, pattern.repeats))
    except Exception as error:  # noqa: BLE001 (the main thread raises it)
        errors.append(error)

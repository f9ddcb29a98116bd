"""The step ``correctness``: groups of checks, each for the libraries that have its features."""

import contextlib
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.gpu.correctness import concurrency, large, memory, tensors, values
from benchmarks.gpu.correctness.checks import Checks
from benchmarks.gpu.libraries.base import Library
from benchmarks.gpu.planning import always_planned
from benchmarks.gpu.run import Run, say


class Group(NamedTuple):
    """Checks that belong together.

    Checks of small results run a second time with every copy planned.
    """

    check: Callable[[Checks], None]
    libraries: tuple[str, ...] = ("torch", "cupy", "jax")
    is_small: bool = True


GROUPS = {
    "the checks": Group(values.check_the_checks, is_small=False),
    "dtypes": Group(values.check_dtypes),
    "empty": Group(values.check_empty),
    "ranks": Group(values.check_ranks),
    "large": Group(large.check_large, ("torch", "cupy"), is_small=False),
    "huge": Group(large.check_huge, ("torch", "cupy"), is_small=False),
    "streams": Group(concurrency.check_streams, ("torch", "cupy")),
    "synchronisation": Group(concurrency.check_sync_mode, ("torch",)),
    "graph": Group(concurrency.check_graph, ("torch",)),
    "threads": Group(concurrency.check_threads, ("torch", "cupy")),
    "memory": Group(memory.check_memory, ("torch", "cupy"), is_small=False),
    "out": Group(values.check_outs, ("torch", "cupy")),
    "patterns": Group(values.check_patterns),
    "conj and neg": Group(tensors.check_conj_neg, ("torch",)),
    "gradients": Group(tensors.check_gradients, ("torch",)),
}
"""The groups, in the order in which a run with too little time should do them."""


def check(run: Run) -> None:
    """Compare bits with NumPy's."""
    found: dict[str, Any] = {library.name: {} for library in run.libraries}
    run.results["correctness"] = found
    for name, group in GROUPS.items():
        for library, is_planned in itertools.product(run.libraries, (True, False)):
            is_other = is_planned and not (group.is_small and library.has_out)
            if library.name in group.libraries and not is_other:
                check_group(run, library, name, found[library.name], is_planned=is_planned)


def check_group(
    run: Run, library: Library, name: str, found: dict[str, Any], *, is_planned: bool
) -> None:
    """Run a group of checks on one library."""
    title = f"{name}, planned" if is_planned else name
    if not run.has_time(f"{library.name}, {title}"):
        return
    checks = Checks(run, library, found)
    checks.start(title)
    before, start = len(checks.failed), time.monotonic()
    context = always_planned(run.device) if is_planned else contextlib.nullcontext()
    with run.attempt(f"{library.name}, {title}"), context:
        GROUPS[name].check(checks)
    text = f"{checks.passed[title]} pass, {len(checks.failed) - before} fail"
    say(f"  {library.name}, {title}: {text} ({time.monotonic() - start:.1f} s)")
    library.release()

"""The command ``python -m benchmarks.gpu``: check results on a GPU bit for bit, and measure speed.

One run takes a few minutes and works without a network. After each part it writes what it has
found so far, so that an interrupted run keeps its results. Where there is no GPU, ``--device cpu``
runs the same code with small arrays: to check that the script works, not to measure.

The seconds of a call are the median over rounds that alternate between the sides of a comparison.
In each round, a side is called many times in a row, as in a program that does not wait for each
result, and the device's own events measure the time. The result of a call lives until the next
call has returned, so two buffers take turns.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.gpu import ceilings, correctness, crossover, environment, report, speed
from benchmarks.gpu.libraries import LIBRARIES
from benchmarks.gpu.run import Run, say
from benchmarks.gpu.timing import rounded


class Step(NamedTuple):
    """A part of a run, and its share of the time."""

    function: Callable[[Run], None]
    share: float


STEPS = {
    "environment": Step(environment.describe, 0.02),
    "ceilings": Step(ceilings.measure, 0.05),
    "correctness": Step(correctness.check, 0.6),
    "speed": Step(speed.measure, 0.15),
    "crossover": Step(crossover.measure, 0.2),
    "tables": Step(report.show, 0.01),
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--out",
        type=Path,
        help="the file of results: docs/benchmarks/gpu.json, whose figures are shown; on a CPU "
        "build/benchmarks/gpu.json",
    )
    parser.add_argument("--scale", type=float, help="fraction of the full sizes")
    parser.add_argument("--minutes", type=float, default=8.0, help="how long a run may take")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    options = parser.parse_args()
    options.steps = [step for step in STEPS if step in options.steps]
    if options.out is None:
        folder = Path("docs" if options.device == "cuda" else "build", "benchmarks")
        options.out = folder / "gpu.json"
    return options


def main() -> int:
    """Run the steps in turn; return 1 if a part or a check failed, or if nothing was checked."""
    options = arguments()
    run = Run(options)
    if not run.libraries:
        say("no library can run here")
        return 1
    for number, name in enumerate(options.steps):
        start = time.monotonic()
        step = STEPS[name]
        share = step.share / sum(STEPS[later].share for later in options.steps[number:])
        run.begin(f"{name}: {step.function.__doc__}", share)
        with run.attempt(name):
            step.function(run)
        run.results["seconds"][name] = rounded(time.monotonic() - start)
        run.save()
    found = run.results.get("correctness", {}).values()
    failed = sum(len(result.get("failed", [])) for result in found)
    passed = sum(sum(result.get("passed", {}).values()) for result in found)
    errors = len(run.results["errors"])
    say(f"\n{passed} right and {failed} wrong results, {errors} errors; all is in {run.out}")
    nothing = "correctness" in options.steps and not passed
    return 1 if failed or errors or nothing else 0


if __name__ == "__main__":
    sys.exit(main())

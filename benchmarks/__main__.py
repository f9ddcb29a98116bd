"""The command ``python -m benchmarks``: measure, print tables, and write JSON, plots and a page."""

import itertools
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
import rich.console

from benchmarks import page, plots
from benchmarks.libraries import configure
from benchmarks.results import Recorder, Results, describe_run
from benchmarks.sections import SECTIONS
from benchmarks.timing import take_large_memory_from_the_system

app = cyclopts.App(name="python -m benchmarks", help="Measure tileops on this machine's CPU.")

Section = Literal[*SECTIONS]  # type: ignore[valid-type]


@app.default
def main(
    *,
    quick: bool = False,
    only: Annotated[list[Section] | None, cyclopts.Parameter(consume_multiple=True)] = None,
    results: Path | None = None,
    from_json: Path | None = None,
) -> None:
    """Measure and write cpu.json, cpu.md, workloads.png and growth.png.

    Parameters
    ----------
    quick
        Run fewer rounds, and no result above 64 MiB, to check that everything runs.
    only
        Measure only these sections, and keep the folder's results of the others.
    results
        The folder to write into. The default is docs/benchmarks, whose figures are published;
        with `quick`, it is build/benchmarks.
    from_json
        Measure nothing, and make tables, plots and page from the results of an earlier run.
    """
    console = rich.console.Console()
    results = results or Path("build/benchmarks" if quick else "docs/benchmarks")
    results.mkdir(parents=True, exist_ok=True)
    file = results / "cpu.json"
    measured = measure(only, is_quick=quick) if from_json is None else Results.load(from_json)
    if only and from_json is None and file.exists():
        measured.add_sections(Results.load(file), set(SECTIONS) - set(only))
    measured.save(file)
    measured = Results.load(file)  # with the facts that all sections share
    show(measured, console)
    drawn = plots.draw(measured, results)
    (results / "cpu.md").write_text(page.markdown(measured, drawn), encoding="utf-8")


def measure(only: list[Section] | None, *, is_quick: bool) -> Results:
    """Run the sections one after the other, in several passes."""
    take_large_memory_from_the_system()
    configure()
    options = [*(["--quick"] if is_quick else []), *(["--only", *only] if only else [])]
    command = " ".join(["python -m benchmarks", *options])
    recorder = Recorder(Results(describe_run(command)), is_quick=is_quick)
    progress = rich.console.Console(stderr=True)
    # The section `reuse` comes last: after it, the C library serves small results from memory
    # that it has kept.
    wanted: list[str] = [*(only or SECTIONS)]
    for names in ([n for n in wanted if n != "reuse"], [n for n in wanted if n == "reuse"]):
        for number, name in itertools.product(range(recorder.passes), names):
            with progress.status(f"measuring {name}, pass {number + 1} of {recorder.passes}"):
                SECTIONS[name].measure(recorder)
    return recorder.results


def show(measured: Results, console: rich.console.Console) -> None:
    """Print every table of a run."""
    for name, section in SECTIONS.items():
        if measured.groups(name):
            console.rule(section.TITLE)
            for table in section.tables(measured):
                if not table.is_wide:
                    console.print(table.rich())


if __name__ == "__main__":
    app()

"""The Markdown page of a run: what it ran on, and every table."""

from collections.abc import Iterator

from benchmarks.results import PACKAGES, Results
from benchmarks.sections import SECTIONS, limits

INTRODUCTION = """\
# Benchmarks on a CPU

This page was written by `python -m benchmarks` from the measurements in [cpu.json](cpu.json), a
[pyperf](https://pyperf.readthedocs.io/) file; no figure was typed by hand.

GB/s are bytes of the result divided by time, in units of 10⁹. A round times every side of a
comparison once, in an order that changes, so that what else the machine does falls on all sides
alike. Each figure is the median over the calm rounds of all passes: that quarter of all rounds in
which all sides together took the least time, each in parts of its own median. On a shared machine
others spoil the rest, above all where a host takes back the pages of a virtual machine and gives
them again in milliseconds each. That may fall on one side alone: tileops writes new results in two
threads, which take pages from two processors. The column of all rounds has the ratio of the medians
over all of them. Each result is dropped before the next call is timed; where threads of a library
spin for a while after a call, a pause comes first. Where the calls of all sides are shorter than
0.2 ms they are timed in an inner loop, with what freeing their results takes. glibc is told to take
every block above 128 KiB from the system and to give it back, so that a result in new memory is new
in every round; without that, it would serve blocks up to 32 MB from memory that earlier calls have
used, as in one section, which says so. Before anything is timed, the results of all sides are
compared bit for bit.

A ratio is always another's time divided by the time of tileops: above 1, tileops is faster.
"""

FACTS = {
    "cpu_model_name": "processor",
    "cpu_kind": "its kind",
    "cpu_count": "logical processors",
    "machine": "architecture",
    "platform": "system",
    "python_version": "Python",
    "load_avg_1min": "load before the run",
    "date": "date",
    "command": "command",
}


def markdown(results: Results, plots: list[str]) -> str:
    """Write the page."""
    return "\n".join(_parts(results, plots)).rstrip() + "\n"


def _parts(results: Results, plots: list[str]) -> Iterator[str]:
    yield INTRODUCTION
    yield from _machine(results)
    for name, section in SECTIONS.items():
        if not results.groups(name):
            continue
        yield f"## {section.TITLE}\n"
        if f"{name}.png" in plots:
            yield f"![{section.TITLE}]({name}.png)\n"
        if "date" not in results.facts:
            run = results.facts_of(name)
            yield f"Measured {run['date']} by `{run['command']}`.\n"
        for table in section.tables(results):
            yield table.markdown()
    yield from _spread(results)


def _machine(results: Results) -> Iterator[str]:
    yield "| | |\n| --- | --- |"
    for fact, name in FACTS.items():
        if fact in results.facts:
            value = results.facts[fact]
            yield f"| {name} | {f'`{value}`' if fact == 'command' else value} |"
    packages = ("tileops", *PACKAGES)
    versions = (f"{p} {results.facts.get(f'{p}_version', 'of several')}" for p in packages)
    yield f"| versions | {', '.join(versions)} |"
    limit = limits.write_limit(results)
    if limit is not None:
        yield f"| fastest fill of 64 MiB in use | {limit:.1f} GB/s |"
    yield ""


def _spread(results: Results) -> Iterator[str]:
    yield "## Noise\n"
    yield "The median absolute deviation of a benchmark's rounds from its median, as a fraction of"
    yield "that median, for the middle one of the benchmarks of each section.\n"
    yield "| section | deviation |\n| --- | ---: |"
    for name, section in SECTIONS.items():
        if name != "memory" and results.groups(name):
            yield f"| {section.TITLE} | {results.spread(name):.1%} |"

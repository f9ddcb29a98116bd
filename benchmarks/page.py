"""The Markdown page of a run: what it ran on, and every table."""

from collections.abc import Iterator

from benchmarks.results import PACKAGES, Results
from benchmarks.sections import SECTIONS, limits

INTRODUCTION = """\
# Benchmarks on a CPU: {processor}

This page was written by `python -m benchmarks` from the measurements in [cpu.json](cpu.json), a
[pyperf](https://pyperf.readthedocs.io/) file; no figure was typed by hand.

GB/s are bytes of the result divided by time, in units of 10⁹.

A comparison is measured in rounds. Each round times every side of the comparison once, in an order
that changes, so that other load on the machine affects all sides alike. Each figure is the median
over the calm rounds of all passes. The calm rounds are the quarter of all rounds in which all sides
together took the least time, where each side's time counts as a fraction of that side's median. On
a shared machine, other programs disturb the remaining rounds, above all where a host takes back the
pages of a virtual machine and then needs milliseconds to return each of them. Such a disturbance
may affect one side alone: tileops writes new results in two threads, which take pages from two
processors. The column "of all rounds" has the ratio of the medians over all rounds.

Each result is dropped before the next call is timed. Where a library's threads spin for a while
after a call, a pause precedes the next call. Where the calls of all sides are shorter than 0.2 ms,
they are timed in an inner loop, which includes the time to free their results. glibc is configured
to take every block above 128 KiB from the system and to give it back, so that a result in new
memory is new in every round. Otherwise glibc would serve blocks of up to 32 MB from memory that
earlier calls have used; one section measures that case, and says so. Before anything is timed, the
results of all sides are compared bit for bit.

A ratio is always the other side's time divided by the time of tileops: above 1, tileops is faster.
"""

FACTS = {
    "cpu_model_name": "processor",
    "cpu_kind": "its kind",
    "cpu_count": "logical processors",
    "machine": "architecture",
    "platform": "system",
    "huge_pages": "transparent huge pages",
    "python_version": "Python",
    "load_avg_1min": "load before the run",
    "date": "date",
    "command": "command",
}


def markdown(results: Results, plots: list[str]) -> str:
    """Write the page."""
    return "\n".join(_parts(results, plots)).rstrip() + "\n"


def _parts(results: Results, plots: list[str]) -> Iterator[str]:
    yield INTRODUCTION.format(processor=results.processor())
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
    yield "that median. For each section, the table has the median of its benchmarks.\n"
    yield "| section | deviation |\n| --- | ---: |"
    for name, section in SECTIONS.items():
        if name != "memory" and results.groups(name):
            yield f"| {section.TITLE} | {results.spread(name):.1%} |"

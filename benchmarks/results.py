"""What was measured, as a pyperf suite in one JSON file, and how to look it up."""

import platform
import statistics
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pyperf

import tileops
from benchmarks.timing import Call, compare

PACKAGES = (
    "numpy",
    "torch",
    "jax",
    "jaxlib",
    "einops",
    "onnx",
    "onnxruntime",
    "openvino",
    "ml_dtypes",
)

_ABOUT_THE_MACHINE = (
    "cpu_model_name",
    "cpu_count",
    "load_avg_1min",
    "platform",
    "python_implementation",
    "python_version",
    "perf_version",
    "timer",
    "date",
)
"""Of what pyperf collects, the part that tells a reader what the figures stand for."""

PASSES = 3
"""How often all is measured: minutes in which others slow the machine down spoil some passes."""

CALM = 0.25
"""The part of the rounds that counts: where the machine is shared, others spoil many."""

_DIGITS = 5
"""Significant digits of a value that are kept: more than any clock can promise here."""


class Key(NamedTuple):
    """The name of one benchmark: a side of a comparison, in a group of a section."""

    section: str
    group: str
    case: str
    side: str

    def __str__(self) -> str:
        """Join the parts, as they stand in the file."""
        return "/".join(self)


class Results:
    """Values by key, with the metadata of the run."""

    def __init__(self, facts: Mapping[str, str | int]) -> None:
        self.facts = dict(facts)
        self._benchmarks: dict[Key, pyperf.Benchmark] = {}

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Read a file that `save` wrote."""
        suite = pyperf.BenchmarkSuite.load(str(path))
        results = cls(suite.get_metadata())
        for benchmark in suite:
            results._benchmarks[Key(*benchmark.get_name().split("/"))] = benchmark
        return results

    def save(self, path: Path) -> None:
        """Write all values in pyperf's format, for which pyperf has tools of its own."""
        pyperf.BenchmarkSuite(list(self._benchmarks.values())).dump(str(path), replace=True)

    def add(
        self,
        key: Key,
        values: Iterable[float],
        facts: Mapping[str, str | int],
        unit: str = "second",
    ) -> None:
        """Keep the values of one benchmark, with those of earlier passes, and facts beside them."""
        about = {**self.facts, **facts, "name": str(key), "unit": unit}
        rounded = tuple(float(f"{value:.{_DIGITS}g}") for value in values)
        run = pyperf.Run(rounded, metadata=about, collect_metadata=False)
        if key in self._benchmarks:
            self._benchmarks[key].add_run(run)
        else:
            self._benchmarks[key] = pyperf.Benchmark([run])

    def add_sections(self, other: "Results", sections: Iterable[str]) -> None:
        """Take sections of another run."""
        for section in sections:
            self._benchmarks |= other.benchmarks(section)

    def benchmarks(self, section: str) -> dict[Key, pyperf.Benchmark]:
        """Return the benchmarks of a section."""
        return {key: self._benchmarks[key] for key in self.keys(section)}

    def facts_of(self, section: str) -> Mapping[str, str | int]:
        """Return what a section's figures depend on; `facts` is what all have in common."""
        suite = pyperf.BenchmarkSuite(list(self.benchmarks(section).values()))
        return dict(suite.get_metadata())

    def processor(self) -> str:
        """Name the processor, with what tells processors of one name apart."""
        facts = (self.facts.get(name) for name in ("cpu_model_name", "cpu_kind"))
        return ", ".join(str(fact) for fact in facts if fact) or "of unknown name"

    def keys(self, section: str, group: str | None = None) -> Iterator[Key]:
        """Go over what a section has, in the order in which it was measured."""
        for key in self._benchmarks:
            if key.section == section and group in (None, key.group):
                yield key

    def groups(self, section: str) -> list[str]:
        """List the groups of a section."""
        return list(dict.fromkeys(key.group for key in self.keys(section)))

    def cases(self, section: str, group: str | None = None) -> list[str]:
        """List the cases of a section, or of one of its groups."""
        return list(dict.fromkeys(key.case for key in self.keys(section, group)))

    def median(self, section: str, group: str, case: str, side: str) -> float:
        """Return the median over all rounds of a benchmark."""
        return float(self._benchmarks[Key(section, group, case, side)].median())

    def calm(self, section: str, group: str, case: str, side: str) -> float:
        """Return the median over the calm rounds, in which all sides together took the least time.

        Each side's times count as parts of its median, so that a slow side does not choose alone.
        """
        key = Key(section, group, case, side)
        values = self._benchmarks[key].get_values()
        rounds = [0.0] * len(values)
        for other in str(self.fact(*key, "comparison")).split("|"):
            times = self._benchmarks[key._replace(side=other)].get_values()
            usual = statistics.median(times)
            rounds = [total + time / usual for total, time in zip(rounds, times, strict=True)]
        order = sorted(range(len(values)), key=rounds.__getitem__)
        return statistics.median(values[i] for i in order[: max(1, round(len(order) * CALM))])

    def spread(self, section: str, group: str | None = None) -> float:
        """Return the usual deviation: the median of all deviations from medians, as a fraction."""
        benchmarks = [self._benchmarks[key] for key in self.keys(section, group)]
        return statistics.median(b.median_abs_dev() / b.median() for b in benchmarks)

    def fact(self, section: str, group: str, case: str, side: str, name: str) -> str | int:
        """Look up what was noted beside a benchmark's values."""
        return self._benchmarks[Key(section, group, case, side)].get_metadata()[name]


class Recorder:
    """Runs comparisons for as long as the kind of run allows, and keeps their results."""

    def __init__(self, results: Results, *, is_quick: bool) -> None:
        self.results = results
        self.is_quick = is_quick
        self.passes = 1 if is_quick else PASSES
        self._seconds = 0.15 if is_quick else 1.2 / PASSES

    def compare(
        self,
        section: str,
        group: str,
        case: str,
        sides: Mapping[str, Call],
        *,
        patience: float = 1.0,
        has_pauses: bool = False,
        **facts: str | int,
    ) -> None:
        """Time the sides against each other; `patience` is a factor on the usual time.

        Pauses are for sides with threads of their own, which spin for a while after a call.
        """
        timings = compare(sides, self._seconds * patience, has_pauses=has_pauses)
        facts["comparison"] = "|".join(sides)
        for side, timing in timings.items():
            key = Key(section, group, case, side)
            self.results.add(key, timing.values, {**facts, "loops": timing.loops})


def describe_run(command: str) -> dict[str, str | int]:
    """Collect what the figures depend on: machine, versions, command, date."""
    collected = pyperf.Run([1.0], collect_metadata=True).get_metadata()
    facts = {name: collected[name] for name in _ABOUT_THE_MACHINE if name in collected}
    facts["date"] = str(facts["date"]).partition(".")[0]
    facts["machine"] = platform.machine()
    found = {"cpu_kind": _cpu_kind(), "huge_pages": _huge_pages()}
    facts |= {name: fact for name, fact in found.items() if fact}
    facts["command"] = command
    facts["tileops_version"] = tileops.__version__
    for package in PACKAGES:
        facts[f"{package}_version"] = metadata.version(package)
    return facts


def _huge_pages() -> str:
    """Return when Linux gives huge pages: always, never, or on request; "" elsewhere."""
    try:
        setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="utf-8")
    except OSError:
        return ""
    return setting.partition("[")[2].partition("]")[0]


def _cpu_kind() -> str:
    """Tell processors of one name apart, as Linux does; "" elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    about = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return ", ".join(f"{key} {about[key]}" for key in ("cpu family", "model") if key in about)

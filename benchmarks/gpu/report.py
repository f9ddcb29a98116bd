"""The step ``tables``: what a run has found, as text."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gpu.libraries import LIBRARIES
from benchmarks.gpu.run import Run, say


def show(run: Run) -> None:
    """Show what was found."""
    results = run.results
    show_ceilings(results.get("ceilings", []))
    show_speed(results.get("speed", []), write_ceiling(results.get("ceilings", [])))
    show_crossover(results.get("crossover", []))
    show_calls(results.get("calls", []))
    show_correctness(results.get("correctness", {}))
    for name in ("errors", "left_out"):
        if results[name]:
            say(f"\n{name.replace('_', ' ')}: {len(results[name])}")
            lines = results[name].items() if name == "errors" else enumerate(results[name], 1)
            for key, text in lines:
                say(f"  {key}: {text}")


def show_ceilings(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rates."""
    header = ["library", "", "size", "written GB/s", "read + written GB/s"]
    show_table("Ceilings", header, ceiling_lines(rows))


def ceiling_lines(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[str]]:
    """Write the cells of fills and copies."""
    return [
        [
            *(row["library"], row["name"], size_name(row["bytes"])),
            *(f"{row['written GB/s']:.0f}", f"{row['moved GB/s']:.0f}"),
        ]
        for row in rows
    ]


def write_ceiling(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the fastest write of any library, in GB/s, or None if none was measured."""
    return max((row["written GB/s"] for row in rows if row["name"] != "copy"), default=None)


def show_speed(rows: Sequence[Mapping[str, Any]], ceiling: float | None) -> None:
    """Print a table for each library and operator, with means of the ratios."""
    keys = list(dict.fromkeys((row["library"], row["operator"]) for row in rows))
    for library, operator in sorted(keys, key=lambda key: list(LIBRARIES).index(key[0])):
        own = [row for row in rows if (row["library"], row["operator"]) == (library, operator)]
        others = [side for side in own[0]["seconds"] if side != "native"]
        header = ["workload", "MB", "native us"]
        for side in others:
            header += [f"{side} us", "GB/s", "of ceiling", "native / it"]
        lines = [speed_line(row, others, ceiling) for row in own]
        ratios = {
            side: [row["seconds"]["native"] / row["seconds"][side] for row in own]
            for side in others
        }
        for name, mean in (("geometric mean", statistics.geometric_mean), ("minimum", min)):
            blanks = [["", "", "", f"{mean(values):.2f}"] for values in ratios.values()]
            lines.append([name, "", "", *itertools.chain.from_iterable(blanks)])
        show_table(f"{library}, {operator}", header, lines)


def speed_line(row: Mapping[str, Any], sides: Sequence[str], ceiling: float | None) -> list[str]:
    """Write the cells of one workload."""
    seconds = row["seconds"]
    cells = [row["workload"], f"{row['bytes'] / 1e6:.0f}", f"{seconds['native'] * 1e6:.1f}"]
    for side in sides:
        rate = row["bytes"] / seconds[side] / 1e9
        part = f"{rate / ceiling:.2f}" if ceiling else "-"
        ratio = f"{seconds['native'] / seconds[side]:.2f}"
        cells += [f"{seconds[side] * 1e6:.1f}", f"{rate:.0f}", part, ratio]
    return cells


def show_crossover(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print microseconds by size."""
    for library, pattern in dict.fromkeys((row["library"], row["pattern"]) for row in rows):
        own = [row for row in rows if (row["library"], row["pattern"]) == (library, pattern)]
        sides = list(own[0]["seconds"])
        lines = [
            [
                size_name(row["at most"]),
                *(f"{row['seconds'][side] * 1e6:.1f}" for side in sides),
                *(f"{row['seconds']['native'] / row['seconds'][side]:.2f}" for side in sides[1:]),
            ]
            for row in own
        ]
        header = ["result to", *(f"{s} us" for s in sides), *(f"native / {s}" for s in sides[1:])]
        show_table(f"{library}, {pattern}", header, lines)


def size_name(nbytes: int) -> str:
    """Write bytes in a unit of their own."""
    power = min(3, (nbytes.bit_length() - 1) // 10)
    return f"{nbytes / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def show_calls(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what a small call costs the host."""
    header = ["us of the host, 16 elements", *(row["library"] for row in rows)]
    show_table("Calls, not waited for", header, call_lines(rows))


def call_lines(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[str]]:
    """Write the cells of small calls, blank where a library has none."""
    names = list(dict.fromkeys(itertools.chain.from_iterable(row["seconds"] for row in rows)))
    return [
        [name, *(f"{s * 1e6:.1f}" if (s := row["seconds"].get(name)) else "" for row in rows)]
        for name in names
    ]


def show_correctness(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print how many checks passed, then those that failed."""
    show_table("Checks", ["library", "group", "pass", "fail"], check_lines(found))
    for library, result in found.items():
        for entry in result.get("failed", [])[:20]:
            native = f"; native: {entry['native']}" if "native" in entry else ""
            say(f"  WRONG {library}, {entry['group']}, {entry['case']}: {entry['error']}{native}")


def check_lines(found: Mapping[str, Mapping[str, Any]]) -> list[Sequence[str]]:
    """Write the cells of the groups of checks."""
    return [
        [library, group, str(passed), str(sum(e["group"] == group for e in result["failed"]))]
        for library, result in found.items()
        for group, passed in result.get("passed", {}).items()
    ]


def show_table(title: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print columns of text, the numbers on the right."""
    if not lines:
        return
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    say(f"\n{title}")
    for line in (header, *lines):
        cells = zip(line, widths, strict=True)
        shown = (
            c.rjust(w) if c[:1].isdigit() or i else c.ljust(w) for i, (c, w) in enumerate(cells)
        )
        say("  " + "  ".join(shown).rstrip())

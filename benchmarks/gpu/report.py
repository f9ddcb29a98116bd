"""What a run has found, as tables: the step ``tables`` prints them, and the page has them."""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu.run import Run, say
from benchmarks.tables import Table
from benchmarks.workloads import numpy_dtype

Results = Mapping[str, Any]

ALIKE = (
    ("grid_t", "grid_h", "grid_w"),
    ("images_512", "images_500", "images_333", "gray_to_rgb", "rows_of_3"),
)
"""Workloads that are variants of one."""


def show(run: Run) -> None:
    """Show what was found."""
    results = run.results
    for table in itertools.chain.from_iterable(make(results) for make in SECTIONS.values()):
        show_table(table)
    for library, result in results.get("correctness", {}).items():
        for entry in result.get("failed", [])[:20]:
            native = f"; native: {entry['native']}" if "native" in entry else ""
            say(f"  WRONG {library}, {entry['group']}, {entry['case']}: {entry['error']}{native}")
    for name in ("errors", "left_out"):
        if results[name]:
            say(f"\n{name.replace('_', ' ')}: {len(results[name])}")
            lines = results[name].items() if name == "errors" else enumerate(results[name], 1)
            for key, text in lines:
                say(f"  {key}: {text}")


def show_table(table: Table) -> None:
    """Print columns of text, the numbers on the right."""
    lines = [table.header, *table.rows, *table.summary]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    say(f"\n{table.title}")
    for line in lines:
        cells = zip(line, widths, strict=True)
        shown = (
            c.rjust(w) if c[:1].isdigit() or i else c.ljust(w) for i, (c, w) in enumerate(cells)
        )
        say("  " + "  ".join(shown).rstrip())


def ceilings(results: Results) -> Iterator[Table]:
    """Tell the rates of fills and copies."""
    if rows := results.get("ceilings"):
        yield Table(
            "Fills and copies",
            "Made by the libraries' own functions, in contiguous memory. CuPy's kernels start a "
            "thread for each element, and launching these threads limits their speed.",
            ("library", "what", "size", "GB/s written", "GB/s read and written"),
            [
                [
                    *(row["library"], row["name"], size_name(row["bytes"])),
                    *(f"{row['written GB/s']:.0f}", f"{row['moved GB/s']:.0f}"),
                ]
                for row in rows
            ],
        )


def write_ceiling(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the fastest write of any library, in GB/s; NaN if none was measured."""
    fills = (float(row["written GB/s"]) for row in rows if row["name"] != "copy")
    return max(fills, default=math.nan)


def speed(results: Results) -> Iterator[Table]:
    """Compare the sides of every workload, a table for each library and operator."""
    rows = results.get("speed", [])
    for library, operator in dict.fromkeys((r["library"], r["operator"]) for r in rows):
        own = [r for r in rows if (r["library"], r["operator"]) == (library, operator)]
        yield _speed(library, operator, own, results.get("ceilings", []))


def _speed(
    library: str,
    operator: str,
    rows: Sequence[Mapping[str, Any]],
    ceilings: Sequence[Mapping[str, Any]],
) -> Table:
    fill = write_ceiling(ceilings)
    has_out = "out=" in rows[0]["seconds"]
    header = ["workload", "MB", "native µs", "µs", "GB/s", "of the fill", "of the limit", "ratio"]
    header += ["`out=` µs", "ratio"] if has_out else []
    table = Table(f"{library}, {operator}", NATIVE[library, operator], header)
    ratios: dict[str, dict[str, float]] = {}
    for row in rows:
        seconds, size = row["seconds"], row["bytes"]
        rate = size / seconds["tileops"] / 1e9
        cells = [row["workload"], f"{size / 1e6:.0f}", f"{seconds['native'] * 1e6:.0f}"]
        cells += [f"{seconds['tileops'] * 1e6:.0f}", f"{rate:.0f}", f"{rate / fill:.2f}"]
        cells.append(f"{least_seconds(row, ceilings) / seconds['tileops']:.2f}")
        for side in ("tileops", "out=") if has_out else ("tileops",):
            ratio = seconds["native"] / seconds[side]
            ratios.setdefault(side, {})[row["workload"]] = ratio
            cells += [f"{seconds[side] * 1e6:.0f}"] if side == "out=" else []
            cells.append(f"{ratio:.2f}")
        table.rows.append(cells)
    for name, mean in MEANS.items():
        first, *rest = (f"{mean(of):.2f}" for of in ratios.values())
        table.summary.append([name, *[""] * 6, first, *(cell for v in rest for cell in ("", v))])
    return table


def least_seconds(row: Mapping[str, Any], ceilings: Sequence[Mapping[str, Any]]) -> float:
    """Return the time of the fastest fill of a result and the fastest read of its source."""
    fill = write_ceiling(ceilings)
    copies = (row["written GB/s"] for row in ceilings if row["name"] == "copy")
    per_read = 1 / max(copies, default=math.nan) - 1 / fill
    source = math.prod(row["shape"]) * numpy_dtype(row["dtype"]).itemsize
    return (float(row["bytes"]) / fill + source * per_read) / 1e9


NATIVE = {
    ("torch", "tile"): "Native is `torch.tile`.",
    ("torch", "expand"): "Native is `Tensor.expand`, then `contiguous`.",
    ("cupy", "tile"): "Native is `cupy.tile`.",
    ("cupy", "expand"): "Native is `cupy.broadcast_to`, then `ascontiguousarray`.",
    ("jax", "tile"): "Native is `jnp.tile`.",
    ("jax", "expand"): "Native is `jnp.broadcast_to`.",
}
"""What the library's own side is, by library and operator."""


def _grouped(ratios: Mapping[str, float]) -> float:
    """Return the geometric mean over workloads, each the mean of its variants."""
    groups = [[n for n in names if n in ratios] for names in ALIKE]
    alone = [[name] for name in ratios if not any(name in names for names in ALIKE)]
    means = [
        statistics.geometric_mean([ratios[name] for name in names])
        for names in (*alone, *groups)
        if names
    ]
    return statistics.geometric_mean(means)


MEANS = {
    "minimum": lambda ratios: min(ratios.values()),
    "geometric mean": lambda ratios: statistics.geometric_mean(ratios.values()),
    "of workloads": _grouped,
}
"""The means of ratios, by name."""


def crossover(results: Results) -> Iterator[Table]:
    """Compare the sides at every size, a table for each library."""
    rows = results.get("crossover", [])
    for library in dict.fromkeys(row["library"] for row in rows):
        yield _sizes(library, [row for row in rows if row["library"] == library])


def _sizes(library: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    patterns = list(dict.fromkeys(row["pattern"] for row in rows))
    found = {(row["at most"], row["pattern"]): row["seconds"] for row in rows}
    sides = [side for side in rows[0]["seconds"] if side != "native"]
    header = ["result up to"]
    for pattern in patterns:
        header += [pattern, *(f"`{side}`" for side in sides[1:])]
    table = Table(
        f"{library}, ratios by size",
        "New results, `out=`, and new memory with every copy planned. Below the thresholds no copy "
        "is planned, because a plan takes the host longer: on a slow host, only large results make "
        "up for that."
        if sides[1:]
        else "New results.",
        header,
    )
    for size in sorted({size for size, _ in found}):
        cells = [size_name(size)]
        for pattern in patterns:
            seconds = found.get((size, pattern))
            cells += [f"{seconds['native'] / seconds[s]:.2f}" if seconds else "" for s in sides]
        table.rows.append(cells)
    return table


def size_name(nbytes: int) -> str:
    """Write bytes in a unit of their own."""
    power = min(3, (nbytes.bit_length() - 1) // 10)
    return f"{nbytes / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def calls(results: Results) -> Iterator[Table]:
    """Tell what a small call costs the host; cells are blank where a library has none."""
    if rows := results.get("calls"):
        names = dict.fromkeys(itertools.chain.from_iterable(row["seconds"] for row in rows))
        yield Table(
            "What the host does",
            "Microseconds that the host takes for a call on 16 elements, without waiting for the "
            "result.",
            ["call", *(row["library"] for row in rows)],
            [
                [
                    name,
                    *(f"{s * 1e6:.1f}" if (s := row["seconds"].get(name)) else "" for row in rows),
                ]
                for name in names
            ],
        )


def checks(results: Results) -> Iterator[Table]:
    """Count the checks of each group that passed, and that failed."""
    if found := results.get("correctness"):
        left_out = [what for what in results["left_out"] if "no time" in what]
        text = (
            "Results are compared with NumPy's, byte for byte. In groups marked planned, every "
            "copy is planned."
        )
        if left_out:
            text += f" This run had no time for {len(left_out)} groups."
        lines: list[Sequence[str]] = [
            [library, group, str(passed), str(sum(e["group"] == group for e in result["failed"]))]
            for library, result in found.items()
            for group, passed in result.get("passed", {}).items()
        ]
        yield Table("Checks", text, ("library", "group", "right", "wrong"), lines)


SECTIONS = {
    "Limits of the card": ceilings,
    "Workloads": speed,
    "From 1 KiB to 8 GiB": crossover,
    "Small calls": calls,
    "Bits": checks,
}
"""What makes the tables of each section of the page; none of a step that has not run."""

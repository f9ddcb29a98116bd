"""The command ``python -m benchmarks.gpu.page``: write the page and the plot of a run on a GPU."""

import argparse
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import (
    call_lines,
    ceiling_lines,
    check_lines,
    size_name,
    write_ceiling,
)
from benchmarks.tables import Table
from benchmarks.workloads import numpy_dtype

INTRODUCTION = """\
# Benchmarks on a GPU

This page was written by `python -m benchmarks.gpu.page` from [gpu.json](gpu.json), which
`python -m benchmarks.gpu` wrote; no figure in its tables was typed by hand. `nox -s gpu` does the
same on your card; with `-- --device cpu` it needs none, and shows that the script works.

GB/s are bytes of the result divided by time, in units of 10⁹. A side is called many times in a row,
as in a program that does not wait for each result; CUDA's events give the time of PyTorch and CuPy,
and the host's clock that of JAX, which is waited for. Each figure is the median of 8 rounds that
alternate between the sides. A ratio is the time of the library's own operation divided by that of
tileops: above 1, tileops is faster.

Results of less than 25 million elements in PyTorch, and 17 million in CuPy, are left to the
library's own kernel, and in JAX all are: ratios there compare two ways to the same kernel.

Not measured yet is what has changed since this run: repeats that lie less than 64 KiB apart, those
of mask and grid_t, are read by a thread each, where one wrote four of them (an earlier run of the
same kernel took 60 and 201 µs for them so); and in PyTorch a launch sets its device first, which
takes the host 0.7 µs.
"""

FACTS = ("card", "date", "command", "system", "processors", "python", "L2 bytes")
"""What of the environment the page shows."""

ALIKE = (
    ("grid_t", "grid_h", "grid_w"),
    ("images_512", "images_500", "images_333", "gray_to_rgb", "rows_of_3"),
)
"""Workloads that are variants of one."""


def main() -> None:
    """Read the results, and write what shows them beside the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.page", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=Path("docs/benchmarks/gpu.json"))
    file = parser.parse_args().file
    results = json.loads(file.read_text(encoding="utf-8"))
    file.with_suffix(".md").write_text(markdown(results), encoding="utf-8")
    draw(results, file.with_suffix(".png"))


def markdown(results: Mapping[str, Any]) -> str:
    """Write the page."""
    return "\n".join(_parts(results)).rstrip() + "\n"


def _parts(results: Mapping[str, Any]) -> Iterator[str]:
    yield INTRODUCTION
    yield from _machine(results["environment"])
    yield "## Limits of the card\n"
    yield _ceilings(results["ceilings"]).markdown()
    yield "## Workloads\n"
    yield "![GB/s of every workload](gpu.png)\n"
    yield _SPEED_TEXT
    for library, operator in dict.fromkeys((r["library"], r["operator"]) for r in results["speed"]):
        own = [r for r in results["speed"] if (r["library"], r["operator"]) == (library, operator)]
        yield _speed(library, operator, own, results["ceilings"]).markdown()
    yield "## From 1 KiB to 8 GiB\n"
    for library in dict.fromkeys(row["library"] for row in results["crossover"]):
        own = [row for row in results["crossover"] if row["library"] == library]
        yield _sizes(library, own).markdown()
    yield "## Small calls\n"
    yield _calls(results["calls"]).markdown()
    yield "## Bits\n"
    yield _checks(results).markdown()


def _machine(found: Mapping[str, Any]) -> Iterator[str]:
    yield "| | |\n| --- | --- |"
    for name in FACTS:
        value = found[name]
        yield f"| {name} | {f'`{value}`' if name == 'command' else value} |"
    header, values = (line.split(", ") for line in found["nvidia-smi"].splitlines())
    about = dict(zip(header, values, strict=True))
    yield f"| driver | {about['driver_version']} |"
    versions = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    yield f"| versions | {versions} |\n"


def _ceilings(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "Fills and copies",
        "By the libraries' own functions, of contiguous memory. CuPy's kernels have a thread for "
        "each element, whose launch is their limit.",
        ("library", "what", "size", "GB/s written", "GB/s read and written"),
        ceiling_lines(rows),
    )


def _speed(
    library: str,
    operator: str,
    rows: Sequence[Mapping[str, Any]],
    ceilings: Sequence[Mapping[str, Any]],
) -> Table:
    fill = write_ceiling(ceilings) or math.nan
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
        cells.append(f"{_least_seconds(row, ceilings) / seconds['tileops']:.2f}")
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


def _least_seconds(row: Mapping[str, Any], ceilings: Sequence[Mapping[str, Any]]) -> float:
    """Return the time in which the fastest fill and copy write a result and read its source."""
    fill = write_ceiling(ceilings) or math.nan
    copy = max(row["written GB/s"] for row in ceilings if row["name"] == "copy")
    read = 1 / (1 / copy - 1 / fill)
    source = math.prod(row["shape"]) * numpy_dtype(row["dtype"]).itemsize
    return float(row["bytes"] / fill + source / read) / 1e9


_SPEED_TEXT = """\
The limit is the time in which the fastest fill writes the result and the fastest copy reads the
source once. The last mean counts variants of one workload as one: the grids, and the images with
the rows of 3 bytes.
"""

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


def _sizes(library: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    patterns = list(dict.fromkeys(row["pattern"] for row in rows))
    found = {(row["at most"], row["pattern"]): row["seconds"] for row in rows}
    sides = [side for side in rows[0]["seconds"] if side != "native"]
    header = ["result up to"]
    for pattern in patterns:
        header += [pattern, *(f"`{side}`" for side in sides[1:])]
    table = Table(
        f"{library}, ratios by size",
        "New results, `out=`, and new memory with every copy planned. Below the thresholds none "
        "is, since a plan takes the host longer: on a slow one, only large results make up for it."
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


def _calls(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "What the host does",
        "Microseconds of the host for a call on 16 elements that is not waited for.",
        ["call", *(row["library"] for row in rows)],
        call_lines(rows),
    )


def _checks(results: Mapping[str, Any]) -> Table:
    left_out = [what for what in results["left_out"] if "no time" in what]
    text = "Results compared with NumPy's, byte for byte; planned: with every copy planned."
    if left_out:
        text += f" The time was too short for {len(left_out)} groups of this run."
    lines = check_lines(results["correctness"])
    return Table("Checks", text, ("library", "group", "right", "wrong"), lines)


NAMES = {"torch": "PyTorch", "cupy": "CuPy", "jax": "JAX"}
TILES = {"torch": "torch.tile", "cupy": "cupy.tile", "jax": "jnp.tile"}


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draw bars of GB/s for each workload and library, with their limits as lines."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    from benchmarks import plots

    libraries = list(dict.fromkeys(row["library"] for row in results["speed"]))
    with mpl.rc_context(plots.STYLE):
        figure, axes = plt.subplots(
            len(libraries), sharex=True, sharey=True, squeeze=False, figsize=(10, 7)
        )
        for ax, library in zip(axes[:, 0], libraries, strict=True):
            own = [row for row in results["speed"] if row["library"] == library]
            rows = [row for row in own if row["operator"] == "tile"]
            native, ours, least = (
                [row["bytes"] / seconds / 1e9 for row, seconds in zip(rows, times, strict=True)]
                for times in (
                    [row["seconds"]["native"] for row in rows],
                    [row["seconds"]["tileops"] for row in rows],
                    [_least_seconds(row, results["ceilings"]) for row in rows],
                )
            )
            name, cases = TILES[library], [row["workload"] for row in rows]
            series = (
                plots.Series(name, plots.GREY, native),
                plots.Series("tileops", plots.BLUE, ours, least),
            )
            plots.bars(ax, NAMES[library], cases, series, "the limit, with the source read once")
            plots.mark_limit(ax, write_ceiling(results["ceilings"]) or math.nan, "fastest fill")
        axes[0, 0].set_title(f"{NAMES[libraries[0]]}, {results['environment']['card']}")
        figure.supylabel("GB/s of result", fontsize=10)
        figure.tight_layout()
        figure.savefig(path)
        plt.close(figure)


if __name__ == "__main__":
    main()

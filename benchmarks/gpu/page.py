"""The command ``python -m benchmarks.gpu.page``: write the page and the plot of a run on a GPU."""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import SECTIONS, least_seconds, write_ceiling
from benchmarks.tables import gigabytes_per_second

INTRODUCTION = """\
# Benchmarks on a GPU

This page was written by `python -m benchmarks.gpu.page` from [gpu.json](gpu.json), which
`python -m benchmarks.gpu` wrote; no figure in its tables was typed by hand. `nox -s gpu` does the
same on your card; with `-- --device cpu` it needs none, and shows that the script works.

GB/s are bytes of the result divided by time, in units of 10⁹. A side is called many times in a row,
as in a program that does not wait for each result. CUDA events time PyTorch and CuPy; the host's
clock times JAX, whose results are waited for. Each figure is the median of 8 rounds that alternate
between the sides. A ratio is the time of the library's own operation divided by the time of
tileops: above 1, tileops is faster.

Results of fewer than 25 million elements in PyTorch, or 17 million in CuPy, are left to the
library's own kernel, and so are all results in JAX. There, a ratio compares two ways to call the
same kernel.

Two changes since this run have not been measured yet. Repeats that lie less than 64 KiB apart, as
in mask and grid_t, are now each written by a thread of their own, whereas one thread wrote four of
them in this run (an earlier run of the kernel as it is now took 60 and 201 µs for these workloads).
In PyTorch, a launch now sets its device first, which takes the host 0.7 µs.
"""

FACTS = ("card", "date", "command", "system", "processors", "python", "L2 bytes")
"""What of the environment the page shows."""

TEXTS = {
    "Workloads": """\
![GB/s of every workload](gpu.png)

The limit is the time in which the fastest fill writes the result and the fastest copy reads the
source once. The last mean counts the variants of a workload as one workload: the grids are one, and
the images together with the rows of 3 bytes are another.
"""
}
"""What stands before the tables of a section."""


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
    for title, make in SECTIONS.items():
        yield f"## {title}\n"
        if title in TEXTS:
            yield TEXTS[title]
        for table in make(results):
            yield table.markdown()


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
            native, ours = (
                [gigabytes_per_second(row["bytes"], row["seconds"][side]) for row in rows]
                for side in ("native", "tileops")
            )
            ceilings = results["ceilings"]
            most = [gigabytes_per_second(r["bytes"], least_seconds(r, ceilings)) for r in rows]
            series = (
                plots.Series(TILES[library], plots.GREY, native),
                plots.Series("tileops", plots.BLUE, ours, most),
            )
            cases = [row["workload"] for row in rows]
            plots.bars(ax, NAMES[library], cases, series, "the limit, with the source read once")
            plots.mark_limit(ax, write_ceiling(ceilings), "fastest fill")
        axes[0, 0].set_title(f"{NAMES[libraries[0]]}, {results['environment']['card']}")
        figure.supylabel("GB/s of result", fontsize=10)
        figure.tight_layout()
        figure.savefig(path)
        plt.close(figure)


if __name__ == "__main__":
    main()

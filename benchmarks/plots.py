"""Plots of a run: bars of GB/s for each workload, and curves of how times grow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.results import Results
from benchmarks.sections import growth, limits, peers, workloads
from benchmarks.tables import gigabytes_per_second

GREY, BLUE, SKY = "#8c8c8c", "#0072b2", "#56b4e9"
ORANGE, GREEN, PURPLE = "#e69f00", "#009e73", "#cc79a7"
"""The colours of Okabe and Ito, which people with any colour vision can tell apart."""

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.color": "#e5e5e5",
    "legend.frameon": False,
    "savefig.dpi": 100,
}


class Bars(NamedTuple):
    """Where the values of one series of bars are stored, and how it looks."""

    section: str
    group: str
    side: str
    label: str
    colour: str


class Series(NamedTuple):
    """A bar for each workload, in GB/s, and the speed that limits it, if known."""

    label: str
    colour: str
    values: Sequence[float]
    limits: Sequence[float] = ()


class Panel(NamedTuple):
    """Series drawn side by side over the workloads."""

    title: str
    series: tuple[Bars, ...]
    fills: tuple[str, ...] = ()
    """The fills whose fastest is drawn across the panel, if no fill was measured beside each
    bar."""


PANELS = (
    Panel(
        "NumPy",
        (
            Bars(workloads.SECTION, "numpy", "native", "np.tile", GREY),
            Bars(workloads.SECTION, "numpy", "tileops", "tileops", BLUE),
            Bars(workloads.SECTION, "numpy_out", "tileops", "tileops, out= used again", SKY),
        ),
    ),
    Panel(
        "PyTorch",
        (
            Bars(workloads.SECTION, "torch", "native", "torch.tile", GREY),
            Bars(workloads.SECTION, "torch", "tileops", "tileops", BLUE),
            Bars(workloads.SECTION, "torch_out", "tileops", "tileops, out= used again", SKY),
        ),
    ),
    Panel(
        "JAX, eager",
        (
            Bars(workloads.SECTION, "jax", "native", "jnp.tile", GREY),
            Bars(workloads.SECTION, "jax", "tileops", "tileops", BLUE),
        ),
        limits.NEW,
    ),
    Panel(
        "Peers, new memory",
        (
            Bars(peers.SECTION, "new", "tileops, NumPy", "tileops, NumPy", BLUE),
            Bars(peers.SECTION, "new", "einops, NumPy", "einops, NumPy", ORANGE),
            Bars(peers.SECTION, "new", "onnxruntime", "onnxruntime", GREEN),
            Bars(peers.SECTION, "new", "OpenVINO", "OpenVINO", PURPLE),
        ),
        limits.NEW,
    ),
    Panel(
        "Peers, memory in use",
        (
            Bars(peers.SECTION, "used", "tileops, NumPy", "tileops, NumPy, out=", SKY),
            Bars(peers.SECTION, "used", "onnxruntime, bound", "onnxruntime, bound", GREEN),
            Bars(peers.SECTION, "used", "OpenVINO", "OpenVINO", PURPLE),
        ),
        limits.IN_USE,
    ),
)

LINES = {
    "np.tile": (BLUE, "--"),
    "tileops, NumPy": (BLUE, "-"),
    "torch.tile": (ORANGE, "--"),
    "tileops, PyTorch": (ORANGE, "-"),
}
"""A colour for each library; tileops has a solid line, the library's own tile a dashed one."""

GROWTH_AXES = {
    "bytes": "MiB of result, 1 KiB rows × 4",  # noqa: RUF001 (a multiplication sign)
    "rank": "rank, 16 MiB of result",
    "repeats": "repeats of one axis, 16 MB of result",
}


def draw(results: Results, folder: Path) -> list[str]:
    """Draw the plots for which there are values, and return their names."""
    drawn = []
    with mpl.rc_context(STYLE):
        if results.groups(workloads.SECTION) or results.groups(peers.SECTION):
            _workloads(results, folder / "workloads.png")
            drawn.append("workloads.png")
        if results.groups(growth.SECTION):
            _growth(results, folder / "growth.png")
            drawn.append("growth.png")
    return drawn


def _workloads(results: Results, path: Path) -> None:
    panels = [panel for panel in PANELS if results.groups(panel.series[0].section)]
    height = 2.1 * len(panels) + 1.1
    figure, axes = plt.subplots(
        len(panels), sharex=True, sharey=True, squeeze=False, figsize=(10, height)
    )
    for ax, panel in zip(axes[:, 0], panels, strict=True):
        series = [_series(results, shown) for shown in panel.series]
        cases = results.cases(panel.series[0].section, panel.series[0].group)
        bars(ax, panel.title, cases, series, "fill of the same memory")
        limit = limits.write_limit(results, panel.fills)
        if limit is not None:
            memory = "in use" if panel.fills == limits.IN_USE else "of new memory"
            mark_limit(ax, limit, f"fill of 64 MiB {memory}")
    figure.suptitle(results.processor(), fontsize=12)
    figure.supylabel("GB/s of result", fontsize=10)
    figure.tight_layout()
    _save(figure, path)


def _series(results: Results, shown: Bars) -> Series:
    """Read the speeds of a side, and of the fill in the same rounds, which is their limit."""
    section, group, side, label, colour = shown
    sides = {key.side for key in results.keys(section, group)}

    def speeds(of: str) -> list[float]:
        found = []
        for case in results.cases(section, group):
            size = float(results.fact(section, group, case, of, "bytes"))
            found.append(gigabytes_per_second(size, results.calm(section, group, case, of)))
        return found

    is_limited = side == "tileops" and "fill" in sides
    return Series(label, colour, speeds(side), speeds("fill") if is_limited else ())


def bars(ax: Axes, title: str, cases: Sequence[str], series: Sequence[Series], limit: str) -> None:
    """Draw series side by side, with a line across each bar at its limit."""
    width = 0.8 / len(series)
    for place, (label, colour, values, most) in enumerate(series):
        middle = [number - 0.4 + (place + 0.5) * width for number in range(len(cases))]
        ax.bar(middle, values, width, label=label, color=colour)
        if most:
            start, stop = ([x + side * width / 2 for x in middle] for side in (-1, 1))
            ax.hlines(most, start, stop, color="black", linewidth=1.2)
    handles, labels = ax.get_legend_handles_labels()
    if any(each.limits for each in series):
        handles.append(Line2D([], [], color="black", linewidth=1.2))
        labels.append(limit)
    ax.set_title(title)
    ax.set_xticks(range(len(cases)), cases, rotation=35, ha="right", rotation_mode="anchor")
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.6, len(cases) - 0.4)
    columns = len(labels)
    ax.legend(
        handles, labels, loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, borderaxespad=0
    )


def mark_limit(ax: Axes, limit: float, name: str) -> None:
    """Draw a limit as a line across a plot, and label it at the right, above the lowest bars."""
    ax.axhline(limit, color="black", linewidth=1, linestyle="--")
    ax.set_ylim(top=max(ax.get_ylim()[1], 1.2 * limit))
    ax.annotate(
        name,
        (1, limit),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )


def _growth(results: Results, path: Path) -> None:
    figure, axes = plt.subplots(1, len(growth.GROUPS), figsize=(11, 4))
    for ax, group in zip(axes, growth.GROUPS, strict=True):
        _curves(ax, results, group)
    _linear_reference(axes[0], results)
    axes[0].set_ylabel("milliseconds")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(handles))
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    _save(figure, path)


def _curves(ax: Axes, results: Results, group: str) -> None:
    cases = results.cases(growth.SECTION, group)
    for side, (colour, style) in LINES.items():
        times = [results.calm(growth.SECTION, group, case, side) * 1e3 for case in cases]
        ax.plot(
            [int(case) for case in cases],
            times,
            style,
            color=colour,
            label=side,
            marker="o",
            markersize=4,
        )
    ax.set_title(growth.GROUPS[group].title)
    ax.set_xlabel(GROWTH_AXES[group])
    if group == "bytes":
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks([int(case) for case in cases], cases)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        ax.set_ylim(bottom=0)
        if group == "repeats":
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())


def _linear_reference(ax: Axes, results: Results) -> None:
    sizes = [int(case) for case in results.cases(growth.SECTION, "bytes")]
    last = results.calm(growth.SECTION, "bytes", str(sizes[-1]), "tileops, NumPy") * 1e3
    times = [last * size / sizes[-1] for size in sizes]
    name = "in proportion to bytes, through the largest result"
    ax.plot(sizes, times, ":", color="black", linewidth=1, label=name, zorder=1)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path)
    plt.close(figure)

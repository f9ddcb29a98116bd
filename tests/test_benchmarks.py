"""The GPU benchmark, which also runs without a GPU, and the figures that the documents quote."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import kernels
import tileops

ROOT = Path(__file__).parents[1]


@pytest.mark.library("numpy")
def test_every_workload_fills_a_gpu_at_full_scale():
    from benchmarks.gpu.workloads import LEAST_RESULT, workloads_at
    from benchmarks.workloads import WORKLOADS

    for scale in (1.0, 1 / 256):
        found = list(workloads_at(scale))
        assert [workload.name for workload in found] == [workload.name for workload in WORKLOADS]
        for workload in found:
            assert workload.result_bytes >= LEAST_RESULT * scale / 2


@pytest.mark.library("numpy")
def test_the_command_of_a_run_on_a_gpu_names_no_folder():
    from benchmarks.gpu.environment import command

    for words in (["--out", "a/b", "--minutes", "4"], ["--minutes", "4", "--out=a/b"]):
        assert command(words) == "python -m benchmarks.gpu --minutes 4"


@pytest.mark.library("numpy")
def test_the_page_about_gpus_matches_the_results():
    from benchmarks.gpu.page import markdown

    folder = ROOT / "docs" / "benchmarks"
    results = json.loads((folder / "gpu.json").read_text())
    assert (folder / "gpu.md").read_text() == markdown(results)


_PAGES = {
    "EPYC (Zen 5)": "cpu.md",
    "EPYC (Zen 3)": "zen3/cpu.md",
    "Xeon (Ice Lake)": "icelake/cpu.md",
    "Xeon (model 167)": "intel/cpu.md",
    "H200": "gpu.md",
}
_TABLES = {"PyTorch, new memory": "torch, tile", "CuPy, new memory": "cupy, tile"}
"""The tables of the page about GPUs; those of the others have the titles of the README's rows."""


@pytest.mark.library("numpy")
def test_the_readme_quotes_the_figures_of_the_pages():
    from benchmarks.workloads import WORKLOADS

    readme = (ROOT / "README.md").read_text()
    header, *rows = _cells("| result" + readme.split("\n| result")[1].split("\n\n")[0])
    assert header == ["result", "compared with", *_PAGES]
    means = []
    for result, native, *quotes in rows:
        for quote, page in zip(quotes, _PAGES.values(), strict=True):
            title = _TABLES.get(result) if page == "gpu.md" else result
            table = _table(page, title)
            column = "ratio" if native.endswith(".tile`") else f"to {native}"
            if not table or column not in table[0]:
                assert quote == ""
                continue
            ratios = {row[0]: float(row[table[0].index(column)]) for row in table[1:] if row[-1]}
            of_each = [ratios[workload.name] for workload in WORKLOADS]
            mean = ratios["geometric mean"]
            least_to_most = f"{min(of_each):.1f} to {max(of_each):.1f}"
            assert quote.replace("*", "") == f"{mean:.2f} ({least_to_most})"
            if column == "ratio":
                means.append(mean)
    words = " ".join(readme.split())
    assert f"written {min(means):.1f} to {max(means):.1f} times as fast" in words
    assert f"results of {len(WORKLOADS)} workloads" in words


@pytest.mark.library("numpy")
def test_the_guide_quotes_the_figures_of_the_pages():
    gains, changing = {"NumPy": [], "PyTorch": []}, {"NumPy": [], "PyTorch": []}
    for page in (page for page in _PAGES.values() if page.endswith("cpu.md")):
        calls = {row[0]: row for row in _table(page, "Less common calls on less than 1 KB")}
        for library in gains:
            rows = {row[0]: row for row in _table(page, f"{library}, elements and rows one by one")}
            for name in _SHORT:
                gains[library] += map(float, rows[name][-2:])  # 1 and 8 MiB
            native, ours = calls[f"{library}, tile, changing shapes"][2:4]
            changing[library].append(float(ours) / float(native))
    guide = " ".join((ROOT / "docs" / "guide.md").read_text().split())
    for library, tile in (("NumPy", "np.tile"), ("PyTorch", "torch.tile")):
        span = f"{min(gains[library]):.1f} to {max(gains[library]):.1f}"
        assert f" {span} times as fast as by `{tile}`" in guide
        span = f"{min(changing[library]):.1f} to {max(changing[library]):.1f}"
        assert f" {span} times as long as `{tile}`" in guide


_SHORT = (
    "a byte, twice",
    "a byte, three times: gray to RGB",
    "an int16, twice: mono to stereo",
    "a float32, twice",
    "3 bytes, four times",
)
"""Elements of 1 to 4 bytes that are repeated two to four times."""


def _table(page, title):
    """Return the cells of a page's table, or nothing if it has no table of that title."""
    text = (ROOT / "docs" / "benchmarks" / page).read_text()
    return _cells(text.partition(f"\n### {title}\n")[2].split("\n#")[0])


def _cells(text):
    """Return the cells of a Markdown table, its header first, without its line of dashes."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]
    return rows[:1] + rows[2:]


@pytest.mark.library("torch")
def test_always_planned_uses_a_plan_for_the_smallest_copies(monkeypatch):
    """Here the GPU is simulated: PyTorch tensors of the CPU are treated as a GPU's."""
    import torch
    from benchmarks.gpu.planning import always_planned

    from tileops.execute import torch_bytes

    def repeat(*arguments):
        found.append(arguments)
        kernels.repeat(*arguments)

    found = []
    monkeypatch.setattr(torch_bytes, "_is_on_gpu", lambda _: True)
    monkeypatch.setattr(torch_bytes, "_cuda", lambda: SimpleNamespace(repeat=repeat))
    x = torch.arange(3)
    for planned in (True, False):
        with always_planned("cuda") if planned else contextlib.nullcontext():
            assert tileops.tile(x, 2).tolist() == [0, 1, 2, 0, 1, 2]
            out = torch.empty(6, dtype=x.dtype)
            assert tileops.tile(x, 2, out=out).tolist() == [0, 1, 2, 0, 1, 2]
        assert len(found) == (2 if planned else 0)
        found.clear()


@pytest.mark.library("torch", "jax")
def test_the_benchmark_of_gpus_runs_on_a_cpu(request, tmp_path):
    library, out = request.config.getoption("--library"), tmp_path / "gpu.json"
    options = ["--device", "cpu", "--scale", "0.0005", "--libraries", library, "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *options],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(out.read_text())
    assert results["errors"] == {}
    assert {"ceilings", "correctness", "speed", "crossover"} <= set(results)
    assert {row["library"] for row in results["speed"]} == {library}

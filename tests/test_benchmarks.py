"""The GPU benchmark, which also runs without a GPU to show that it works."""

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


_ON_CPUS = (
    ("NumPy, new memory", "np.tile"),
    ("NumPy, `out=` used again", "np.tile"),
    ("PyTorch, new memory", "torch.tile"),
    ("PyTorch, `out=` used again", "torch.tile"),
)
_QUOTED = (
    *(("cpu.md", result, result, native) for result, native in _ON_CPUS),
    *(("intel/cpu.md", result, result, native) for result, native in _ON_CPUS),
    ("gpu.md", "torch, tile", "PyTorch", "torch.tile"),
    ("gpu.md", "cupy, tile", "CuPy", "cupy.tile"),
)
"""What the README's table of speed quotes, in its order: page, table of the page, and the words of
the README for what is compared with what."""


@pytest.mark.library("numpy")
def test_the_readme_quotes_the_figures_of_the_pages():
    from benchmarks.workloads import WORKLOADS

    readme = (ROOT / "README.md").read_text()
    quoted = readme.split("| lowest | geometric mean | highest |\n")[1].split("\n\n")[0]
    _, *lines = quoted.splitlines()
    means = []
    for line, (page, table, result, native) in zip(lines, _QUOTED, strict=True):
        text = (ROOT / "docs" / "benchmarks" / page).read_text().split(f"### {table}\n")[1]
        ratios = _ratios(text.split("\n#")[0])
        of_each = [ratios[workload.name] for workload in WORKLOADS]
        means.append(ratios["geometric mean"])
        quote = f"{min(of_each):.1f} | **{means[-1]:.2f}** | {max(of_each):.1f}"
        assert line.endswith(f" | {result} | `{native}` | {quote} |")
    words = " ".join(readme.split())
    assert f"written {min(means):.1f} to {max(means):.1f} times as fast" in words
    assert f"results of {len(WORKLOADS)} workloads" in words


def _ratios(text):
    """Return the ratio of each row of a page's table, by the row's name."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    header, _, *rows = ([cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: float(row[header.index("ratio")]) for row in rows}


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

"""The test matrix, with each array library in its own environment, and the checks of the code.

``nox`` runs all sessions except the benchmarks, the newer Pythons, and the oldest releases of all
libraries other than NumPy. ``nox -s tests-torch`` runs one session; arguments after ``--`` go to
pytest. ``nox -s bench`` runs the benchmarks on the CPU, and ``nox -s gpu`` those on a GPU.
"""

import shutil
import subprocess
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = True

PUBLIC = (
    "src/tileops/_adjoint.py",
    "src/tileops/_ops.py",
    "src/tileops/_threads.py",
    "src/tileops/directml.py",
    "src/tileops/openvino.py",
    "src/tileops/onnx/_inference.py",
    "src/tileops/onnx/_operators.py",
    "src/tileops/onnx/backend.py",
    "src/tileops/onnx/reference.py",
    "src/tileops/onnx/upgrade.py",
)
"""The modules whose docstrings are the reference documentation."""

PYPROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *packages: str, group: str) -> None:
    """Install these packages and a dependency group, at the pinned versions."""
    wanted = nox.project.dependency_groups(PYPROJECT, group)
    session.install("-c", "constraints.txt", *wanted, *packages)


def run_tests(session: nox.Session, library: str, *packages: str) -> None:
    """Run the tests of a library in an environment with no other array library except NumPy."""
    install(session, *packages, group="test")
    session.run("pytest", "--isolated", "--library", library, *session.posargs)


@nox.session(name="tests-numpy")
def tests_numpy(session: nox.Session) -> None:
    """NumPy, the command line, and the examples in the documentation."""
    run_tests(session, "numpy", ".[cli,onnx]", "ml_dtypes")


@nox.session(name="tests-strict")
def tests_strict(session: nox.Session) -> None:
    """The Array API standard, at its strictest."""
    run_tests(session, "array_api_strict", ".[onnx]", "array-api-strict")


@nox.session(name="tests-others")
@nox.parametrize("library", ["marray", "ndonnx", "sparse"])
def tests_others(session: nox.Session, library: str) -> None:
    """Libraries of the Array API standard that have no module here."""
    run_tests(session, library, ".[onnx]", library, "onnxruntime")  # ndonnx runs on it


@nox.session(name="tests-torch")
def tests_torch(session: nox.Session) -> None:
    """PyTorch on the CPU, and on a CUDA device where there is one."""
    run_tests(session, "torch", ".[torch,cli,onnx]", "onnxruntime", "onnxscript")


@nox.session(name="tests-jax")
def tests_jax(session: nox.Session) -> None:
    """JAX on the CPU, and on a CUDA device where its plugin is installed."""
    run_tests(session, "jax", ".[jax,cli,onnx]", *(["jax[cuda12]"] if cuda_devices() else []))


@nox.session(name="tests-dask")
def tests_dask(session: nox.Session) -> None:
    """Dask over NumPy."""
    run_tests(session, "dask", ".[dask,cli,onnx]")


@nox.session(name="tests-cupy")
def tests_cupy(session: nox.Session) -> None:
    """CuPy, on a CUDA device."""
    if not cuda_devices():
        session.skip("no CUDA device here (nvidia-smi lists none): CuPy is not tested")
    run_tests(session, "cupy", ".[cuda12,onnx]")


@nox.session(default=False, python=["3.12", "3.13", "3.14", "3.15"])
def pythons(session: nox.Session) -> None:
    """NumPy on those of the newer Pythons that are installed."""
    run_tests(session, "numpy", ".[cli,onnx]", "ml_dtypes")


@nox.session(name="floors-numpy", python="3.11")
def floors_numpy(session: nox.Session) -> None:
    """NumPy on the oldest Python and the oldest releases that pyproject.toml allows."""
    run_oldest(session, "numpy")


@nox.session(default=False, python="3.11")
@nox.parametrize("library", ["torch", "jax", "dask"])
def floors(session: nox.Session, library: str) -> None:
    """PyTorch, JAX or Dask on the oldest releases; PyTorch's installs gigabytes for CUDA."""
    run_oldest(session, library)


def run_oldest(session: nox.Session, library: str) -> None:
    """Run the tests of a library on its oldest release and those of the common dependencies."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = map(Requirement, [*project["dependencies"], *extras.get(library, ()), *extras["onnx"]])
    pins = {requirement.name: oldest(requirement) for requirement in wanted}
    if library != "numpy":
        # Compilation and tracing go through array-api-compat, whose newest release works with all.
        del pins["array-api-compat"]
    constraints = Path(session.create_tmp()) / "constraints.txt"
    newest = Path("constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in newest if line.partition("==")[0] not in {*pins, "jaxlib"}]
    pinned = [f"{name}=={version}" for name, version in pins.items()]
    constraints.write_text("\n".join([*kept, *pinned]), encoding="utf-8")
    extra = "" if library == "numpy" else f"{library},"
    others = {"numpy": ["ml_dtypes"], "torch": ["onnxruntime", "onnxscript"]}.get(library, [])
    test = nox.project.dependency_groups(PYPROJECT, "test")
    session.install("-c", str(constraints), *test, f".[{extra}cli,onnx]", *others)
    # tests/test_peers.py describes the libraries' own functions in their newest releases.
    options = ("--isolated", "--library", library, "--ignore", "tests/test_peers.py")
    session.run("pytest", *options, *session.posargs)


def oldest(requirement: Requirement) -> str:
    """Return the lowest version that a requirement allows."""
    (floor,) = (part.version for part in requirement.specifier if part.operator == ">=")
    return floor


@nox.session
def conformance(session: nox.Session) -> None:
    """Thousands of random models, run by ONNX's tools, onnxruntime and OpenVINO, and here."""
    install(session, ".[onnx]", "onnxruntime", "openvino", group="test")
    session.run("pytest", "conformance", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure speed and memory on the CPU; arguments after ``--`` go to the benchmarks."""
    peers = ("einops", "ml_dtypes", "onnxruntime", "openvino")
    install(session, ".[torch,jax,onnx]", *peers, group="bench")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(default=False)
def gpu(session: nox.Session) -> None:
    """Measure and test on a CUDA device; arguments after ``--`` go to the benchmark.

    With the argument ``--device cpu``, only a small benchmark runs, to show that it works.
    """
    benchmark = ("python", "-m", "benchmarks.gpu", *session.posargs)
    if "--device cpu" in " ".join(session.posargs).replace("=", " "):
        install(session, ".[torch,jax]", group="test")
        session.run(*benchmark)
    elif cuda_devices():
        # The pinned torch installs CUDA 13, and one process can use only one version of CUDA.
        libraries = (".[torch,jax,cuda13,cli,onnx]", "jax[cuda13]", "onnxruntime", "onnxscript")
        install(session, *libraries, group="gpu")
        session.run(*benchmark)
        session.run("python", "-m", "benchmarks.gpu.page")
        for library in ("torch", "cupy", "jax"):
            session.run("pytest", "--library", library)
    else:
        session.skip("no CUDA device here (nvidia-smi lists none); try -- --device cpu")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting, and the sections of public docstrings."""
    install(session, group="lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("numpydoc", "lint", *PUBLIC)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation as HTML; any warning fails."""
    install(session, ".[onnx]", group="docs")
    session.run("sphinx-build", "-EW", "--keep-going", "-q", "-c", "docs", ".", "build/html")


@nox.session
def types(session: nox.Session) -> None:
    """Check static types, strictly."""
    install(session, ".[cli,onnx]", group="types")
    session.run("mypy")
    session.run("mypy", "tests/typed.py")


def cuda_devices() -> list[str]:
    """List the CUDA devices that the driver reports."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    done = subprocess.run([command, "-L"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []

"""The matrix: each array library in an environment of its own, and the checks of the code.

``nox`` runs all of it but the benchmarks, the oldest releases (NumPy's it does run) and the newer
Pythons; ``nox -s tests-torch`` one session; arguments after ``--`` go to pytest. ``nox -s bench``
measures, and ``nox -s gpu`` on a GPU.
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
"""The modules whose docstrings people read as reference."""

PYPROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *packages: str, group: str) -> None:
    """Install the project with these packages and a dependency group, at the pinned versions."""
    wanted = nox.project.dependency_groups(PYPROJECT, group)
    session.install("-c", "constraints.txt", *wanted, *packages)


def run_tests(session: nox.Session, library: str, *packages: str) -> None:
    """Run the tests of a library where no other array library but NumPy is installed."""
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
    run_tests(session, library, ".[onnx]", library, "onnxruntime")  # by which ndonnx computes


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


@nox.session(default=False, python=["3.12", "3.13", "3.14"])
def pythons(session: nox.Session) -> None:
    """NumPy on the newer Pythons, those that are installed."""
    run_tests(session, "numpy", ".[cli,onnx]", "ml_dtypes")


@nox.session(name="floors-numpy", python="3.11")
def floors_numpy(session: nox.Session) -> None:
    """NumPy on the oldest Python and the oldest releases that pyproject.toml allows."""
    run_oldest(session, "numpy")


@nox.session(default=False, python="3.11")
@nox.parametrize("library", ["torch", "jax", "dask"])
def floors(session: nox.Session, library: str) -> None:
    """PyTorch, JAX or Dask on the oldest; PyTorch's brings gigabytes of CUDA packages along."""
    run_oldest(session, library)


def run_oldest(session: nox.Session, library: str) -> None:
    """Run the tests of a library on the oldest releases of it and of what all libraries need."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = map(Requirement, [*project["dependencies"], *extras.get(library, ()), *extras["onnx"]])
    pins = {requirement.name: oldest(requirement) for requirement in wanted}
    if library != "numpy":
        # What compiles and traces goes through it, and the newest serves all of them.
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
    # What the libraries' own functions do is told of their newest releases.
    options = ("--isolated", "--library", library, "--ignore", "tests/test_peers.py")
    session.run("pytest", *options, *session.posargs)


def oldest(requirement: Requirement) -> str:
    """Give the version that a requirement begins with."""
    (floor,) = (part.version for part in requirement.specifier if part.operator == ">=")
    return floor


@nox.session
def conformance(session: nox.Session) -> None:
    """Thousands of random models on ONNX's tools, onnxruntime and OpenVINO, and here."""
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

    With ``--device cpu`` among them only the benchmark runs, small: to see that it works.
    """
    benchmark = ("python", "-m", "benchmarks.gpu", *session.posargs)
    if "--device cpu" in " ".join(session.posargs).replace("=", " "):
        install(session, ".[torch,jax]", group="test")
        session.run(*benchmark)
    elif cuda_devices():
        # The pinned torch brings CUDA 13 along, and one process has one CUDA.
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
    """Style, formatting, and the sections of public docstrings."""
    install(session, group="lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("numpydoc", "lint", *PUBLIC)


@nox.session
def types(session: nox.Session) -> None:
    """Check static types, strictly."""
    install(session, ".[cli,onnx]", group="types")
    session.run("mypy")
    session.run("mypy", "tests/typed.py")


def cuda_devices() -> list[str]:
    """List the CUDA devices that the driver names."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    done = subprocess.run([command, "-L"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []

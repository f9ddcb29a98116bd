"""The library that a run is about: ``pytest --library torch``."""

import importlib.util

import numpy as np
import pytest

import variants


def pytest_addoption(parser):
    parser.addoption(
        "--library", choices=list(variants.ALL), default="numpy", help="the library under test"
    )
    parser.addoption(
        "--isolated", action="store_true", help="fail if another array library is installed"
    )
    parser.addoption(
        "--write-docs", action="store_true", help="write the tables in docs/ that tests compare"
    )


def pytest_configure(config):
    library = config.getoption("--library")
    others = [name for name in variants.ALL if name not in ("numpy", library)]
    found = [name for name in others if importlib.util.find_spec(name)]
    if config.getoption("--isolated") and found:
        raise pytest.UsageError(f"--isolated --library {library}: found {', '.join(found)} too")
    config.addinivalue_line("markers", "library(*names): runs only with --library of these")


def pytest_ignore_collect(collection_path, config):
    """Leave out what the environment of a library does not install, or cannot run on it."""
    library = config.getoption("--library")
    left_out = [] if library == "numpy" else ["test_cli.py"]
    if library in variants.OTHERS:
        left_out += ["test_onnx_backend.py", "test_onnx_reference.py"]
    return collection_path.name in left_out or None


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other libraries: each has a run of its own."""
    library = config.getoption("--library")
    names = {item: [n for m in item.iter_markers("library") for n in m.args] for item in items}
    other = [item for item in items if names[item] and library not in names[item]]
    config.hook.pytest_deselected(items=other)
    items[:] = [item for item in items if item not in set(other)]


def pytest_report_header(config):
    """Name what runs, and what cannot run on this machine."""
    found = variants.ALL[config.getoption("--library")]
    return [
        f"variant {variant!r}: {f'left out, {why}' if (why := variant.missing()) else 'runs'}"
        for variant in found
    ]


def pytest_generate_tests(metafunc):
    """Run a test of ``xp`` for each variant; a library that is missing is an error here."""
    if "xp" in metafunc.fixturenames:
        found = [v for v in variants.ALL[metafunc.config.getoption("--library")] if not v.missing()]
        metafunc.parametrize("xp", found, scope="session", ids=repr)
    if "thresholds" in metafunc.fixturenames:
        found = variants.THRESHOLDS.get(metafunc.config.getoption("--library"), ("measured",))
        metafunc.parametrize("thresholds", found, indirect=True)


@pytest.fixture
def thresholds(request, monkeypatch):
    """Let a test run with the planner's thresholds, and where small copies take all its steps."""
    variants.set_thresholds(monkeypatch, request.param)
    yield request.param
    monkeypatch.undo()
    variants.forget_plans()


@pytest.fixture
def rng():
    return np.random.default_rng(20_26)

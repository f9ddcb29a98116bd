"""Options of the test run; ``pytest --library torch`` names the library under test."""

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
    """Leave out files whose requirements the library's environment lacks, or that it cannot run."""
    library = config.getoption("--library")
    left_out = [] if library == "numpy" else ["test_cli.py"]
    if library in variants.OTHERS:
        left_out += ["test_onnx_backend.py", "test_onnx_reference.py"]
    return collection_path.name in left_out or None


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other libraries, which run in environments of their own."""
    library = config.getoption("--library")
    names = {item: [n for m in item.iter_markers("library") for n in m.args] for item in items}
    other = [item for item in items if names[item] and library not in names[item]]
    config.hook.pytest_deselected(items=other)
    items[:] = [item for item in items if item not in set(other)]


def pytest_report_header(config):
    """Name the variants that run, and those that cannot run on this machine."""
    found = variants.ALL[config.getoption("--library")]
    return [
        f"variant {variant!r}: {f'left out, {why}' if (why := variant.missing()) else 'runs'}"
        for variant in found
    ]


def pytest_generate_tests(metafunc):
    """Run a test that takes ``xp`` once per variant; a library that is missing is an error here."""
    if "xp" in metafunc.fixturenames:
        found = [v for v in variants.ALL[metafunc.config.getoption("--library")] if not v.missing()]
        metafunc.parametrize("xp", found, scope="session", ids=repr)
    if "thresholds" in metafunc.fixturenames:
        found = variants.THRESHOLDS.get(metafunc.config.getoption("--library"), ("measured",))
        metafunc.parametrize("thresholds", found, indirect=True)


@pytest.fixture
def thresholds(request, monkeypatch):
    """Run a test with the planner's own thresholds and with ones that small copies reach."""
    variants.set_thresholds(monkeypatch, request.param)
    yield request.param
    monkeypatch.undo()
    variants.forget_plans()


@pytest.fixture
def rng():
    return np.random.default_rng(20_26)

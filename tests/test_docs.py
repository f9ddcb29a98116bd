"""Examples in docstrings and pages print what they show; the reference is complete."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import tileops
import variants

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def run(example, name):
    test = doctest.DocTestParser().get_doctest(example, {}, name, name, 0)
    failures, tried = doctest.DocTestRunner().run(test)
    assert failures == 0
    assert tried > 0


@pytest.mark.library(*(name for name in variants.ALL if name not in variants.OTHERS))
def test_the_examples_of_the_readme_for_this_library_run(request):
    library = request.config.getoption("--library")
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    mine = [b for b in blocks if re.search(rf">>> import {library}\b", b)]
    assert mine
    for block in mine:
        run(block, f"README.md ({library})")


@pytest.mark.library("numpy")
def test_the_example_of_the_design_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/design.md").read_text(), re.DOTALL)
    run(block, "docs/design.md")


PUBLIC = (
    *("tileops", "tileops.directml", "tileops.openvino", "tileops.onnx"),
    *("tileops.onnx.backend", "tileops.onnx.reference", "tileops.onnx.upgrade"),
)


@pytest.mark.library("numpy")
@pytest.mark.parametrize("module", PUBLIC)
def test_docstring_examples_run(module):
    module = importlib.import_module(module)
    items = {name: getattr(module, name) for name in module.__all__ if name != "__version__"}
    for name, item in items.items():
        assert item.__doc__
        is_error = isinstance(item, type) and issubclass(item, tileops.TileOpsError)
        if callable(item) and not is_error:
            run(item.__doc__, f"{module.__name__}.{name}")


@pytest.mark.library("numpy")
def test_the_reference_lists_every_public_function():
    reference = (ROOT / "docs" / "reference.rst").read_text()
    assert set(re.findall(r"automodule:: (\S+)", reference)) == {*PUBLIC, "tileops.errors"}
    functions = {
        getattr(module, name).__name__  # the latest versions of ONNX have a second name
        for module in (tileops, tileops.onnx)
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    assert set(re.findall(r"autofunction:: (\S+)", reference)) == functions

"""The examples in docstrings and README run and print what they say."""

import doctest
import re
from pathlib import Path

import pytest

import tileops

README = (Path(__file__).parents[1] / "README.md").read_text()


def run(example, name):
    test = doctest.DocTestParser().get_doctest(example, {}, name, name, 0)
    failures, tried = doctest.DocTestRunner().run(test)
    assert failures == 0
    assert tried > 0


def test_readme_has_an_example_that_runs(request):
    library = request.config.getoption("--library")
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    mine = [b for b in blocks if re.search(rf">>> import {library}\b", b)]
    assert mine
    for block in mine:
        run(block, f"README.md ({library})")


@pytest.mark.library("numpy")
@pytest.mark.parametrize(
    "name", [name for name in tileops.__all__ if callable(getattr(tileops, name))]
)
def test_docstring_examples_run(name):
    item = getattr(tileops, name)
    if isinstance(item, type):
        assert item.__doc__
    else:
        run(item.__doc__, name)

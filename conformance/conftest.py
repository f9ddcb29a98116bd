"""Options for the number of random cases and their seed, and a summary of the comparisons."""

import numpy as np
import pytest

import oracle


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=4_000, help="random cases for each peer")
    parser.addoption("--seed", type=int, default=2026, help="seed of the random cases")


@pytest.fixture
def rng(request):
    return np.random.default_rng(request.config.getoption("--seed"))


@pytest.fixture
def count(request):
    return request.config.getoption("--cases")


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.section(f"conformance, seed {config.getoption('--seed')}")
    for line in oracle.REPORT:
        terminalreporter.write_line(line)

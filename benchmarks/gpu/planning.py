"""Copies that are planned at every size."""

import contextlib
import sys
from collections.abc import Iterator

THRESHOLDS = {
    "cuda": {"tileops.execute.device": "LEAST", "tileops.execute.host": "LEAST"},
    "cpu": {"tileops.execute.host": "LEAST", "tileops.execute.torch": "HUGE"},
}
"""The bytes from which on copies are planned, where the modules of tileops keep them.

PyTorch's smallest results are below that of the host, wherever they lie.
"""


@contextlib.contextmanager
def always_planned(device: str) -> Iterator[None]:
    """Make tileops plan a copy at every size, as it does by default for large results only."""
    places = {sys.modules.get(name): where for name, where in THRESHOLDS[device].items()}
    before = {module: getattr(module, where) for module, where in places.items() if module}
    try:
        for module in before:
            setattr(module, places[module], 1)
        yield
    finally:
        for module, value in before.items():
            setattr(module, places[module], value)

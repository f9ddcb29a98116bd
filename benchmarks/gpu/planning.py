"""Planning of copies at every size."""

import contextlib
import sys
from collections.abc import Iterator

THRESHOLDS = {
    "cuda": [
        ("tileops.execute.torch_bytes", "_FEWEST"),
        ("tileops.execute.cupy", "_FEWEST"),
        ("tileops.execute.host", "LEAST"),
    ],
    "cpu": [("tileops.execute.host", "LEAST"), ("tileops.execute.torch", "HUGE")],
}
"""Where the modules of tileops keep the least sizes of results that are planned.

PyTorch plans no result below the host's size, on any device.
"""


@contextlib.contextmanager
def always_planned(device: str) -> Iterator[None]:
    """Make tileops plan a copy at every size, as it does by default for large results only."""
    found = [(sys.modules.get(name), where) for name, where in THRESHOLDS[device]]
    before = [(module, where, getattr(module, where)) for module, where in found if module]
    try:
        for module, where, _ in before:
            setattr(module, where, 1)
        yield
    finally:
        for module, where, value in before:
            setattr(module, where, value)

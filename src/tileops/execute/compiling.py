"""What `torch.compile` has to be told, if it traces the caller. Nothing here imports PyTorch.

`torch_compile.py` does what is needed then; loading that module takes a second.
"""

import sys
from collections.abc import Callable
from typing import Any


def is_compiling() -> bool:
    """Whether torch.compile is tracing the caller."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return compiler is not None and compiler.is_dynamo_compiling() is True  # not so for a stub


def prepare_to_trace() -> None:
    """Tell torch.compile how to trace the rules, if it is tracing the caller.

    The compiler looks this up only when it first meets a function of the rules.
    """
    if is_compiling():
        from tileops.execute import torch_compile  # noqa: F401, PLC0415 (see above)


def call_uncompiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function outside of the program that torch.compile traces, whose graph breaks here."""
    from tileops.execute import torch_compile  # noqa: PLC0415 (see above)

    return torch_compile.call(function, *arguments)


def traceable(counts: Any) -> Any:
    """Make an array of counts traceable for torch.compile, if it is tracing the caller."""
    if is_compiling():
        from tileops.execute import torch_compile  # noqa: PLC0415 (see above)

        return torch_compile.traceable(counts)
    return counts

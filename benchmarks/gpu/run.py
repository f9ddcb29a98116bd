"""A run: its options, the time that it has left, and its results."""

import argparse
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu.libraries import LIBRARIES
from benchmarks.gpu.libraries.base import Library, UnavailableError


class Run:
    """The options of a run, its libraries, the time that it has left, and its results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device: str = options.device
        self.scale: float = options.scale or (1.0 if options.device == "cuda" else 1 / 256)
        self.out = Path(options.out)
        self.started = time.monotonic()
        self.end = self.started + 60 * options.minutes
        self.step_end = self.end
        self.results: dict[str, Any] = {"left_out": [], "errors": {}, "seconds": {}}
        self.libraries: list[Library] = []
        for name in options.libraries:
            self._open(name)

    def _open(self, name: str) -> None:
        try:
            self.libraries.append(LIBRARIES[name](self.device))
        except UnavailableError as error:
            self.leave_out(f"{name}: {error}")
        except Exception as error:  # noqa: BLE001 (a broken library must not stop others)
            self.leave_out(f"{name}: cannot be used here, {describe_error(error)}")

    @property
    def is_gpu(self) -> bool:
        """Whether arrays lie on a GPU."""
        return self.device == "cuda"

    def leave_out(self, what: str) -> None:
        """Say what is left out, and why."""
        self.results["left_out"].append(what)
        say(f"  left out: {what}")

    def begin(self, title: str, share: float) -> None:
        """Start a step, which may take this share of the remaining time."""
        now = time.monotonic()
        self.step_end = now + share * max(0.0, self.end - now)
        say(f"\n== {title} (at {now - self.started:.0f} s)")

    def has_time(self, what: str) -> bool:
        """Return whether the step may go on, and say so if it may not."""
        if time.monotonic() < self.step_end:
            return True
        self.leave_out(f"{what}: no time left")
        return False

    @contextlib.contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Record the error of a part that fails, go on after it, and save the results."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (whatever failed, the rest is worth having)
            self.results["errors"][what] = describe_error(error)
            say(f"  FAILED {what}: {describe_error(error)}")
        self.save()

    def save(self) -> None:
        """Write all results, and replace the previous file only when the new one is complete."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        part = self.out.with_name(self.out.name + ".part")
        part.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        part.replace(self.out)


def describe_error(error: BaseException) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def say(text: str) -> None:
    """Print without buffering, so that an interrupted run shows how far it came."""
    print(text, flush=True)

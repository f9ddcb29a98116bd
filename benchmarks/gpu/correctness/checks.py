"""The checks of a library: how many passed, and which failed."""

import contextlib
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.libraries.base import Call, Library
from benchmarks.gpu.run import Run, describe_error, say


class Checks:
    """Counts the checks of a library that passed, and records those that failed."""

    def __init__(self, run: Run, library: Library, found: dict[str, Any]) -> None:
        self.run, self.library = run, library
        self.passed: dict[str, int] = found.setdefault("passed", {})
        self.failed: list[dict[str, str]] = found.setdefault("failed", [])
        self.group = ""

    def start(self, group: str) -> None:
        """Begin a group."""
        self.group = group
        self.passed[group] = 0

    @contextlib.contextmanager
    def case(self, name: str, native: Call | None = None) -> Iterator[None]:
        """Count a check; if it fails, say whether the library's own function passes it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (any error is a failed check)
            entry = {"group": self.group, "case": name, "error": describe_error(error)}
            if native is not None:
                entry["native"] = outcome(native)
            self.failed.append(entry)
            if len(self.failed) <= 20:
                say(f"  WRONG {self.library.name}, {self.group}, {name}: {entry['error']}")
        else:
            self.passed[self.group] += 1

    def elements(self, itemsize: int, part: float = 1.0) -> int:
        """Return how many elements a result that is compared on the host may have."""
        return max(2**18, int(2**21 * min(self.run.scale, 1.0) * part)) // itemsize

    def has_time(self, what: str) -> bool:
        """Return whether the group may go on, and say so if it may not."""
        return self.run.has_time(f"{self.library.name}, {what}")

    def leave_out(self, what: str) -> None:
        """Say what is not checked, and why."""
        self.run.leave_out(f"{self.library.name}, {self.group}: {what}")


def outcome(call: Call) -> str:
    """Return how a check ends: its error, or "passes"."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 (any error is the answer)
        return describe_error(error)
    return "passes"

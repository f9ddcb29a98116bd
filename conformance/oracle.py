"""Comparison with a peer: outcomes, differences, and known deviations."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tileops

REPORT: list[str] = []
"""What each comparison found, printed at the end of a run."""


class Deviation(NamedTuple):
    """A way in which a peer departs from its specification, or does not cover it."""

    reason: str
    covers: Callable
    """Returns whether the deviation may make a case differ."""
    example: object
    """A case that differs because of the deviation; if it no longer does, drop the deviation."""
    is_safe: bool = True
    """Whether the peer can run such a case in this process without corrupting its memory."""


def outcome_here(call):
    """Return this package's result or refusal; any other error is a fault and is raised."""
    try:
        return call()
    except tileops.TileOpsError as error:
        return error


def outcome_there(call):
    """Return a peer's result, or whatever it raised."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 (peers refuse with errors of many types)
        return error


def difference(ours, theirs):
    """Say how two outcomes differ, or return None; two refusals are taken as the same."""
    refused = isinstance(ours, Exception), isinstance(theirs, Exception)
    if any(refused):
        return None if all(refused) else f"here: {_tell(ours)}\nthere: {_tell(theirs)}"
    if ours.shape != theirs.shape:
        return f"here: shape {ours.shape}\nthere: shape {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"here: {ours.dtype}\nthere: {theirs.dtype}"
    if ours.dtype == object:
        return None if ours.tolist() == theirs.tolist() else "the strings differ"
    if ours.tobytes() == theirs.tobytes():
        return None
    wrong = np.flatnonzero(_raw(ours) != _raw(theirs))
    i = np.unravel_index(wrong[0] // ours.itemsize, ours.shape)
    i = tuple(map(int, i))
    return (
        f"{len(wrong)} bytes differ, first in element {i}\n"
        f"here: {ours[i]!r} ({ours[i].tobytes().hex()})\n"
        f"there: {theirs[i]!r} ({theirs[i].tobytes().hex()})"
    )


def _raw(array):
    return np.frombuffer(array.tobytes(), np.uint8)


def _tell(outcome):
    if isinstance(outcome, Exception):
        return f"refused, {type(outcome).__name__}: {outcome}"
    return f"shape {outcome.shape}, {outcome.dtype}"


def compare(title, cases, ours, theirs, deviations=()):
    """Compare two implementations on each case; the message of a failure reproduces the case."""
    seen = Counter()
    for case in cases:
        if any(not deviation.is_safe and deviation.covers(case) for deviation in deviations):
            seen["known deviations that harm memory, not run"] += 1
            continue
        here = outcome_here(lambda case=case: ours(case))
        found = difference(here, outcome_there(lambda case=case: theirs(case)))
        if found is None:
            seen["refused by both" if isinstance(here, Exception) else "the same bits"] += 1
        elif any(deviation.covers(case) for deviation in deviations):
            seen["known deviations"] += 1
        else:
            raise AssertionError(f"{title}: {found}\n{case}")
    told = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
    REPORT.append(f"{title}: {seen.total()} cases: {told}; 0 differences")
    return seen


def still_deviates(deviation, ours, theirs):
    """Fail if a peer no longer deviates."""
    here = outcome_here(lambda: ours(deviation.example))
    there = outcome_there(lambda: theirs(deviation.example))
    assert deviation.covers(deviation.example)
    assert difference(here, there) is not None, f"no longer so: {deviation.reason}"

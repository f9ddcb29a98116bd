"""The sections of the benchmarks: each measures one question and makes its tables.

A section is a module with ``TITLE`` and two functions: ``measure(recorder)`` takes the time, and
``tables(results)`` reads what was taken, in this run or an earlier one.
"""

from benchmarks.sections import (
    calls,
    gradients,
    growth,
    limits,
    memory,
    peers,
    reuse,
    rows,
    workloads,
)

SECTIONS = {
    section.SECTION: section
    for section in (limits, workloads, peers, rows, calls, gradients, memory, growth, reuse)
}
"""In the order of the page."""

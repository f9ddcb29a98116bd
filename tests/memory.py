"""Measures how much memory a call takes."""

import tracemalloc


def peak_of(call):
    """Return the most bytes that a call allocates at any one time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

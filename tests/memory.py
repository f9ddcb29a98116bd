"""How much memory a call takes."""

import tracemalloc


def peak_of(call):
    """Return the most bytes that a call holds beyond those before it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

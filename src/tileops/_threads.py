"""The threads that share a large copy: how many there are, and how to have none."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar
from warnings import warn

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

VARIABLE = "TILEOPS_NUM_THREADS"
"""The environment variable that limits the threads of a copy; 1 for none but the caller's."""

_MOST = 8
"""Threads beyond which a copy is not shared: a few of them saturate a machine's memory."""

T = TypeVar("T")

_is_single: ContextVar[bool] = ContextVar("tileops_single_threaded", default=False)

_pool: "ThreadPoolExecutor | None" = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Copy in the calling thread alone, inside of a ``with`` block.

    Large copies in the memory of the CPU are otherwise shared by as many threads
    as the process has cores, 8 at most, and PyTorch's by no more than
    ``torch.get_num_threads()``. The environment variable ``TILEOPS_NUM_THREADS``
    sets another limit for the whole process. The block counts for the code that it
    encloses, not for other threads.

    Yields
    ------
    None
        Nothing; leave away the ``as``.

    See Also
    --------
    tile : Repeat an array.

    Examples
    --------
    >>> import numpy as np
    >>> import tileops
    >>> with tileops.single_threaded():
    ...     tileops.tile(np.arange(2), 2)
    array([0, 1, 0, 1])
    """
    token = _is_single.set(True)
    try:
        yield
    finally:
        _is_single.reset(token)


def available(most: int | None = None) -> int:
    """Count the threads that may share a copy now, `most` of them where that is given."""
    if _is_single.get():
        return 1
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    given = os.environ.get(VARIABLE, "")
    if given and not (given.isdecimal() and int(given)):
        warn(f"{VARIABLE} is {given!r}; it must be a whole number from 1 on", stacklevel=2)
        given = ""
    return min(found or 1, _MOST, int(given or _MOST), most or _MOST)


def share(work: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Do the work for each item, in this thread and up to ``threads - 1`` others."""
    pending = iter(list(items))

    def take() -> None:
        for item in pending:
            work(item)

    helpers = _start(take, threads - 1)
    try:
        take()
    finally:
        # Whoever has not begun by now has nothing left to do; whoever has still writes.
        for helper in helpers:
            if not helper.cancel():
                helper.result()


def _start(work: Callable[[], None], count: int) -> list["Future[None]"]:
    global _pool  # noqa: PLW0603 (one pool of the process, made when it is first needed)
    if _pool is None:
        # Imported late: it takes longer than all of this package.
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        _pool = ThreadPoolExecutor(_MOST - 1, "tileops")
    try:
        return [_pool.submit(work) for _ in range(count)]
    except RuntimeError:  # the interpreter is shutting down, or no thread can be started
        return []


def _forget() -> None:
    """Leave behind a pool whose threads a fork did not take along."""
    global _pool  # noqa: PLW0603
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

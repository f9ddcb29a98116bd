"""The threads that share a large copy: how many, where they run, and how to do without them."""

import ctypes
import os
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from itertools import pairwise
from math import ceil
from queue import SimpleQueue
from threading import Lock
from types import BuiltinFunctionType
from typing import TypeVar
from warnings import warn

from tileops._texts import describe

try:
    from _thread import get_native_id
except ImportError:  # Emscripten's Python lacks it, and starts no threads

    def get_native_id() -> int:
        """Return the same number in every thread."""
        return 0


VARIABLE = "TILEOPS_NUM_THREADS"
"""The environment variable that limits the threads of a copy; 1 means the calling thread alone."""

_MOST = 8
"""The most threads that share a copy, because a few threads saturate a machine's memory."""

_T = TypeVar("_T")

_ARE_THREADS = isinstance(start_new_thread, BuiltinFunctionType)
"""Whether threads are the system's: gevent and eventlet replace them by greenlets, which cannot run
at once."""

_is_single: ContextVar[bool] = ContextVar("tileops_single_threaded", default=False)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Copy without helper threads, inside a ``with`` block.

    Large copies in the memory of the CPU are otherwise shared by several threads: one for
    each 6 MiB or 0.6 ms, at most as many as the process may use processors, 8 at most, and for
    PyTorch's tensors no more than ``torch.get_num_threads()``. The environment variable
    ``TILEOPS_NUM_THREADS`` lowers these limits for the whole process; the first large copy
    outside of such a block reads the variable, once. Copies that are left to PyTorch's own
    kernel use PyTorch's threads all the same, as many as ``torch.set_num_threads`` allows.

    The block applies to the code inside it and to tasks started inside it, which get a copy
    of its context (:mod:`contextvars`). It does not apply to other threads, except those that
    are started inside it by a Python whose threads inherit the context, as they do by default
    in free-threaded builds from 3.14 on.

    Yields
    ------
    None
        Nothing; the ``with`` statement needs no ``as``.

    Warns
    -----
    UserWarning
        If the variable is not a whole number of at least 1. The first large copy outside of such
        a block then gives the warning, and the variable is ignored.

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
    """Count the threads that may share a copy now, up to `most` if that is given."""
    if _is_single.get() or not _ARE_THREADS:
        return 1
    count = getattr(os, "process_cpu_count", None)  # since Python 3.13; heeds PYTHON_CPU_COUNT
    try:
        found = (count() or 1) if count else len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not every system has this, and a sandbox may forbid it
        found = os.cpu_count() or 1
    return min(found, _limit(), most or _MOST)


def _limit() -> int:
    """Read the variable once, because that takes 25 µs where the caches are full of other data."""
    global _allowed  # noqa: PLW0603
    if _allowed is None:
        given = os.environ.get(VARIABLE, "")
        is_number = given.isdecimal() and len(given) < 20 and int(given) > 0  # noqa: PLR2004
        # Set this before warning: where warnings are errors, only this copy should fail.
        _allowed = min(int(given), _MOST) if is_number else _MOST
        if given and not is_number:
            shown = describe(given).removeprefix("str ")
            rule = "it is ignored; set a whole number of at least 1"
            warn(f"{VARIABLE} is {shown}; {rule}", stacklevel=3)
    return _allowed


_allowed: int | None = None
"""What the variable allows, once it has been read."""


def share(work: Callable[[_T], None], items: Iterable[_T], threads: int) -> None:
    """Do the work for each item, in this thread and up to ``threads - 1`` others.

    Each thread begins with a run of consecutive items of its own, and then takes what the others
    have left. When this function returns or raises, no thread works on the items any more.
    """
    shared = _Shared([partial(work, item) for item in items], threads)
    try:
        _in_progress.append(shared)
        _pool.start([partial(shared.help, own) for own in range(1, threads)])
        shared.take(0)
    finally:
        # An interrupt may come before the first line of `close`, and others that were pending with
        # it before that of the next.
        try:
            shared.close()
        finally:
            try:
                shared.close()
            finally:
                shared.close()
    if shared.error is not None:
        try:
            raise shared.error
        finally:
            # The error's traceback refers to `shared`, and the cycle would keep the arrays alive.
            shared.error = None


class _Shared:
    """Pieces of work that threads take until none is left, or until `close`."""

    def __init__(self, work: Sequence[Callable[[], None]], threads: int) -> None:
        # There is no lock, because an interrupt between taking it and the body of its `with` would
        # leave it locked.
        bounds = [ceil(len(work) * thread / threads) for thread in range(threads + 1)]
        self._pending = [deque(work[start:stop]) for start, stop in pairwise(bounds)]
        # The length of this list counts the helpers at work: append and pop are atomic, += is not.
        self._working, self._ended = list[None](), SimpleQueue[None]()
        self.error: BaseException | None = None

    def take(self, own: int) -> None:
        """Do one piece of work after another until none is pending, those of run `own` first."""
        for pending in self._pending[own:] + self._pending[:own]:
            while True:
                try:
                    do = pending.popleft()
                except IndexError:
                    break
                do()

    def help(self, own: int) -> None:
        """Take work as the helper thread of run `own`, which finds none if it begins after the end.

        A helper counts itself before it takes work, and `close` waits for helpers after it has
        removed all pending work. So no helper is overlooked.
        """
        self._working.append(None)
        try:
            self.take(own)
        except BaseException as error:  # noqa: BLE001 (`share` raises it in the caller's thread)
            self.error = error
        finally:
            self._working.pop()
            self._ended.put(None)

    def close(self) -> None:
        """Drop pending work, and wait for helpers that still work.

        An interrupt does not end the wait: what a signal handler raises is raised after it.
        """
        interrupt = None
        while True:
            try:
                for pending in self._pending:
                    pending.clear()
                # An interrupt may lose an entry that is taken here. That does no harm, because each
                # helper that is still counted has yet to put an entry of its own.
                while self._working:
                    self._ended.get()
                if self in _in_progress:
                    _in_progress.remove(self)
                break
            except BaseException as error:  # noqa: BLE001
                interrupt = error
        if interrupt is not None:
            try:
                raise interrupt
            finally:
                interrupt = None  # its traceback refers to this frame

    def forget_helpers(self) -> None:
        """Stop waiting for helpers, which do not exist in a forked child."""
        if self._working:
            self.error = RuntimeError(
                "the process forked during this copy, and the threads that shared it do not "
                "exist in the child: the result is not complete there; fork outside of signal "
                "handlers, or copy under tileops.single_threaded()"
            )
        self._working.clear()
        self._ended.put(None)  # for a `close` that waits


_in_progress: list[_Shared] = []
"""The work that all threads share now. Only a signal handler can fork in the midst of it."""


class _Pool:
    """Threads that wait for work, as many as were ever asked for at once.

    `concurrent.futures` starts and wakes its threads through Conditions, which are Python code. An
    interrupt inside one can leave it locked, and every later copy would then wait forever.
    """

    def __init__(self) -> None:
        self._lock, self._jobs, self._count = Lock(), SimpleQueue[Callable[[], None]](), 0
        self._helpers: list[int] = []
        self._apart: tuple[set[int], tuple[int, ...]] | None = None

    def start(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Have a thread do each of the jobs, or only the first ones if no more could be started.

        No thread waits for the lock. Its holder may be this very thread, if a signal handler copies
        in the midst of this method, or a thread that an interrupt kept from releasing it.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._grow(len(jobs))
                self._keep_apart()
            finally:
                self._lock.release()
        for job in jobs[: self._count]:
            self._jobs.put(job)

    def _grow(self, count: int) -> None:
        """Start threads up to this number, except while the interpreter shuts down."""
        with suppress(RuntimeError):
            while self._count < count:
                start_new_thread(self._serve, ())
                self._count += 1

    def _keep_apart(self) -> None:
        """Keep the helper threads off the processor that the caller runs on.

        Linux wakes a thread on the caller's processor if it finds no other that is free, and on
        virtual machines it often finds none although one sleeps. All threads then take turns on one
        processor, until Linux balances the load milliseconds later. If there are two callers, each
        moves the helpers when it begins a copy.
        """
        processor = _processor()
        if processor is None:
            return
        try:
            others, helpers = set(os.sched_getaffinity(0)) - {processor()}, tuple(self._helpers)
        except OSError:  # a sandbox may hide the processors
            return
        if not others or (others, helpers) == self._apart:
            return
        for helper in helpers:
            with suppress(OSError):
                os.sched_setaffinity(helper, others)
        self._apart = others, helpers

    def _serve(self) -> None:
        self._helpers.append(get_native_id())
        while True:
            self._jobs.get()()


@cache
def _processor() -> Callable[[], int] | None:
    """Return the C library's function that tells on which processor a thread runs.

    Return None where there is no such function, or where threads cannot be kept off a processor.
    """
    has_affinity = hasattr(os, "sched_setaffinity")
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None) if has_affinity else None


_pool = _Pool()


def _forget() -> None:
    """Forget the threads, which a fork does not copy, and have the variable read anew."""
    global _pool, _allowed
    _pool, _allowed = _Pool(), None
    for shared in _in_progress:
        shared.forget_helpers()
    _in_progress.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

"""The threads that share a large copy: how many there are, where they run, and how to have none."""

import ctypes
import os
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock
from typing import TypeVar
from warnings import warn

from tileops._texts import describe

try:
    from _thread import get_native_id
except ImportError:  # Emscripten's Python has none, and starts no threads

    def get_native_id() -> int:
        """Tell no thread from another."""
        return 0


VARIABLE = "TILEOPS_NUM_THREADS"
"""The environment variable that limits the threads of a copy; 1 for none but the caller's."""

_MOST = 8
"""Threads beyond which a copy is not shared: a few of them saturate a machine's memory."""

T = TypeVar("T")

_is_single: ContextVar[bool] = ContextVar("tileops_single_threaded", default=False)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Copy in the calling thread alone, inside a ``with`` block.

    Large copies in the memory of the CPU are otherwise shared by as many threads
    as the process has cores, 8 at most, and PyTorch's by no more than
    ``torch.get_num_threads()``. The environment variable ``TILEOPS_NUM_THREADS``
    lowers that limit for the whole process; the first large copy outside of such a
    block reads it, once. The block holds for the code that it encloses and for tasks that
    are started in it, which have a copy of its context (:mod:`contextvars`). It does not hold
    for other threads, unless they are started in it by a Python whose threads inherit the
    context, as they do by default in free-threaded builds from 3.14 on.

    Yields
    ------
    None
        Nothing; omit the ``as``.

    Warns
    -----
    UserWarning
        By the first large copy outside of such a block, if the variable is not a whole number
        of at least 1; it is then ignored.

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
    """Count the threads that may share a copy now, `most` at the most where that is given."""
    if _is_single.get():
        return 1
    try:
        found = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not every system has it, and a sandbox may forbid it
        found = os.cpu_count() or 1
    return min(found, _limit(), most or _MOST)


def _limit() -> int:
    """Read the variable, once: where the caches are full of other data, that takes 25 µs."""
    global _allowed  # noqa: PLW0603
    if _allowed is None:
        given = os.environ.get(VARIABLE, "")
        is_number = given.isdecimal() and len(given) < 20 and int(given) > 0  # noqa: PLR2004
        # Before the warning, which may be an error: the next copy is not to fail, too.
        _allowed = min(int(given), _MOST) if is_number else _MOST
        if given and not is_number:
            shown = describe(given).removeprefix("str ")
            rule = "it is ignored; set a whole number from 1 on"
            warn(f"{VARIABLE} is {shown}; {rule}", stacklevel=3)
    return _allowed


_allowed: int | None = None
"""What the variable allows, once it was read."""


def share(work: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Do the work for each item, in this thread and up to ``threads - 1`` others.

    When this returns or raises, no thread works for it any more.
    """
    shared = _Shared(partial(work, item) for item in items)
    try:
        _shared.append(shared)
        _pool.start(shared.help, threads - 1)
        shared.take()
    finally:
        try:
            shared.close()
        except BaseException:  # an interrupt may have come before the first line
            shared.close()
            raise
    if shared.error is not None:
        try:
            raise shared.error
        finally:
            shared.error = None  # its traceback holds `shared`: a cycle would keep the arrays


class _Shared:
    """Work that threads take from until it is done, or closed."""

    def __init__(self, work: Iterable[Callable[[], None]]) -> None:
        # No lock: an interrupt between its taking and the `with` would leave it locked.
        self._pending = deque(work)
        self._helpers, self._ended = list[None](), SimpleQueue[None]()
        self.error: BaseException | None = None

    def take(self) -> None:
        """Do one piece of work after the other while there are any."""
        while True:
            try:
                do = self._pending.popleft()
            except IndexError:
                return
            do()

    def help(self) -> None:
        """Take as a helper; one that begins when all is over finds nothing.

        It is counted before it takes, and `close` looks for helpers when nothing is left to take.
        """
        self._helpers.append(None)
        try:
            self.take()
        except BaseException as error:  # noqa: BLE001 (it is raised where the caller is)
            self.error = error
        finally:
            self._helpers.pop()
            self._ended.put(None)

    def close(self) -> None:
        """Leave what is pending, and wait for whoever still works.

        An interrupt does not end the wait: what a signal's handler raises is raised at the end.
        """
        interrupt = None
        is_over = False
        while not is_over:
            try:
                self._pending.clear()
                # Even if an interrupt loses an entry taken here: each helper that is still counted
                # has yet to put its own.
                while self._helpers:
                    self._ended.get()
                if self in _shared:
                    _shared.remove(self)
                is_over = True
            except BaseException as error:  # noqa: BLE001
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def forget_helpers(self) -> None:
        """Wait for none of them any more: in a forked child they do not exist."""
        if self._helpers:
            self.error = RuntimeError(
                "the process forked in the midst of this copy, and the threads that shared it are "
                "not in the child: the result is not complete there; fork outside of handlers of "
                "signals, or copy under tileops.single_threaded()"
            )
        self._helpers.clear()
        self._ended.put(None)  # for one who waits


_shared: list[_Shared] = []
"""What is shared now, of all threads: only a signal's handler forks in the midst of it."""


class _Pool:
    """Threads that wait for work, as many as were ever asked for at once.

    Those of `concurrent.futures` are started and woken by way of Conditions. These are Python code,
    and an interrupt there leaves them locked, so that every later copy would wait for good.
    """

    def __init__(self) -> None:
        self._lock, self._jobs, self._count = Lock(), SimpleQueue[Callable[[], None]](), 0
        self._helpers: list[int] = []
        self._apart: tuple[set[int], tuple[int, ...]] | None = None

    def start(self, work: Callable[[], None], count: int) -> None:
        """Have this many threads do the work, or as many as there are.

        Nobody waits for the lock: the thread that has it may be this one, in whose midst a signal's
        handler copies, or one that an interrupt has left without releasing it.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._grow(count)
                self._keep_apart()
            finally:
                self._lock.release()
        for _ in range(min(count, self._count)):
            self._jobs.put(work)

    def _grow(self, count: int) -> None:
        """Start threads up to a number; there are no new ones while the interpreter shuts down."""
        with suppress(RuntimeError):
            while self._count < count:
                start_new_thread(self._serve, (get_native_id(),))
                self._count += 1

    def _keep_apart(self) -> None:
        """Keep the threads off the processor that the caller is on.

        Linux wakes them there if it finds no other that is free, and on virtual machines it often
        finds none though one sleeps. Then all take turns on one, until the load is balanced
        milliseconds later. Of two callers, each moves them when it begins.
        """
        processor = _processor()
        if processor is None:
            return
        try:
            others, helpers = set(os.sched_getaffinity(0)) - {processor()}, tuple(self._helpers)
        except OSError:  # a sandbox may hide them
            return
        if not others or (others, helpers) == self._apart:
            return
        for helper in helpers:
            with suppress(OSError):
                os.sched_setaffinity(helper, others)
        self._apart = others, helpers

    def _serve(self, starter: int) -> None:
        helper = get_native_id()
        # Else it is no thread of the system: gevent and eventlet put greenlets in place of threads,
        # and who moves one to other processors moves its caller.
        if helper != starter:
            self._helpers.append(helper)
        while True:
            self._jobs.get()()


@cache
def _processor() -> Callable[[], int] | None:
    """Return the C library's function that says on which processor a thread runs.

    None where there is none, or where threads cannot be kept off a processor.
    """
    has_affinity = hasattr(os, "sched_setaffinity")
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None) if has_affinity else None


_pool = _Pool()


def _forget() -> None:
    """Leave behind threads that a fork did not take along, and read the variable anew."""
    global _pool, _allowed
    _pool, _allowed = _Pool(), None
    for shared in _shared:
        shared.forget_helpers()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

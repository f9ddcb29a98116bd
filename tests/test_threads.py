"""Threads that share large copies write the same bytes, and are no more than allowed."""

import _thread
import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest

import tileops
from tileops import _threads
from tileops._copies import cost
from variants import HAS_GIL, forget_plans

pytestmark = pytest.mark.library("numpy")

SHAPE, REPEATS = (7, 1, 100_021, 3), (3, 4, 1)  # 25 MB of bytes, which three threads share


def fork():
    """Fork despite running threads; an alarm ends a child that waits for its parent's threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads
        child = os.fork()
    if child == 0:
        signal.alarm(30)
    return child


@pytest.fixture
def x(rng):
    return rng.integers(0, 256, SHAPE, dtype=np.uint8)


@pytest.fixture
def shared(monkeypatch):
    """Record how many threads work on each copy."""
    seen = []
    share = _threads.share

    def watched(work, items, threads):
        names = set()

        def note(item):
            names.add(threading.get_ident())
            work(item)

        share(note, items, threads)
        seen.append((threads, len(names)))

    monkeypatch.setattr(_threads, "share", watched)
    return seen


@pytest.fixture
def eager(monkeypatch):
    """Use one thread for each MiB of a result."""
    monkeypatch.setattr(cost, "_SHARED", 2**20)
    forget_plans()
    yield
    monkeypatch.undo()
    forget_plans()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_any_number_of_threads_writes_the_same_bytes(x, shared, monkeypatch, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(threads), raising=False)
    counts = (REPEATS, (1, 1, 12), (5, 1, 1, 1), (2, 3, 1, 2))
    for repeats in counts:
        assert np.array_equal(tileops.tile(x, repeats), np.tile(x, repeats))
    shared.clear()  # some new results are not made in parts
    for repeats in counts:
        expected = np.tile(x, repeats)
        out = np.zeros_like(expected)
        assert np.array_equal(tileops.tile(x, repeats, out=out), expected)
    assert [n for n, _ in shared] == ([threads] * len(counts) if threads > 1 else [])


@pytest.fixture
def pinned(monkeypatch):
    """Record which threads are bound to which processors, on a machine of four: 0, 1, 4, 5."""
    calls = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4, 5}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *call: calls.append(call), raising=False)
    pool = _threads._Pool()
    be_at(None, monkeypatch)
    pool.start([lambda: None] * 2)
    while len(pool._helpers) < 2:  # so that the results do not depend on when they begin
        time.sleep(0.001)
    monkeypatch.setattr(_threads, "_pool", pool)
    return calls


def be_at(processor, monkeypatch):
    monkeypatch.setattr(
        _threads, "_processor", lambda: None if processor is None else lambda: processor
    )


def test_helpers_keep_off_the_processor_of_the_caller(pinned, monkeypatch):
    helpers = sorted(_threads._pool._helpers)
    assert len({*helpers, threading.get_native_id()}) == 3

    def moves(processor, threads=3):
        pinned.clear()
        be_at(processor, monkeypatch)
        _threads.share(Busy(pause=1e-3), range(8), threads)
        return sorted(pinned)

    assert moves(4) == [(helper, {0, 1, 5}) for helper in helpers]
    assert moves(4) == []
    assert moves(0, threads=2) == [(helper, {1, 4, 5}) for helper in helpers]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4}, raising=False)
    assert moves(0) == [(helper, {4}) for helper in helpers]


def test_helpers_work_where_binding_to_processors_is_refused(pinned, monkeypatch):
    def refuse(*call):
        pinned.append(call)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    be_at(1, monkeypatch)
    for _ in range(3):
        work = Busy()
        _threads.share(work, range(8), 3)
        assert sorted(work.done) == list(range(8))
    assert len(pinned) == 2


def test_copies_work_where_a_sandbox_hides_the_processors(x, pinned, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "sched_getaffinity", refuse, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    be_at(1, monkeypatch)
    assert _threads.available() == 2
    assert np.array_equal(tileops.tile(x, REPEATS), np.tile(x, REPEATS))
    assert not pinned


def test_python_may_be_told_to_use_fewer_processors(monkeypatch):
    """Python 3.13 and later have a function for that, which heeds PYTHON_CPU_COUNT."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)
    assert _threads.available() == 3
    monkeypatch.setattr(os, "process_cpu_count", lambda: None)
    assert _threads.available() == 1


def test_greenlets_share_no_copy():
    """gevent and eventlet replace the function that starts threads before others import it."""
    code = (
        "import _thread; start = _thread.start_new_thread; "
        "_thread.start_new_thread = lambda *arguments: start(*arguments); "
        "import os; os.sched_getaffinity = lambda _: {0, 1}; "
        "import numpy as np, threading, tileops; x = np.arange(2**21); "
        "assert (tileops.tile(x, 4).reshape(4, -1) == x).all(); print(threading.active_count())"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "1\n"


@pytest.mark.parametrize("processor", [None, 7])
def test_helpers_stay_where_they_are_if_no_processor_is_known_or_left(
    pinned, monkeypatch, processor
):
    be_at(processor, monkeypatch)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7}, raising=False)
    for _ in range(3):
        _threads.share(Busy(), range(4), 2)
    assert pinned == []


@pytest.mark.skipif(_threads._processor() is None, reason="threads cannot be kept apart here")
def test_the_caller_keeps_its_allowed_processors(monkeypatch):
    before = os.sched_getaffinity(0)
    assert _threads._processor()() in before
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    for _ in range(3):
        _threads.share(Busy(), range(8), 3)
    assert os.sched_getaffinity(0) == before
    assert all(os.sched_getaffinity(helper) <= before for helper in _threads._pool._helpers)


def test_a_small_copy_has_one_thread(x, shared):
    tileops.tile(x[:1], (1, 2, 1, 1))
    assert shared == []


def test_no_more_threads_than_cores_are_used(x, shared, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    tileops.tile(x, REPEATS)
    assert shared == []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    tileops.tile(x, REPEATS)
    assert [threads for threads, _ in shared] == [3]
    assert 1 <= shared[0][1] <= 3


@pytest.fixture
def variable(monkeypatch):
    """Return a function that sets the variable as if no copy had read it."""

    def set_to(value):
        monkeypatch.setenv(_threads.VARIABLE, value)
        _threads._allowed = None

    yield set_to
    _threads._allowed = None


def test_the_variable_turns_threads_off(x, shared, variable, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    variable("1")
    tileops.tile(x, REPEATS)
    assert shared == []
    variable("10000000000")
    tileops.tile(x, REPEATS)
    assert len(shared) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(100), raising=False)
    assert _threads.available(most=16) == 8


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_an_invalid_variable_is_named_in_one_warning(variable, value):
    variable(value)
    with pytest.warns(UserWarning, match=rf"TILEOPS_NUM_THREADS is '{value}'.*of at least 1"):
        assert _threads.available() >= 1
    with warnings.catch_warnings(action="error"):
        assert _threads.available() >= 1


def test_an_invalid_variable_fails_one_copy_if_warnings_are_errors(variable, x):
    variable("t" * 10**5)
    with warnings.catch_warnings(action="error"):
        with pytest.raises(UserWarning, match=r"THREADS is 't{199}\.\.\.; it is ignored"):
            tileops.tile(x, REPEATS)
        assert tileops.tile(x, REPEATS).nbytes > 0


def test_single_threaded_holds_only_inside_its_block(x, shared, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()  # starts the thread outside the block's context
        with tileops.single_threaded():
            tileops.tile(x, REPEATS)
            assert other.submit(_threads.available).result() == 2
    assert shared == []
    tileops.tile(x, REPEATS)
    assert len(shared) == 1


def test_single_threaded_holds_in_tasks_started_inside_it():
    with tileops.single_threaded():
        context = contextvars.copy_context()  # passed to tasks, and in some Pythons to threads
    assert context.run(_threads.available) == 1


class Busy:
    """Work that takes a while, and counts how many threads are at it."""

    def __init__(self, then=abs, pause=0.02):
        self.now, self.done, self.then, self.pause = 0, [], then, pause

    def __call__(self, item):
        self.now += 1
        try:
            time.sleep(self.pause)
            self.then(item)
            self.done.append(item)
        finally:
            self.now -= 1


def is_main():
    return threading.current_thread() is threading.main_thread()


def test_each_thread_begins_with_a_run_of_its_own():
    """Otherwise, one thread clears the huge page between two parts, and both write to it."""
    items, threads = range(11), 3
    together, done = threading.Barrier(threads, timeout=60), {}

    def work(item):
        mine = done.setdefault(threading.get_ident(), [])
        mine.append(item)
        if len(mine) <= 3:  # all threads do their first three items side by side
            together.wait()

    _threads.share(work, items, threads)
    assert sorted(mine[:3] for mine in done.values()) == [[0, 1, 2], [4, 5, 6], [8, 9, 10]]
    assert sorted(chain(*done.values())) == list(items)


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_a_thread_alone_does_the_work_of_all_in_order(monkeypatch, count):
    monkeypatch.setattr(_threads._pool, "start", lambda _: None)
    done = []
    _threads.share(done.append, range(count), 4)
    assert done == list(range(count))


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("in_main", [True, False])
def test_an_error_reaches_the_caller_after_all_work_has_stopped(threads, in_main):
    def fail(item):
        if is_main() is in_main:
            raise MemoryError(item)

    work = Busy(fail)
    with pytest.raises(MemoryError):
        _threads.share(work, range(50), threads)
    assert work.now == 0
    done = len(work.done)
    time.sleep(0.1)
    assert len(work.done) == done


@pytest.fixture
def interruptible():
    """Raise KeyboardInterrupt on SIGINT, even if the shell that runs these tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def uncollected():
    """Leave cycles alone: only what nothing refers to is freed."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.skipif(
    not HAS_GIL,
    reason="without a GIL, an error of a helper is freed when that helper runs again",
)
@pytest.mark.usefixtures("uncollected")
def test_an_error_keeps_no_array():
    """Memory may be short, so the array must be freed before the garbage collector runs."""

    class Held:
        def __call__(self, item):
            if not is_main():
                raise MemoryError
            time.sleep(0.02)

    work = Held()
    alive = weakref.ref(work)
    with pytest.raises(MemoryError) as caught:
        _threads.share(work, range(20), 2)
    del work, caught
    for _ in range(100):  # the helper may not be back at its queue yet
        if alive() is None:
            break
        time.sleep(0.01)
    assert alive() is None


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_reaches_the_caller_after_all_work_has_stopped():
    began = threading.Event()

    def interrupt(_):
        if is_main():
            began.wait(10)
        else:
            began.set()
            time.sleep(0.1)  # the caller is waiting by now
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    work = Busy(interrupt)
    with pytest.raises(KeyboardInterrupt):
        _threads.share(work, range(2), 2)
    assert work.now == 0
    assert sorted(work.done) == [0, 1]


@pytest.mark.usefixtures("interruptible", "uncollected")
def test_an_interrupted_copy_keeps_no_array():
    began = threading.Event()

    class Held:
        def __call__(self, _):
            if is_main():
                began.wait(10)
            else:
                began.set()
                time.sleep(0.1)  # the caller is waiting by now
                os.kill(os.getpid(), signal.SIGINT)

    work = Held()
    alive = weakref.ref(work)
    with pytest.raises(KeyboardInterrupt) as caught:
        _threads.share(work, range(2), 2)
    del work, caught
    assert alive() is None


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system cannot hold signals")
def test_interrupts_that_come_at_once_reach_the_caller_after_all_work_has_stopped():
    """Python raises the first, and each of the others at the next function that begins."""
    numbers, began = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP), threading.Event()

    def interrupt(_):
        if is_main():
            began.wait(10)
            signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
            for number in numbers:
                signal.pthread_kill(threading.get_ident(), number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        else:
            began.set()
            time.sleep(0.1)

    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    work = Busy(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            _threads.share(work, range(8), 2)
        assert work.now == 0
        assert not _threads._in_progress
        assert len(work.done) < 8
        done = len(work.done)
        time.sleep(0.2)
        assert len(work.done) == done
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("most", [0, 2])
def test_a_copy_completes_with_fewer_threads_than_requested(monkeypatch, most):
    started = []

    def start(*how):
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(_thread.start_new_thread(*how))

    monkeypatch.setattr(_threads, "start_new_thread", start)
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    work = Busy()
    _threads.share(work, range(12), 8)
    assert len(started) == most
    assert _threads._pool._jobs.qsize() <= most  # jobs beyond that would stay in the queue
    assert work.now == 0
    assert sorted(work.done) == list(range(12))


@pytest.mark.parametrize("raised", [KeyboardInterrupt, TimeoutError])
def test_an_interrupt_at_any_step_stops_all_work_and_keeps_threads_usable(monkeypatch, raised):
    """Python handles signals when a function begins and when a call returns."""
    steps = 0

    def be_slow(_):
        if not is_main():
            time.sleep(3e-3)

    def interrupt(frame, event, _):
        nonlocal steps
        code = frame.f_code
        if event != "c_call" and code.co_filename == _threads.__file__ and is_main():
            steps -= 1
            if steps == 0:
                raise raised

    for first in range(1, 1000):
        monkeypatch.setattr(_threads, "_pool", _threads._Pool())
        work, steps, was_interrupted = Busy(be_slow, pause=1e-4), first, False
        sys.setprofile(interrupt)
        try:
            _threads.share(work, range(4), 3)
        except raised:
            was_interrupted = True
        finally:
            sys.setprofile(None)
        assert work.now == 0, first
        done = len(work.done)
        time.sleep(4e-3)
        assert len(work.done) == done, first
        again = Busy(pause=1e-4)
        _threads.share(again, range(4), 3)
        assert sorted(again.done) == [0, 1, 2, 3], first
        for _ in range(3):
            _threads._pool._jobs.put(sys.exit)
        if not was_interrupted:
            break
    assert first > 15


def test_waiting_enters_no_python_code_that_an_interrupt_could_break_off():
    """For example, an interrupt between a Condition's lock and its `with` leaves it locked."""
    entered = []
    shared = _threads._Shared([lambda: time.sleep(0.05)] * 2, 2)
    helper = threading.Thread(target=shared.help, args=(1,))
    helper.start()
    before = sys.gettrace()
    sys.settrace(lambda frame, *_: entered.append(frame.f_code.co_name))
    try:
        shared.close()
    finally:
        sys.settrace(before)
    helper.join()
    assert entered == ["close"]


def test_copies_complete_while_the_interpreter_exits():
    code = """
import atexit, os, threading, time
import numpy as np, tileops
os.sched_getaffinity = lambda _: range(4)
x = np.arange(2**20)
def copy():
    assert np.array_equal(tileops.tile(x, 2), np.tile(x, 2))
    print("copied", flush=True)
atexit.register(copy)
threading.Thread(target=lambda: (threading.main_thread().join(), copy())).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["copied", "copied"]
    assert done.stderr == ""


def test_a_copy_is_made_after_python_has_lost_its_own_functions():
    """An object of the main module may be finalized that late."""
    code = """
import numpy as np, tileops
class Late:
    def __del__(self, tile=tileops.tile, x=np.ones(10**6), print=print):
        print(tile(x, 10).shape, flush=True)
late = Late()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(10000000,)\n"
    assert done.stderr == ""


def test_callers_in_many_threads_do_not_disturb_each_other(x):
    arrays = [x + i for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda a: tileops.tile(a, REPEATS), arrays))
    for array, result in zip(arrays, results, strict=True):
        assert np.array_equal(result, np.tile(array, REPEATS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_threads_of_its_own(x, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    expected = np.tile(x, REPEATS)
    tileops.tile(x, REPEATS)  # starts the parent's threads
    pool = _threads._pool
    child = fork()
    if child == 0:
        is_right = np.array_equal(tileops.tile(x, REPEATS), expected)
        own = _threads._pool
        os._exit(0 if is_right and own is not pool and own._count == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("caller", ["works", "waits"])
def test_a_child_forked_during_a_copy_waits_for_no_helper(caller):
    """A signal handler may fork; the helper and its part of the copy stay with the parent."""
    began, children, parent = threading.Event(), [], os.getpid()

    def note_fork(*_):
        children.append(fork())

    def work(_):
        if is_main():
            began.wait(10)
            if caller == "works":
                note_fork()
        else:
            began.set()
            time.sleep(0.1)
            if caller == "waits":
                os.kill(parent, signal.SIGUSR1)
            time.sleep(0.2)

    before = signal.signal(signal.SIGUSR1, note_fork)
    message = ""
    try:
        _threads.share(work, range(2), 2)
    except RuntimeError as error:
        message = str(error)
    finally:
        if children == [0]:
            os._exit("the result is not complete" not in message)
        signal.signal(signal.SIGUSR1, before)
    assert not message
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert not _threads._in_progress


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_reads_the_variable_again(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    before = _threads.available()
    child = fork()
    if child == 0:
        os.environ[_threads.VARIABLE] = "1"
        os._exit(_threads.available())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert _threads.available() == before == 2


def test_a_finished_copy_keeps_no_array():
    """This holds even if a helper that is busy elsewhere has not noticed that the copy ended."""
    is_over = threading.Event()
    busy = threading.Thread(target=lambda: _threads.share(lambda _: is_over.wait(20), range(2), 2))
    busy.start()
    while not _threads._pool._helpers:
        time.sleep(0.01)
    work = Busy()
    alive = weakref.ref(work)
    try:
        _threads.share(work, range(4), 2)
        del work
        assert alive() is None
    finally:
        is_over.set()
        busy.join()


def test_a_signal_handler_may_copy_while_a_copy_begins(monkeypatch):
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    keep_apart, outer, inner = _threads._Pool._keep_apart, Busy(), Busy()

    def interrupted(self):
        monkeypatch.setattr(_threads._Pool, "_keep_apart", keep_apart)
        _threads.share(inner, range(4), 2)
        keep_apart(self)

    monkeypatch.setattr(_threads._Pool, "_keep_apart", interrupted)
    copy = threading.Thread(target=_threads.share, args=(outer, range(4), 2), daemon=True)
    copy.start()
    copy.join(20)
    assert not copy.is_alive()
    assert sorted(outer.done) == sorted(inner.done) == [0, 1, 2, 3]


def test_a_lock_that_an_interrupt_left_locked_stops_no_copy(monkeypatch):
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    _threads._pool._lock.acquire()
    work = Busy()
    copy = threading.Thread(target=_threads.share, args=(work, range(4), 2), daemon=True)
    copy.start()
    copy.join(20)
    assert not copy.is_alive()
    assert sorted(work.done) == [0, 1, 2, 3]


def test_threads_are_reused(monkeypatch):
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    before = _thread._count()
    for threads in (2, 4, 3, 4):
        _threads.share(Busy(), range(8), threads)
    assert _thread._count() == before + 3


def test_no_more_helpers_are_woken_than_a_copy_may_have(monkeypatch):
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    _threads.share(Busy(), range(8), 4)
    names = set()

    def work(_):
        names.add(threading.get_ident())
        time.sleep(0.01)

    _threads.share(work, range(16), 2)
    assert len(names) <= 2


def test_a_helper_that_reports_its_end_is_no_longer_counted():
    """Otherwise, the caller would wait for the ended helper once more, and forever."""
    shared, counted = _threads._Shared([], 2), []

    class Ended:
        def put(self, _):
            counted.append(len(shared._working))

    shared._ended = Ended()
    shared.help(1)
    assert counted == [0]


def test_a_copy_is_registered_for_forks_before_a_helper_begins(monkeypatch):
    """Otherwise, a child would wait for helpers that it does not have."""
    monkeypatch.setattr(_threads, "_pool", _threads._Pool())
    known, start = [], _threads._Pool.start

    def watched(pool, jobs):
        known.extend(job.func.__self__ in _threads._in_progress for job in jobs)
        start(pool, jobs)

    monkeypatch.setattr(_threads._Pool, "start", watched)
    _threads.share(abs, range(2), 2)
    assert known == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_completes_a_copy_that_no_helper_has_begun():
    done, children, is_right = [], [], False

    def work(item):
        if item == 0:
            children.append(fork())
        done.append(item)

    try:
        _threads.share(work, range(4), 1)
        is_right = done == [0, 1, 2, 3]
    finally:
        if children == [0]:
            os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_forgets_copies_of_the_parents_other_threads():
    is_over = threading.Event()
    copy = threading.Thread(
        target=_threads.share, args=(lambda _: is_over.wait(20), range(2), 1), daemon=True
    )
    copy.start()
    while not _threads._in_progress:
        time.sleep(0.01)
    child = fork()
    if child == 0:
        os._exit(len(_threads._in_progress))
    is_over.set()
    copy.join(20)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

"""Our own functions on hostile input: a value or a reason, in any thread, in bounded time."""

import os
import threading
import time

import pytest

from workbench.errors import InputError
from workbench.sandbox import DeadlinePool, Reason, run_with_deadline


@pytest.fixture(scope="module")
def pool():
    made = DeadlinePool(workers=1)
    yield made
    made.close()


def test_a_value_comes_back(pool):
    outcome = pool.run(sorted, [[3, 1, 2]], {"reverse": True}, seconds=20.0)
    assert outcome.value == [3, 2, 1]
    assert outcome.ok


def test_r7_it_works_off_the_main_thread_and_a_hang_ends_at_the_deadline():
    """Verifiers that use signal alarms fail in a web app's threads; without alarms one bad string stops everything."""
    outcomes = []

    def in_thread():
        outcomes.append(run_with_deadline(time.sleep, [600], 0.3))
        outcomes.append(run_with_deadline(pow, [7, 10**9], 0.3))  # inside one C call, where no signal is seen
        outcomes.append(run_with_deadline(len, ["abc"], 20.0))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join(120)
    assert [o.reason for o in outcomes] == [Reason.TIMEOUT, Reason.TIMEOUT, Reason.RETURNED]
    assert outcomes[2].value == 3


def test_r7_a_function_that_uses_signal_alarms_runs(pool):
    """The worker calls it in a main thread of its own."""
    import signal

    outcome = pool.run(signal.alarm, [0], seconds=20.0)
    assert outcome.value == 0


@pytest.mark.parametrize(
    ("function", "args", "reason", "words"),
    [
        (int, ["x"], Reason.EXCEPTION, "ValueError"),
        (os._exit, [3], Reason.CRASH, "status 3"),
        (os.abort, [], Reason.CRASH, "status -6"),
        (bytearray, [10**13], Reason.MEMORY, "memory"),
        (object, [], Reason.NOT_DATA, "not plain data"),
        (bytes, [20_000_000], Reason.OUTPUT, "16 MB"),
    ],
)
def test_each_way_to_fail_has_a_reason_and_the_next_call_works(pool, function, args, reason, words):
    outcome = pool.run(function, args, seconds=20.0)
    assert (outcome.reason, outcome.value) == (reason, None), outcome
    assert words in outcome.detail
    assert pool.run(len, ["ab"], seconds=20.0).value == 2


def test_what_the_function_prints_goes_nowhere(pool, capfd):
    assert pool.run(print, ["spam"], seconds=20.0).ok
    assert capfd.readouterr().out == ""


def test_a_worker_is_reused(pool):
    first, second = (pool.run(os.getpid, seconds=20.0).value for _ in range(2))
    assert first == second != os.getpid()


def test_a_worker_killed_while_idle_is_replaced(pool):
    first = pool.run(os.getpid, seconds=20.0).value
    os.kill(first, 9)
    pool._idle[0].process.wait(20)
    assert pool.run(os.getpid, seconds=20.0).value != first


@pytest.mark.parametrize("function", [lambda: 1, threading.Event().set])
def test_a_function_without_an_importable_name_is_refused(pool, function):
    with pytest.raises(InputError, match="cannot be imported by name"):
        pool.run(function)


def test_arguments_that_are_no_data_are_refused(pool):
    with pytest.raises(InputError, match="only plain data"):
        pool.run(len, [object()])


def test_a_worker_that_cannot_start_is_an_infrastructure_failure(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    outcome = DeadlinePool(workers=1).run(len, ["a"])
    assert (outcome.reason, outcome.value) == (Reason.INFRASTRUCTURE, None)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_gets_workers_of_its_own(pool):
    ours = pool.run(os.getpid, seconds=20.0).value
    child = os.fork()
    if child == 0:
        theirs = pool.run(os.getpid, seconds=20.0).value
        os._exit(0 if theirs not in (None, ours) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.run(os.getpid, seconds=20.0).value == ours

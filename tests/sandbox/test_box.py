"""One pool, many users: threads, an event loop, forked and spawned workers; and what happens when our side fails."""

import asyncio
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench.errors import InputError
from workbench.sandbox import ForkServer, InfrastructureError, Limits, Reason, Sandbox, Tier

DOUBLE = "def f(x): return 2 * x"
LOOP = "def f(x):\n    while True: pass"


def gone(pid, seconds=20.0):
    """That process ends within ``seconds``."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def test_many_threads_share_two_workers(box):
    with ThreadPoolExecutor(12) as threads:
        outcomes = list(threads.map(lambda i: box.call(DOUBLE, "f", [i], seconds=20.0), range(48)))
    assert [o.value for o in outcomes] == [2 * i for i in range(48)]


def test_r8_an_endless_loop_does_not_hold_up_an_event_loop():
    """asyncio and thread timeouts do not stop such a loop; here the batch ends and its good members are answered."""

    async def batch(box):
        codes = [LOOP if i % 8 == 0 else DOUBLE for i in range(16)]
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        outcomes = await asyncio.gather(*(box.acall(code, "f", [i], seconds=1.0) for i, code in enumerate(codes)))
        ticking.cancel()
        return outcomes, ticks

    with Sandbox(workers=2) as box:
        outcomes, ticks = asyncio.run(batch(box))
        assert [o.reason for o in outcomes[::8]] == [Reason.TIMEOUT] * 2
        assert [o.value for i, o in enumerate(outcomes) if i % 8] == [2 * i for i in range(16) if i % 8]
        assert ticks > 10  # the event loop went on


def test_cancelling_an_awaited_call_kills_its_child_and_frees_the_worker():
    async def cancelled(box):
        try:
            await asyncio.wait_for(box.acall(LOOP, "f", [1], seconds=600.0), 0.5)
        except TimeoutError:
            return await box.acall(DOUBLE, "f", [3], seconds=20.0)

    with Sandbox(workers=1) as box:
        assert box.status.available
        assert asyncio.run(cancelled(box)).value == 6


def test_scripts_can_be_awaited(box):
    assert asyncio.run(box.arun("print(input())", stdin="hi", seconds=20.0)).stdout == "hi\n"


def _in_worker(box, queue):
    queue.put((box.call(DOUBLE, "f", [21], seconds=20.0).value, os.getpid()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_worker_processes_get_a_sandbox_of_their_own(method):
    context = multiprocessing.get_context(method)
    with Sandbox(workers=1) as box:
        assert box.call(DOUBLE, "f", [1], seconds=20.0).value == 2
        queue = context.Queue()
        worker = context.Process(target=_in_worker, args=(box, queue))
        worker.start()
        assert queue.get(timeout=60)[0] == 42
        worker.join(60)
        assert worker.exitcode == 0
        assert box.call(DOUBLE, "f", [2], seconds=20.0).value == 4  # ours still works


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_waits_for_the_sandbox_does_not_deadlock(box):
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(box.call, LOOP, "f", [1], seconds=1.0) for _ in range(2)]  # both workers are taken
        child = os.fork()
        if child == 0:
            os._exit(0 if box.call(DOUBLE, "f", [21], seconds=20.0).value == 42 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert {w.result().reason for w in waiting} == {Reason.TIMEOUT}


def test_a_sandbox_is_pickled_as_its_settings():
    box = pickle.loads(pickle.dumps(Sandbox(workers=3, memory_mb=64)))
    assert (box.workers, box.limits.memory_mb) == (3, 64)
    with pytest.raises(TypeError, match="engine of its own"):
        pickle.dumps(Sandbox(engine=ForkServer()))


def test_a_session_keeps_state_and_recovers_from_a_call_that_ended_its_child(box):
    code = "n = 0\ndef f(x):\n    global n\n    n += 1\n    if x < 0: import os; os._exit(0)\n    return n"
    with box.session(code, seconds=20.0) as session:
        assert [session.call("f", [1]).value, session.call("f", [1]).value] == [1, 2]
        assert session.call("f", [-1]).reason is Reason.CRASH
        assert session.call("f", [1]).value == 1  # a fresh child
        assert session.call("g", []).detail == "NameError: the code defines no 'g'"


def test_code_that_does_not_load_fails_every_call_without_running_again(box):
    with box.session("import time\ntime.sleep(0.2)\nraise ValueError('no')", seconds=20.0) as session:
        first, second = session.call("f", []), session.call("f", [])
    assert first is second
    assert first.detail == "ValueError: no (line 3)"


def test_a_message_sent_out_of_turn_ends_the_child(box):
    code = "import os\ndef f():\n    os.write(3, b'\\0\\0\\0\\2[]')\n    return 1\ndef g(): return 2"
    with box.session(code, seconds=20.0) as session:
        assert session.call("f").reason in (Reason.RETURNED, Reason.PROTOCOL)
        assert session.call("g").reason is not Reason.INFRASTRUCTURE


def test_r12_each_abuse_has_its_own_reason_and_the_pool_goes_on(box):
    cases = {
        "def f(x): return len(bytearray(10**10))": Reason.MEMORY,
        "def f(x): print('x' * 50_000_000)": Reason.OUTPUT,
        "import os\ndef f(x):\n    for _ in range(20): os.fork()": Reason.EXCEPTION,
        "import os\ndef f(x): return os.system('curl http://127.0.0.1') == 0": Reason.RETURNED,
        "def f(x):\n    while True: pass": Reason.TIMEOUT,
        "import os\ndef f(x): os.abort()": Reason.CRASH,
    }
    for code, reason in cases.items():
        outcome = box.call(code, "f", [1], seconds=2.0)
        assert outcome.reason is reason, outcome
        assert not outcome.value
        assert box.call(DOUBLE, "f", [2], seconds=20.0).value == 4


def test_the_death_of_the_fork_server_is_an_infrastructure_failure_and_is_mended():
    engine = ForkServer()
    with Sandbox(workers=1, engine=engine) as box, box.session(LOOP, seconds=60.0) as session:
        assert session.load().ok
        killer = threading.Timer(0.2, os.kill, (engine.pid, signal.SIGKILL))
        killer.start()
        outcome = session.call("f", [1])
        killer.join()
        assert outcome.reason is Reason.INFRASTRUCTURE
        assert outcome.value is None
        assert outcome.detail
        assert not outcome.blames_code
        assert session.call("f", [1], seconds=0.2).reason is Reason.TIMEOUT  # a new server, a new child


def test_a_one_shot_call_is_tried_once_more_when_the_server_died_between_calls():
    engine = ForkServer()
    with Sandbox(workers=1, engine=engine) as box:
        assert box.call(DOUBLE, "f", [1], seconds=20.0).value == 2
        os.kill(engine.pid, signal.SIGKILL)
        assert box.call(DOUBLE, "f", [2], seconds=20.0).value == 4


def test_an_engine_that_cannot_start_gives_none_with_a_reason_never_zero(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with Sandbox(workers=1, engine=ForkServer()) as box:
        outcome = box.call(DOUBLE, "f", [1])
    assert (outcome.value, outcome.reason) == (None, Reason.INFRASTRUCTURE)
    assert "/nonexistent/python" in outcome.detail
    assert box.status.tier is Tier.NONE


def test_the_server_and_its_children_end_with_whoever_started_them():
    """Killed without a chance to tidy up, a training run leaves no process behind."""
    script = """
import os, sys
from workbench.sandbox import ForkServer, Limits
engine = ForkServer()
child = engine.open(Limits())
print(os.getpid(), engine.pid, child.pid, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script]
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as started:
        _, server, child = map(int, started.stdout.readline().split())
        started.kill()
    assert gone(server)
    assert gone(child)


def test_nothing_is_left_open_and_no_process_is_left(box):
    box.call(DOUBLE, "f", [1], seconds=20.0)
    before = set(os.listdir("/proc/self/fd"))
    for code in (DOUBLE, LOOP, "import os\nos._exit(0)", "def f(x): print('x' * 10**6)"):
        box.call(code, "f", [1], seconds=0.2)
    assert set(os.listdir("/proc/self/fd")) == before
    assert not children_of(box._engine.pid)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def test_a_closed_sandbox_opens_again():
    box = Sandbox(workers=1)
    assert box.call(DOUBLE, "f", [1], seconds=20.0).value == 2
    box.close()
    assert box.call(DOUBLE, "f", [2], seconds=20.0).value == 4
    box.close()


def test_a_session_waits_only_so_long_for_a_worker(monkeypatch, box):
    monkeypatch.setattr("workbench.sandbox.box.WORKER_SECONDS", 0.05)
    with (
        box.session(DOUBLE),
        box.session(DOUBLE),
        pytest.raises(InfrastructureError, match="none of the 2 workers"),
        box.session(DOUBLE),
    ):
        pass
    assert box.call(DOUBLE, "f", [1], seconds=20.0).value == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda box: box.call(DOUBLE, "f", [object()]), "args: a object"),
        (lambda box: box.call(DOUBLE, "f", [1], seconds=-1), "seconds: -1 is outside"),
        (lambda box: box.call(DOUBLE, "f", [1], seconds=float("nan")), "seconds: nan is outside"),
        (lambda box: box.call(None, "f"), "code: NoneType is not text"),
        (lambda box: Sandbox(workers=0), "workers: 0 is outside"),
        (lambda box: Limits(memory_mb=1.5), "memory_mb: 1.5 is not a whole number"),
    ],
)
def test_the_callers_own_mistakes_are_named(box, wrong, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        wrong(box)


def test_a_deadline_is_kept(box):
    begun = time.monotonic()
    assert box.call("import time\ndef f(x): time.sleep(600)", "f", [1], seconds=0.3).reason is Reason.TIMEOUT
    assert time.monotonic() - begun < 30

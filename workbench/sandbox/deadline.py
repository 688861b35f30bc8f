"""A killable worker for our own functions on hostile input that may hang, such as a mathematical verifier.

A thread cannot be stopped, and a signal handler works in the main thread only and not inside one long C call. So the
function runs in a process of its own, which is reused while it answers in time and killed when it does not. This is for
trusted code: it may read files, start processes and do what it likes. For code a model wrote, use ``Sandbox``.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.errors import InputError, checked_range
from workbench.sandbox import channel
from workbench.sandbox.outcome import Outcome, Reason, printable
from workbench.sandbox.values import NotData, decode

START_SECONDS = 120.0  # importing the function's module, once a worker
ANSWER_BYTES = 16 << 20
BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[2]); import workbench.sandbox.deadline_worker as w; w.work()"
)


class DeadlinePool:
    """Up to ``workers`` processes that run functions by name. Usable from any thread; each forked process gets its own.

    :param memory_mb: address space each worker may have; beyond it the function sees ``MemoryError``.
    """

    def __init__(self, workers: int = 2, *, memory_mb: int = 4096) -> None:
        checked_range("workers", workers, 1, 256)
        self.workers, self.memory_mb = workers, memory_mb
        self._forget()
        _POOLS.add(self)

    def run(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        seconds: float = 5.0,
    ) -> Outcome:
        """``function(*args, **kwargs)`` in a worker; ``seconds`` of wall time, in which importing it is not counted.

        :returns: the value (plain data, of exact builtin types) or why there is none.
        :raises InputError: when the function cannot be named, or the arguments are not plain data.
        """
        checked_range("seconds", seconds, 0.001, 3600, unit=" s")
        name = _name(function)
        try:
            request = channel.frame([seconds, list(args), dict(kwargs or {})])
        except NotData as error:
            raise InputError(f"args: {error}; only plain data can be sent to a worker.") from None
        with self._slots:
            try:
                worker = self._take()
            except OSError as error:
                return Outcome(reason=Reason.INFRASTRUCTURE, detail=f"no worker could be started: {error}")
            try:
                return worker.ask(name, request, seconds)
            finally:
                self._give(worker)

    def close(self) -> None:
        """End the idle workers; a worker that is at work ends when it is done."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.process.poll() is None:
                    return worker
                worker.close()
        return _Worker(self.memory_mb)

    def _give(self, worker: _Worker) -> None:
        if worker.alive:
            with self._lock:
                self._idle.append(worker)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(self.workers)
        self._idle: list[_Worker] = []
        self._end_at_exit = weakref.finalize(self, _close_all, self._idle)

    def abandon(self) -> None:
        """In a process forked from the one that made them: forget the workers without ending them."""
        self._end_at_exit.detach()
        for worker in self._idle:
            worker.abandon()
        self._forget()


class _Worker:
    """One process and the channel to it."""

    def __init__(self, memory_mb: int) -> None:
        self.sock, theirs = socket.socketpair()
        path = json.dumps([entry or os.getcwd() for entry in sys.path])
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", BOOT, f"{theirs.fileno()} {memory_mb}", path],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except OSError:
            self.sock.close()
            raise
        self.sock.setblocking(False)
        self.alive = True

    def ask(self, name: str, request: bytes, seconds: float) -> Outcome:
        begun = time.monotonic()
        try:
            ready = self._exchange(channel.frame(name), START_SECONDS)
            if ready is not True:
                return Outcome(reason=Reason.INFRASTRUCTURE, detail=printable(f"{name} cannot be imported: {ready}"))
        except (channel.ChannelError, NotData) as error:
            self.close()
            return Outcome(reason=Reason.INFRASTRUCTURE, detail=f"the worker did not start ({type(error).__name__})")
        begun = time.monotonic()
        reason, detail, value, cpu = self._result(request, seconds)
        return Outcome(value, reason, detail, cpu_seconds=cpu, wall_seconds=time.monotonic() - begun)

    def _result(self, request: bytes, seconds: float) -> tuple[Reason, str, Any, float | None]:
        try:
            kind, value, cpu = self._exchange(request, seconds)
        except channel.Late:
            self.close()
            return Reason.TIMEOUT, f"still running after {seconds:g} s", None, None
        except (channel.TooLarge, NotData):
            self.close()
            return Reason.OUTPUT, f"its answer is larger than {ANSWER_BYTES >> 20} MB, or not well formed", None, None
        except channel.ChannelError:
            code = self.close()
            return Reason.CRASH, f"its process ended (status {code})", None, None
        reason = Reason(kind)
        return (reason, "", value, cpu) if reason is Reason.RETURNED else (reason, printable(value), None, cpu)

    def _exchange(self, outgoing: bytes, seconds: float) -> Any:
        return decode(channel.exchange(self.sock, outgoing, time.monotonic() + seconds, ANSWER_BYTES))

    def close(self) -> int | None:
        self.alive = False
        self.sock.close()
        self.process.kill()
        return self.process.wait()

    def abandon(self) -> None:
        self.sock.close()
        self.process.returncode = 0  # not ours to wait for


_POOLS: weakref.WeakSet[DeadlinePool] = weakref.WeakSet()
_pool: DeadlinePool | None = None


def run_with_deadline(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    seconds: float = 5.0,
    kwargs: Mapping[str, Any] | None = None,
) -> Outcome:
    """``function(*args, **kwargs)`` in a killable worker: a value, or the reason why there is none in ``seconds``.

    Works in any thread. ``function`` must be importable by its name, its arguments and result plain data.

    >>> run_with_deadline(len, [[1, 2, 3]]).value
    3

    :raises InputError: when the function cannot be named, or the arguments are not plain data.
    """
    global _pool
    if _pool is None:
        _pool = DeadlinePool()
    return _pool.run(function, args, kwargs, seconds=seconds)


def _name(function: Callable[..., Any]) -> str:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if module == "__main__" or found is None or found != function:
        raise InputError(f"function: {function!r} cannot be imported by name; give a function at the top of a module.")
    return f"{module}:{name}"


def _close_all(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.close()


def _abandon_all() -> None:
    for pool in list(_POOLS):
        pool.abandon()


os.register_at_fork(after_in_child=_abandon_all)

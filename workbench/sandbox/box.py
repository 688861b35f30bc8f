"""The sandbox as the rest of the workbench uses it: run a script, call a function, hold a candidate for many calls."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self

from workbench.errors import checked_range
from workbench.sandbox.outcome import Limits, Outcome, Reason
from workbench.sandbox.remote import InfrastructureError
from workbench.sandbox.selftest import Child, Engine, Status
from workbench.sandbox.session import Session
from workbench.sandbox.tiers import choose

WORKER_SECONDS = 600.0  # how long a call waits for one of the workers to be free


class Sandbox:
    """Runs code written by a model behind walls; at most ``workers`` pieces of it at a time.

    Usable from any thread, from an event loop (``acall``, ``arun``), and from worker processes: a forked process starts
    a sandbox of its own at its first call, a pickled one does so where it is unpickled. The walls are tested at the
    first call; see ``status``.

    >>> with Sandbox(workers=1) as box:
    ...     box.call("def double(x): return 2 * x", "double", [21]).value
    42

    :param memory_mb, output_kb, reply_kb: as in :class:`Limits`.
    :param modules: installed modules that candidates may import besides the standard library; none may start threads.
    :param engine: a fork server or WebAssembly engine to use instead of the best that passes the self-test.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        memory_mb: int = 512,
        output_kb: int = 64,
        reply_kb: int = 1024,
        modules: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        checked_range("workers", workers, 1, 256)
        self.workers, self.modules = workers, tuple(modules)
        self.limits = Limits(memory_mb=memory_mb, output_kb=output_kb, reply_kb=reply_kb)
        self._given = engine
        self._status: Status | None = None
        self._engine: Engine | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._end_at_exit: weakref.finalize | None = None
        self._reset()

    def call(
        self,
        code: str,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        seconds: float = 1.0,
    ) -> Outcome:
        """Load ``code``, then ``function(*args, **kwargs)``, both within ``seconds`` of wall time, in a fresh child.

        :raises InputError: when the arguments are not plain data.
        """
        return self._one_shot(lambda session: session.call(function, args, kwargs), code, seconds, lambda _: None)

    def run(self, code: str, *, stdin: str = "", seconds: float = 1.0) -> Outcome:
        """Execute ``code`` as a script with ``stdin`` as its input; ``RETURNED`` means that it ran to its end."""
        return self._one_shot(lambda session: session._script(stdin), code, seconds, lambda _: None)

    async def acall(
        self,
        code: str,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        seconds: float = 1.0,
    ) -> Outcome:
        """:meth:`call` without holding up the event loop; cancelling it kills the child."""
        return await self._awaited(lambda session: session.call(function, args, kwargs), code, seconds)

    async def arun(self, code: str, *, stdin: str = "", seconds: float = 1.0) -> Outcome:
        """:meth:`run` without holding up the event loop; cancelling it kills the child."""
        return await self._awaited(lambda session: session._script(stdin), code, seconds)

    @contextlib.contextmanager
    def session(self, code: str, *, seconds: float = 1.0, lifetime: float = 60.0) -> Iterator[Session]:
        """Hold one candidate for many calls: loaded once, and again only after a call that ended its child.

        Takes one of the workers for as long as it lasts. ``seconds`` bounds the loading and each call, ``lifetime`` the
        CPU seconds of one child.
        """
        limits = replace(self.limits, seconds=seconds, lifetime=max(lifetime, seconds))
        if not self._slots.acquire(timeout=WORKER_SECONDS):
            raise InfrastructureError(f"none of the {self.workers} workers was free for {WORKER_SECONDS:g} s")
        try:
            with contextlib.closing(Session(self._open, code, limits)) as session:
                yield session
        finally:
            self._slots.release()

    @property
    def status(self) -> Status:
        """Which tier is used, behind which walls; tests them the first time it is asked."""
        with self._lock:
            if self._status is None:
                self._engine, self._status = choose(self.modules, self._given)
                if self._engine is not None:
                    self._end_at_exit = weakref.finalize(self, self._engine.close)
            return self._status

    def close(self) -> None:
        """End every process; a later call starts them anew."""
        with self._threads_lock:
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
                self._threads = None
        with self._lock:
            if self._engine is not None:
                self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._given is not None:
            raise TypeError("a Sandbox with an engine of its own cannot be pickled; give workers and limits only")
        return {"workers": self.workers, "modules": self.modules, "limits": self.limits}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _given=None)
        self._reset()

    def _reset(self) -> None:
        self._lock, self._threads_lock = threading.Lock(), threading.Lock()
        self._slots = threading.BoundedSemaphore(self.workers)
        self._status = self._engine = self._threads = self._end_at_exit = None
        _BOXES.add(self)

    def _abandon(self) -> None:
        """In a forked process: what was started belongs to the process that started it."""
        if self._end_at_exit is not None:
            self._end_at_exit.detach()
        if self._engine is not None:
            self._engine.abandon()
        self._reset()

    def _open(self, limits: Limits) -> Child:
        status = self.status
        if self._engine is None:
            raise InfrastructureError(f"there is no sandbox here: {status.why} {status.remedy}".strip())
        return self._engine.open(limits)

    def _one_shot(
        self, work: Callable[[Session], Outcome], code: str, seconds: float, opened: Callable[[Session], None]
    ) -> Outcome:
        """``work`` on a session of its own; done again once when the sandbox itself failed."""
        for last in (False, True):
            try:
                with self.session(code, seconds=seconds, lifetime=seconds) as session:
                    session.share_seconds = True
                    opened(session)
                    outcome = work(session)
            except InfrastructureError as error:
                return Outcome(reason=Reason.INFRASTRUCTURE, detail=str(error))
            if last or outcome.reason is not Reason.INFRASTRUCTURE or session.killed:
                return outcome
        raise AssertionError("unreachable")

    async def _awaited(self, work: Callable[[Session], Outcome], code: str, seconds: float) -> Outcome:
        import asyncio

        with self._threads_lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="sandbox")
            threads = self._threads
        sessions: list[Session] = []
        future = asyncio.wrap_future(threads.submit(self._one_shot, work, code, seconds, sessions.append))
        try:
            return await future
        except asyncio.CancelledError:
            for session in sessions:
                session.kill()
            raise


_BOXES: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _abandon_all() -> None:
    for box in list(_BOXES):
        box._abandon()


os.register_at_fork(after_in_child=_abandon_all)

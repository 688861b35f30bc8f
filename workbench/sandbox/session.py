"""One candidate held for many calls: loaded once, and again only after a call that ended its child."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.errors import InputError, checked_range
from workbench.sandbox.outcome import Limits, Outcome, Reason
from workbench.sandbox.remote import InfrastructureError
from workbench.sandbox.selftest import Child
from workbench.sandbox.values import NotData


class Session:
    """One candidate held for many calls. Not for two threads at once, except :meth:`kill`."""

    def __init__(self, open_child: Callable[[Limits], Child], code: str, limits: Limits) -> None:
        if not isinstance(code, str):
            raise InputError(f"code: {type(code).__name__} is not text; give the source as a str.")
        self.code, self.limits = code, limits
        self.killed = False
        self.share_seconds = False  # loading and calling share one allowance
        self._open = open_child
        self._child: Child | None = None
        self._failed: Outcome | None = None  # how loading failed: the same for every call

    def call(
        self,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
    ) -> Outcome:
        """``function(*args, **kwargs)`` in the candidate; after a call that ended its child, in a new one.

        :raises InputError: when the arguments are not plain data.
        """
        seconds = self.limits.seconds if seconds is None else checked_range("seconds", seconds, 0.01, 3600, unit=" s")
        loaded = self.load()
        if not loaded.ok:
            return loaded
        left = max(0.0, seconds - loaded.wall_seconds) if self.share_seconds else seconds
        called = self._ask("call", function, list(args), dict(kwargs or {}), seconds=left)
        return _together(loaded, called)

    def load(self) -> Outcome:
        """Execute the code, unless a living child has done so already."""
        if self._failed is not None:
            return self._failed
        if self._child is not None and self._child.alive:
            return Outcome()
        loaded = self._ask("load", self.code, seconds=self.limits.seconds)
        if not loaded.ok and loaded.reason is not Reason.INFRASTRUCTURE:
            self._failed = loaded
        return loaded

    def kill(self) -> None:
        """End the child now, from any thread; whoever waits for its answer gets an infrastructure failure."""
        self.killed = True
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            with contextlib.suppress(InfrastructureError):
                self._child.close()
            self._child = None

    def _script(self, stdin: str) -> Outcome:
        return self._ask("run", self.code, stdin, seconds=self.limits.seconds)

    def _ask(self, verb: str, *payload: Any, seconds: float) -> Outcome:
        if self.killed:
            return Outcome(reason=Reason.INFRASTRUCTURE, detail="it was cancelled")
        try:
            if self._child is None or not self._child.alive:
                self.close()
                self._child = self._open(self.limits)
            return self._child.ask(verb, *payload, seconds=seconds)
        except InfrastructureError as error:
            return Outcome(reason=Reason.INFRASTRUCTURE, detail=str(error))
        except NotData as error:
            raise InputError(f"args: {error}; only plain data can be sent to the sandbox.") from None


def _together(loaded: Outcome, called: Outcome) -> Outcome:
    """The outcome of a call with what loading printed and cost."""
    cpu = None if called.cpu_seconds is None else called.cpu_seconds + (loaded.cpu_seconds or 0.0)
    return replace(
        called,
        stdout=loaded.stdout + called.stdout,
        stderr=loaded.stderr + called.stderr,
        cpu_seconds=cpu,
        wall_seconds=loaded.wall_seconds + called.wall_seconds,
    )

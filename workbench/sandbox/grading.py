"""Grading where the answers never meet the candidate: trusted tests here, the candidate at the far end of a pipe.

A test calls ``candidate(...)``; the call crosses the wall, data comes back, and the test compares it on this side. So
nothing the candidate does (leave, patch, print "passed", return something that equals everything) can do more than
make one value wrong.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import InputError, checked_range
from workbench.sandbox.box import Sandbox
from workbench.sandbox.deadline import DeadlinePool
from workbench.sandbox.outcome import Outcome, Reason, printable, shown
from workbench.sandbox.remote import InfrastructureError
from workbench.sandbox.session import Session


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the candidate passed; ``passed`` is None when that could not be found out (then ``detail`` says why).

    ``reason`` is how the candidate's last call ended; ``calls`` how often it was called.
    """

    passed: bool | None
    reason: Reason
    detail: str = ""
    calls: int = 0
    cpu_seconds: float | None = None


class CandidateError(Exception):
    """The candidate raised; the test sees this, not an exception of the candidate's choosing."""


class _Stopped(BaseException):
    """The candidate gave no value and raised nothing: no test may go on from here, nor catch this by accident."""


class Proxy:
    """The candidate as a test sees it: a function whose body runs behind the wall."""

    def __init__(self, session: Session, function: str, deadline: float) -> None:
        self._session, self._function, self._deadline = session, function, deadline
        self.calls = 0
        self.cpu_seconds: float | None = 0.0
        self.failed: Outcome | None = None  # the first call that gave no value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the candidate returns for these arguments; raises when it returns nothing."""
        self.calls += 1
        left = self._deadline - time.monotonic()
        if left <= 0:
            outcome = Outcome(reason=Reason.TIMEOUT, detail="all its calls together took too long")
        else:
            seconds = max(0.01, min(self._session.limits.seconds, left))
            outcome = self._session.call(self._function, args, kwargs, seconds=seconds)
        if outcome.cpu_seconds is None or self.cpu_seconds is None:
            self.cpu_seconds = None
        else:
            self.cpu_seconds += outcome.cpu_seconds
        if outcome.ok:
            return outcome.value
        self.failed = self.failed or outcome
        raise (CandidateError if outcome.reason is Reason.EXCEPTION else _Stopped)(outcome.detail)


class Grader:
    """Runs trusted tests against untrusted candidates, each test in a killable process with a sandbox of its own.

    A process of its own, because a value may be harmless as data and a bomb in a test: ``"%999999999d" % 1``.
    """

    def __init__(self, workers: int = 2, *, memory_mb: int = 512) -> None:
        self.memory_mb = memory_mb
        self._pool = DeadlinePool(workers, memory_mb=2048)

    def check(
        self,
        code: str,
        function: str,
        test: str,
        *,
        setup: str = "",
        seconds: float = 1.0,
        budget: float = 15.0,
    ) -> Verdict:
        """Does ``code`` pass ``test``, which is **trusted** Python source that defines ``check(candidate)``?

        ``setup`` is trusted source executed before it: what the test uses by name, such as helpers or a reference.
        ``seconds`` bounds loading and each call, ``budget`` all of it. Passed means: ``check`` came to its end, called
        the candidate, and every call gave a value.
        """
        checked_range("budget", budget, 0.01, 3600, unit=" s")
        args = [code, function, test, setup, seconds, budget, self.memory_mb]
        done = self._pool.run(_check_in_worker, args, seconds=budget + 5)
        if done.ok:
            passed, reason, detail, calls, cpu = done.value
            return Verdict(passed, Reason(reason), detail, calls, cpu)
        if done.reason in (Reason.TIMEOUT, Reason.MEMORY):
            return Verdict(False, done.reason, f"the test on the candidate's values: {done.detail}")
        return Verdict(None, Reason.INFRASTRUCTURE, f"the test could not be run: {done.detail}")

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def check_here(
    box: Sandbox, code: str, function: str, test: str, *, setup: str = "", seconds: float = 1.0, budget: float = 15.0
) -> Verdict:
    """:meth:`Grader.check` with the trusted test in this very process: for tests that only compare values."""
    trusted: dict[str, Any] = {"__name__": "trusted_test"}
    try:
        exec(compile(setup, "<setup>", "exec"), trusted)
        exec(compile(test, "<test>", "exec"), trusted)
        check = trusted["check"]
    except Exception as error:
        return Verdict(None, Reason.INFRASTRUCTURE, f"the test does not load: {type(error).__name__}: {error}")
    try:
        with box.session(code, seconds=seconds, lifetime=budget) as session:
            proxy = Proxy(session, function, time.monotonic() + budget)
            words = _run_check(check, proxy)
    except (InfrastructureError, InputError) as error:
        return Verdict(None, Reason.INFRASTRUCTURE, str(error))
    if proxy.failed is not None:
        blamed = proxy.failed.blames_code
        return Verdict(
            False if blamed else None, proxy.failed.reason, proxy.failed.detail, proxy.calls, proxy.cpu_seconds
        )
    if proxy.calls == 0:
        return Verdict(None, Reason.INFRASTRUCTURE, "the test never called the candidate" + (words and f": {words}"))
    return Verdict(not words, Reason.RETURNED, words, proxy.calls, proxy.cpu_seconds)


def _run_check(check: Any, proxy: Proxy) -> str:
    """Run the test; how it failed, or nothing."""
    try:
        check(proxy)
    except InputError:
        raise  # the test passed something that cannot be sent: its own fault, not the candidate's
    except (_Stopped, CandidateError):
        return "a call gave no value"
    except AssertionError as error:
        return printable(f"a test failed: {error}" if str(error) else "a test failed")
    except Exception as error:
        return printable(f"the test cannot use its value: {type(error).__name__}: {error}")
    return ""


@functools.cache
def _worker_box(memory_mb: int) -> Sandbox:
    return Sandbox(workers=1, memory_mb=memory_mb)


def _check_in_worker(
    code: str, function: str, test: str, setup: str, seconds: float, budget: float, memory_mb: int
) -> list[Any]:
    verdict = check_here(_worker_box(memory_mb), code, function, test, setup=setup, seconds=seconds, budget=budget)
    return [verdict.passed, verdict.reason.value, verdict.detail, verdict.calls, verdict.cpu_seconds]


@dataclass(frozen=True, slots=True)
class Case:
    """One input and the value that is right for it. Only ``args`` ever crosses the wall."""

    args: tuple[Any, ...]
    expected: Any


def check_cases(
    box: Sandbox, code: str, function: str, cases: Sequence[Case], *, seconds: float = 1.0, tolerance: float = 0.0
) -> tuple[Verdict, ...]:
    """One verdict a case: whether ``function(*case.args)`` is ``case.expected``, judged by :func:`same`.

    One child serves all cases, and a new one takes over after a case that ended it.
    """
    verdicts = []
    with box.session(code, seconds=seconds, lifetime=max(1.0, seconds * (len(cases) + 1))) as session:
        for case in cases:
            outcome = session.call(function, case.args)
            passed: bool | None = False if outcome.blames_code else None
            detail = outcome.detail
            if outcome.ok:
                passed = same(outcome.value, case.expected, tolerance)
                detail = "" if passed else f"it gave {shown(outcome.value)}"
            verdicts.append(Verdict(passed, outcome.reason, detail, 1, outcome.cpu_seconds))
    return tuple(verdicts)


def same(value: Any, expected: Any, tolerance: float = 0.0) -> bool:
    """``value == expected``, except that True is no number, NaN is NaN, and numbers may differ by ``tolerance``
    (relative to the larger one, or absolute below 1).

    >>> same([0.1 + 0.2, float("nan")], [0.3, float("nan")], tolerance=1e-9), same(True, 1), same((1,), [1])
    (True, False, False)
    """
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, (int, float)) and isinstance(expected, (int, float)):
        if value == expected or (value != value and expected != expected):
            return True
        return tolerance > 0 and _close(value, expected, tolerance)
    if type(value) is not type(expected):
        return bool(value == expected) if isinstance(value, (set, frozenset, complex)) else False
    if isinstance(value, (list, tuple)):
        return len(value) == len(expected) and all(same(v, e, tolerance) for v, e in zip(value, expected, strict=True))
    if isinstance(value, dict):
        return value.keys() == expected.keys() and all(same(value[k], expected[k], tolerance) for k in expected)
    return bool(value == expected)


def _close(value: float, expected: float, tolerance: float) -> bool:
    try:
        return math.isclose(value, expected, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:  # an integer beyond every float
        return False

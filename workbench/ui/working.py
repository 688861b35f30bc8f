"""Slow work for a page: in a thread of its own, told in small steps, cancellable, one model at work at a time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

Result = TypeVar("Result")
TICK = 0.1  # seconds between two looks at what the work has told

MODEL_TURN = threading.Lock()


class Cancelled(Exception):
    """The person pressed cancel while the work was still waiting or loading."""


def streamed(
    work: Callable[[Callable[[Any], None]], Result], *, tick: float = TICK
) -> Generator[list[Any], None, Result]:
    """Run ``work(tell)`` in a thread; yield what it told about every ``tick`` seconds (an empty list when silent).

    Returns the work's result, or raises its exception here. The thread is a daemon: closing the generator does not
    wait for it, so the work must look at its own cancel mark.
    """
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    outcome: list[Any] = []
    finished = threading.Event()

    def run() -> None:
        try:
            outcome.append((work(told.put), None))
        except BaseException as error:  # handed over to the reader, whatever it is
            outcome.append((None, error))
        finally:
            finished.set()

    threading.Thread(target=run, name="workbench-work", daemon=True).start()
    while not finished.wait(tick):
        yield list(_drained(told))
    if rest := list(_drained(told)):
        yield rest
    result, error = outcome[0]
    if error is not None:
        raise error
    return cast(Result, result)


@contextmanager
def model_turn(tell: Callable[[Any], None], cancel: threading.Event) -> Iterator[None]:
    """Hold the one turn that models take; says so while another page has it. Raises :class:`Cancelled`."""
    started, said = time.monotonic(), False
    while not MODEL_TURN.acquire(timeout=0.05):
        if cancel.is_set():
            raise Cancelled
        if not said and time.monotonic() - started > 0.1:
            tell("Waiting: the model is answering another page; yours is next")
            said = True
    try:
        if cancel.is_set():
            raise Cancelled
        yield
    finally:
        MODEL_TURN.release()


def _drained(told: queue.SimpleQueue[Any]) -> Iterator[Any]:
    while True:
        try:
            yield told.get_nowait()
        except queue.Empty:
            return

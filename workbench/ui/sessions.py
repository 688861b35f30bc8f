"""What the server remembers of each open page: bounded, separate, and never part of the page itself."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.types import Group
from workbench.ui.group_state import DEFAULT_STATE, GroupState
from workbench.ui.views.table import Sort

KEPT_SESSIONS = 64
KEPT_STEPPERS = 4  # each holds a copy of a model and its optimizer


@dataclass(frozen=True, eq=False)
class StepRecord:
    """One GRPO step as the page tells it: the group it trained on, before and after, and the new answers.

    ``advantages``, ``logps_before`` and ``logps_after`` (nats, of whole completions) are (K,) of ``trained``;
    ``now`` has the log-probability of every one of its tokens after the step.
    """

    trained: Group
    fresh: Group
    advantages: tuple[float, ...]
    logps_before: tuple[float, ...]
    logps_after: tuple[float, ...]
    now: tuple[tuple[float, ...], ...]
    trained_rewards: tuple[float, ...]
    fresh_rewards: tuple[float, ...]
    mean_before: float
    mean_after: float
    loss: float
    grad_norm: float
    clip_ratio: float
    kl: float | None


@dataclass(eq=False)
class Session:
    """One open page. ``group`` is on show, ``base`` is the one before any step; ``busy`` while a model works."""

    state: GroupState = DEFAULT_STATE
    group: Group | None = None
    base: Group | None = None
    source: str = ""
    sort: Sort = field(default_factory=Sort)
    stepper: Any = None
    steps: list[StepRecord] = field(default_factory=list)
    cancel: threading.Event = field(default_factory=threading.Event)
    busy: bool = False
    revision: int = field(default_factory=lambda: time.time_ns() // 1_000_000)  # so that a restart goes on counting
    lock: threading.RLock = field(default_factory=threading.RLock)

    def show(self, group: Group | None, source: str) -> None:
        """Put another group on show. The copy that steps have made stays, until Reset or another model."""
        self.group = self.base = group
        self.source = source
        self.steps = []

    def forget_steps(self) -> None:
        """Let go of the updated copy: the model is again as it was loaded."""
        self.stepper = None
        self.steps = []

    @property
    def steps_taken(self) -> int:
        """How many steps the page's copy has taken; 0 without a copy."""
        return 0 if self.stepper is None else int(self.stepper.steps)

    @property
    def now(self) -> tuple[tuple[float, ...], ...] | None:
        """The tokens' log-probabilities after the last step, when the group it trained on is on show."""
        last = self.steps[-1] if self.steps else None
        return last.now if last is not None and last.trained is self.group else None

    def next_revision(self) -> int:
        """A number larger than every one before it, so that the page can tell a late answer from a new one."""
        with self.lock:
            self.revision += 1
            return self.revision


class SessionStore:
    """Sessions by the page's own key. The least recently used ones go first, but never one that is at work."""

    def __init__(
        self, kept: int = KEPT_SESSIONS, steppers: int = KEPT_STEPPERS, make: Callable[[], Session] = Session
    ) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._kept, self._steppers, self._make = kept, steppers, make
        self._lock = threading.Lock()

    def get(self, key: str) -> Session:
        """The session of ``key``, made when there is none."""
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                session = self._sessions[key] = self._make()
            self._sessions.move_to_end(key)
            self._let_go()
            return session

    def drop(self, key: str) -> None:
        """Forget a page that was closed; whatever runs for it is cancelled."""
        with self._lock:
            session = self._sessions.pop(key, None)
        if session is not None:
            session.cancel.set()

    def __len__(self) -> int:
        return len(self._sessions)

    def _let_go(self) -> None:
        idle = [key for key, session in self._sessions.items() if not session.busy][:-1]
        for key in idle[: max(0, len(self._sessions) - self._kept)]:
            del self._sessions[key]
        with_copies = [s for s in self._sessions.values() if s.stepper is not None and not s.busy]
        for session in with_copies[: max(0, len(with_copies) - self._steppers)]:
            session.forget_steps()

"""What came of running somebody else's code: a value or a reason, and the limits it ran under."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from workbench.errors import InputError, checked_range


class Reason(StrEnum):
    """How a run ended. Only ``INFRASTRUCTURE`` is ours; every other reason is the doing of the code that ran."""

    RETURNED = "returned"  # it gave a value (for a script: it ran to its end)
    EXCEPTION = "exception"  # it raised, or did not compile
    TIMEOUT = "timeout"  # it was still running at the deadline, or used up its CPU seconds
    MEMORY = "memory"  # it asked for more memory than it may have
    OUTPUT = "output"  # it printed, or returned, more than it may
    CRASH = "crash"  # its process ended before it answered: os._exit, a segmentation fault
    PROTOCOL = "protocol"  # what it sent is not an answer: forged, malformed, or out of turn
    NOT_DATA = "not_data"  # it returned something that is not plain data: a function, a generator, an object
    INFRASTRUCTURE = "infrastructure"  # the sandbox itself failed: nothing may be concluded about the code


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """A value or a reason, never both; what was printed; and what it cost.

    ``value`` is built of exact builtin types (None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset,
    dict) and is None unless ``reason`` is ``RETURNED``. ``cpu_seconds`` is read from the kernel, not from the child;
    None where that was not possible. ``stdout`` and ``stderr`` are hostile text: escape them before showing them.

    >>> Outcome(reason=Reason.TIMEOUT, detail="still running after 1 s").ok
    False
    """

    value: Any = None
    reason: Reason = Reason.RETURNED
    detail: str = ""
    stdout: str = ""
    stderr: str = ""
    cpu_seconds: float | None = None
    wall_seconds: float = 0.0

    def __repr__(self) -> str:
        told = f"value={shown(self.value)}" if self.ok else f"detail={self.detail!r}"
        return f"Outcome({self.reason}, {told}, wall_seconds={self.wall_seconds:.3f})"

    @property
    def ok(self) -> bool:
        """The code gave a value."""
        return self.reason is Reason.RETURNED

    @property
    def blames_code(self) -> bool:
        """The code failed by its own doing, so a score of 0 is just.

        False for a value, and for an infrastructure failure, which must become ``Score(None, detail)`` and never 0.
        """
        return self.reason not in (Reason.RETURNED, Reason.INFRASTRUCTURE)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child may use. ``seconds`` is the wall clock of one call, loading the code included.

    ``memory_mb`` is address space on top of the interpreter's own; ``output_kb`` and ``reply_kb`` count one call;
    ``lifetime`` (seconds) bounds a whole session in CPU and, with a little slack, in wall time.
    """

    seconds: float = 1.0
    memory_mb: int = 512
    output_kb: int = 64
    reply_kb: int = 1024
    lifetime: float = 60.0

    def __post_init__(self) -> None:
        checked_range("seconds", self.seconds, 0.01, 3600, unit=" s")
        checked_range("lifetime", self.lifetime, 0.01, 3600, unit=" s")
        for name, low, high in (("memory_mb", 16, 65536), ("output_kb", 1, 65536), ("reply_kb", 1, 65536)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"{name}: {value!r} is not a whole number; give one from {low} to {high}.")
            checked_range(name, value, low, high)


def shown(value: object, limit: int = 400) -> str:
    """``repr(value)`` of a hostile value: printable, short, and never an error (an integer may be too long to write).

    >>> shown(10**5000)
    'a value that Python will not write'
    """
    try:
        return printable(repr(value), limit)
    except (ValueError, RecursionError):
        return "a value that Python will not write"


def printable(text: object, limit: int = 400) -> str:
    """``text`` cut to ``limit`` characters, with everything that does not print written as an escape.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    cut = str(text)[: limit + 1]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut[:limit])
    return shown + ("…" if len(cut) > limit else "")

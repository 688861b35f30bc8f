"""What a check before the run has to say: a level, the field it is about, the sentence, the evidence and the cure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a finding matters: it stops the run, it is likely to spoil it, or it is good to know."""

    STOP = "stop"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: ``message`` is a sentence, ``evidence`` what was seen, ``fix`` a command or an action."""

    level: Level
    field: str
    message: str
    evidence: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """The finding as a plain dictionary."""
        return {key: str(value) for key, value in asdict(self).items()}


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without repetitions, what stops first; within a level in the order they were found."""
    order = list(Level)
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: order.index(finding.level)))


def findings_text(findings: Iterable[Finding]) -> str:
    """The findings for a terminal, each with its evidence and its cure, and a last line that counts them.

    >>> print(findings_text([Finding(Level.WARN, "torch", "This build has no CUDA.", "2.13.0+cpu", "pip install x")]))
    warn  torch: This build has no CUDA. (2.13.0+cpu)
          fix: pip install x
    <BLANKLINE>
    0 stop, 1 warn, 0 note.
    """
    lines, findings = [], tuple(findings)
    for finding in findings:
        evidence = f" ({finding.evidence})" if finding.evidence else ""
        lines.append(f"{finding.level:<4}  {finding.field}: {finding.message}{evidence}")
        if finding.fix:
            lines.append(f"      fix: {finding.fix}")
    counts = (f"{sum(f.level is level for f in findings)} {level}" for level in Level)
    return "\n".join([*lines, "", f"{', '.join(counts)}."] if lines else ["Nothing stands in the way."])

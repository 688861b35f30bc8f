"""What is installed, what would run, and what is in the way: one pure function on :class:`Facts`.

No torch is imported. The rules are in :mod:`workbench.preflight.rules` and :mod:`workbench.preflight.pairs`, the
tested versions in :mod:`workbench.preflight.pins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import workbench
from workbench.preflight.backends import Backend, choose_backend
from workbench.preflight.facts import Facts, gather_facts
from workbench.preflight.findings import Finding, Level, findings_text
from workbench.preflight.pins import pinned, pinned_versions
from workbench.preflight.rules import examine

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Report:
    """A machine's facts, the backend that would run on it, and the findings, what stops first."""

    facts: Facts
    backend: Backend
    findings: tuple[Finding, ...]

    @property
    def stops(self) -> bool:
        """Whether something has to be mended before anything runs."""
        return any(finding.level is Level.STOP for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The report as plain dictionaries and lists."""
        facts = asdict(self.facts)
        facts["python"] = ".".join(map(str, self.facts.python))
        del facts["requirements"]  # long, and any package manager lists them
        return {
            "workbench": workbench.__version__,
            "ok": not self.stops,
            "backend": asdict(self.backend),
            "findings": [finding.to_json() for finding in self.findings],
            "tested": pinned_versions(),
            "facts": facts,
        }

    def to_text(self) -> str:
        """The report for a terminal."""
        facts, rows = self.facts, [("Machine", _machine(self.facts)), ("Accelerator", _accelerator(self.facts))]
        rows.append(("Backend", f"{self.backend.name}: {self.backend.why}"))
        rows.append(("Models", ", ".join(f"{n} {'ready' if ok else 'not here yet'}" for n, ok in facts.models.items())))
        lines = [f"grpo-workbench {workbench.__version__}", *(f"  {name:<12} {text}" for name, text in rows if text)]
        lines += ["", *_versions(facts), "", findings_text(self.findings)]
        return "\n".join(lines)


def diagnose(facts: Facts) -> Report:
    """The report on these facts; pure, so that any machine can be described to it."""
    return Report(facts, choose_backend(facts), examine(facts))


def doctor(models: Mapping[str, bool] | None = None) -> Report:
    """The report on this machine. ``models`` says which models' files are here, by name."""
    return diagnose(gather_facts(pinned()["packages"], models))


def _machine(facts: Facts) -> str:
    python = ".".join(map(str, facts.python))
    parts = [f"{facts.system} {facts.machine}", f"Python {python}", f"{facts.cpu_count} CPUs"]
    if facts.memory_total:
        free = "" if facts.memory_available is None else f" ({facts.memory_available / _GIB:.1f} available)"
        parts.append(f"{facts.memory_total / _GIB:.1f} GiB memory{free}")
    if facts.disk_free is not None:
        parts.append(f"{facts.disk_free / _GIB:.0f} GiB disk free")
    return ", ".join(parts + ([facts.runtime] if facts.runtime else []))


def _accelerator(facts: Facts) -> str:
    rows = []
    for gpu in facts.gpus:
        memory = "" if gpu.memory_mib is None else f", {gpu.memory_mib / 1024:.0f} GiB"
        capability = "" if gpu.compute_capability is None else f", compute capability {gpu.compute_capability:g}"
        rows.append(f"{gpu.name}{memory}{capability}, driver {gpu.driver}")
    return "; ".join(rows) or ("a TPU" if facts.tpu else "no NVIDIA GPU")


def _versions(facts: Facts) -> list[str]:
    lines = [f"  {'package':<18} {'installed':<16} tested"]
    for name, version in pinned_versions().items():
        lines.append(f"  {name:<18} {facts.packages.get(name, '-'):<16} {version}")
    return lines

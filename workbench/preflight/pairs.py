"""Pairs of installed packages that do not go together, each named with the version that mends it (CASES U1).

What the installed packages declare is checked first, so that a pair nobody has met yet is named too; then what was
seen to fail whatever the metadata says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion

from workbench.preflight.backends import choose_backend, gpu_obstacle
from workbench.preflight.facts import Facts, normalised
from workbench.preflight.findings import Finding, Level
from workbench.preflight.pins import pin, pinned

UNSLOTH_WANTS = {"2026.10.9": ("trl<=1.15.0", "transformers<=5.17.0", "datasets<5", "torch<2.15")}
# A version these do not accept stops the import of transformers, and so all sampling and training.
_CHECKED_AT_IMPORT = ("transformers", "torchvision")


def pairs(facts: Facts) -> Iterator[Finding]:
    """Every installed package that needs another version of an installed package, or one that is not there."""
    seen: set[tuple[str, str]] = set()
    unsloth = facts.packages.get("unsloth", "")
    declared = [(name, line) for name, lines in facts.requirements.items() for line in lines]
    for name, line in [*declared, *(("unsloth", line) for line in UNSLOTH_WANTS.get(unsloth, ()))]:
        for other, finding in _clash(facts, name, line):
            if (name, other) not in seen:
                seen.add((name, other))
                yield finding


def known_failures(facts: Facts) -> Iterator[Finding]:
    """What was seen to fail although the metadata allows it."""
    trl, unsloth, zoo = (facts.packages.get(name) for name in ("trl", "unsloth", "unsloth-zoo"))
    if trl == "1.15.0" and (obstacle := gpu_obstacle(facts)):
        message = "TRL 1.15.0 cannot run GRPO on a CPU: its fused language-model head needs Triton and a GPU."
        yield Finding(Level.STOP, "trl", message, f"trl 1.15.0, {obstacle}", pin("trl"))
    if unsloth and zoo and unsloth != zoo:
        message = f"unsloth {unsloth} and unsloth_zoo {zoo} must have the same version."
        yield Finding(_clash_level(facts, "unsloth"), "unsloth", message, fix=pin("unsloth", "unsloth-zoo"))


def _clash(facts: Facts, name: str, line: str) -> Iterator[tuple[str, Finding]]:
    """The other package and the finding that ``name`` needs ``line`` and does not get it, if so."""
    try:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate(_marker_environment(facts)):
            return
        other = normalised(requirement.name)
        installed = facts.packages.get(other)
        fits = installed is not None and requirement.specifier.contains(installed.split("+")[0], prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return
    wanted = f"{other}{requirement.specifier}"
    if installed is None:
        if other not in pinned()["packages"] and not _unused(facts, name):  # ours are told by what they are for
            level = Level.WARN if name.startswith("unsloth") else _clash_level(facts, name)
            message = f"{name} {facts.packages.get(name, '')} needs {wanted}, which is missing."
            yield other, Finding(level, name, message, fix=f'pip install "{wanted}"')
    elif not fits:
        message = f"{name} {facts.packages.get(name, '')} needs {wanted}, and {other} {installed} is installed."
        yield other, Finding(_clash_level(facts, name), name, message, fix=_mend(name, other, wanted))


def _mend(name: str, other: str, wanted: str) -> str:
    pins = pinned()["packages"]
    if other in pins and Requirement(wanted).specifier.contains(pins[other], prereleases=True):
        return pin(other)
    return pin(name, other) if name in pins and other in pins else f'pip install "{wanted}"'


def _clash_level(facts: Facts, name: str) -> Level:
    if name in ("unsloth", "unsloth-zoo"):
        return Level.WARN if _unused(facts, name) else Level.STOP
    return Level.STOP if name in _CHECKED_AT_IMPORT else Level.WARN


def _unused(facts: Facts, name: str) -> bool:
    """Whether this is a part of Unsloth on a machine where another backend runs, so that nothing imports it."""
    return name in ("unsloth", "unsloth-zoo") and choose_backend(facts).name != "unsloth"


def _marker_environment(facts: Facts) -> dict[str, str]:
    platforms = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}
    return {
        "python_version": "{}.{}".format(*facts.python),
        "python_full_version": ".".join(map(str, facts.python)),
        "platform_system": facts.system,
        "platform_machine": facts.machine,
        "sys_platform": platforms.get(facts.system, sys.platform),
        "os_name": "nt" if facts.system == "Windows" else "posix",
        "extra": "",
    }

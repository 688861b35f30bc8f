"""The versions that were tested together, from ``tested.json``, and the commands that install them.

``scripts/write_tested_pins.py`` makes that file from ``constraints.txt``, which the wheel does not carry.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def pinned() -> dict[str, Any]:
    """What ``scripts/write_tested_pins.py`` wrote: ``python``, ``extras`` and ``packages``."""
    table: dict[str, Any] = json.loads((Path(__file__).parent / "tested.json").read_text(encoding="utf-8"))
    return table


def pinned_versions() -> dict[str, str]:
    """The tested version of every package, those of ``dev`` left out."""
    dev = pinned()["extras"]["dev"]
    return {name: version for name, version in pinned()["packages"].items() if name not in dev}


def pin(*names: str) -> str:
    """The command that installs the tested version of these packages."""
    return "pip install " + " ".join(f'"{name}=={pinned()["packages"][name]}"' for name in names)

"""Groups that real models sampled and that ship with the package, so that the app is alive in its first second.

``scripts/record_groups.py`` writes them; each file holds the groups of one model.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from workbench.errors import unknown
from workbench.runs.groups import read_groups
from workbench.types import Group

RECORDED = Path(__file__).parent / "recorded"


def recorded_models() -> tuple[str, ...]:
    """The models that have recorded groups, by name, sorted (nano first, as the smallest)."""
    names = sorted(path.stem for path in RECORDED.glob("*.parquet"))
    return tuple(sorted(names, key=lambda name: (name != "nano", name)))


def recorded_groups(model: str) -> list[Group]:
    """The recorded groups of a model; read once, then kept. Raises :class:`InputError` for one without a recording."""
    if model not in recorded_models():
        raise unknown("recorded model", model, recorded_models())
    return list(_read(RECORDED / f"{model}.parquet"))


@lru_cache(maxsize=8)
def _read(path: Path) -> tuple[Group, ...]:
    return tuple(read_groups(path))

"""Which models there are and where each one comes from; nothing here imports torch or touches the network."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workbench.errors import InputError, nearest, unknown

ROOM = Path(__file__).parent
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


class SourceKind(StrEnum):
    """Where a model's files come from."""

    EMBEDDED = "embedded"  # shipped inside this package
    WHEEL = "wheel"  # unpacked and converted once from a package registry's wheel, then cached
    FOLDER = "folder"  # a local folder in the transformers layout
    HUB = "hub"  # a repository id on the model hub


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a person needs to know before choosing a model; ``parameters`` is a count, not millions."""

    name: str
    parameters: int
    licence: str
    purpose: str
    kind: SourceKind


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where to load ``name`` from: ``location`` is a folder for embedded and folder models, else an id."""

    name: str
    kind: SourceKind
    location: str


MODELS: dict[str, ModelCard] = {
    card.name: card
    for card in (
        ModelCard(
            "nano",
            1_355_680,
            "Apache-2.0",
            "a policy pretrained here on flawed desk demonstrations; samples and learns in seconds on a laptop",
            SourceKind.EMBEDDED,
        ),
        ModelCard(
            "smollm2",
            134_515_008,
            "Apache-2.0",
            "SmolLM2-135M-Instruct with a warm-start adapter for tool calls; a real language model for BFCL tasks",
            SourceKind.WHEEL,
        ),
    )
}


def resolve(name: str) -> ModelSource:
    """Say where a model comes from: a name in :data:`MODELS`, a local folder, or a hub id such as ``owner/model``.

    A string with a slash is a folder when such a folder exists or when it is written as a path (``./``, ``~/``,
    ``/``), and a hub id otherwise. Raises :class:`InputError` for an unknown name, with the nearest known one, and
    for a folder that holds no ``config.json``.

    >>> resolve("nano").kind.value
    'embedded'
    >>> resolve("Qwen/Qwen3-0.6B").kind.value
    'hub'
    >>> resolve("nanno")
    Traceback (most recent call last):
    workbench.errors.InputError: model: 'nanno' is not known; did you mean 'nano'? Known: nano, smollm2, ...
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"model: {name!r} is not a name; give one of {', '.join(MODELS)}, a hub id or a folder.")
    name = name.strip()
    if name in MODELS:
        kind = MODELS[name].kind
        return ModelSource(name, kind, str(ROOM / name) if kind is SourceKind.EMBEDDED else name)
    if "/" not in name and "\\" not in name:
        raise unknown("model", name, [*MODELS, "owner/model (a hub id)", "./folder"])
    path = Path(name).expanduser()
    if path.is_dir() or name.startswith(("/", "./", "../", "~", ".\\")) or "\\" in name:
        return ModelSource(name, SourceKind.FOLDER, str(checked_folder(path)))
    if not HUB_ID.fullmatch(name):
        raise InputError(f"model: {name!r} is neither a folder nor a hub id; a hub id reads owner/model.")
    return ModelSource(name, SourceKind.HUB, name)


def checked_folder(path: Path) -> Path:
    """``path`` itself when it holds a ``config.json``; otherwise an :class:`InputError` saying what it holds."""
    if not path.is_dir():
        siblings = [p.name for p in path.parent.iterdir() if p.is_dir()] if path.parent.is_dir() else []
        near = nearest(path.name, siblings)
        hint = f"; did you mean {str(path.parent / near)!r}?" if near else "."
        raise InputError(f"model: there is no folder {str(path)!r}{hint}")
    if (path / "config.json").is_file():
        return path
    if (path / "adapter_config.json").is_file():
        raise InputError(
            f"model: {str(path)!r} holds an adapter, not a model; load its base model with adapter= this folder."
        )
    raise InputError(f"model: {str(path)!r} holds no config.json; give the folder that save_pretrained wrote.")

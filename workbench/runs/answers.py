"""Answers somebody else sampled, as JSON lines: ``{"task_id": "desk-3", "completions": ["...", "..."]}``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.errors import InputError, nearest
from workbench.rewards import score_group
from workbench.tasks import get_task
from workbench.types import Completion, Group, StopReason

_LINE_KEYS = ("task_id", "completions", "model")
_COMPLETION_KEYS = ("text", "prefill", "stop_reason")


def read_answers(lines: Iterable[str], name: str = "answers") -> list[Group]:
    """Scored groups from JSON lines, one group a line; empty lines are skipped.

    A completion is a text, or an object with ``text`` and optionally ``prefill`` and ``stop_reason``. ``model`` may
    say who answered. Raises :class:`InputError` naming ``name`` and the line for anything else.
    """
    groups = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                groups.append(_group(line))
            except InputError as error:
                raise InputError(f"{name}, line {number}: {error}") from error
    return groups


def _group(line: str) -> Group:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error}).") from error
    if not isinstance(row, dict) or "task_id" not in row or "completions" not in row:
        raise InputError('expected an object such as {"task_id": "desk-3", "completions": ["..."]}.')
    _refuse_unknown_keys(row, _LINE_KEYS)
    if not isinstance(row["task_id"], str):
        raise InputError(f"task_id: {row['task_id']!r} is not a text.")
    if not isinstance(row["completions"], list) or not row["completions"]:
        raise InputError("completions: expected a list of at least one text.")
    task = get_task(row["task_id"])
    completions = tuple(_completions(row["completions"]))
    return Group(task, completions, score_group(task, completions), model=str(row.get("model") or ""))


def _completions(rows: list[Any]) -> Iterator[Completion]:
    for index, row in enumerate(rows):
        if isinstance(row, str):
            yield Completion(row)
        elif isinstance(row, dict) and isinstance(row.get("text"), str):
            _refuse_unknown_keys(row, _COMPLETION_KEYS)
            reason = row.get("stop_reason", "eos")
            if reason not in list(StopReason):
                raise InputError(f"stop_reason: {reason!r} is not known. Known: {', '.join(StopReason)}.")
            yield Completion(row["text"], stop_reason=StopReason(reason), prefill=str(row.get("prefill") or ""))
        else:
            raise InputError(f"completions[{index}]: expected a text, got {type(row).__name__}.")


def _refuse_unknown_keys(row: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in row:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near!r}?" if near else f"Known: {', '.join(known)}."
            raise InputError(f"{key!r} is not a known key; {hint}")

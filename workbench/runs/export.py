"""A group as JSON and as CSV: what the command line prints and the app hands out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from workbench.rewards import parse_completion
from workbench.runs.strict import plain
from workbench.types import Completion, Group, Task

Values = Sequence[float] | np.ndarray  # (K,)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs a cell that begins with one of these


def group_to_json(
    group: Group,
    rewards: Values | None = None,
    advantages: Values | None = None,
    *,
    tokens: bool = False,
) -> dict[str, Any]:
    """The group as plain dictionaries and lists, safe to print: absent, NaN and infinite numbers are None.

    ``rewards`` and ``advantages`` (K,) come from the weights in use; ``tokens`` adds every token with its
    log-probabilities (nats) and entropy (nats). Calls are the ones the parser reads, with their errors.
    """
    completions = []
    for index, completion in enumerate(group.completions):
        row: dict[str, Any] = {"index": index, "text": completion.text, "prefill": completion.prefill}
        row |= {"length": completion.length, "stop_reason": str(completion.stop_reason), "error": completion.error}
        row |= {"reward": _at(rewards, index), "advantage": _at(advantages, index)}
        scores = group.scores[index] if group.scores else {}
        row["scores"] = {name: {"value": score.value, "reason": score.reason} for name, score in scores.items()}
        row["calls"] = calls_of(completion)
        if tokens:
            names = ("token_ids", "tokens", "logps", "entropies", "ref_logps")
            row |= {name: getattr(completion, name) for name in names}
        completions.append(row)
    sampled = any(completion.token_ids for completion in group.completions)  # not so for answers read from a file
    document = {
        "task": task_to_json(group.task),
        "model": group.model or None,
        "sampling": asdict(group.sampling) if sampled else None,
    }
    result: dict[str, Any] = plain(document | {"completions": completions})
    return result


def task_to_json(task: Task) -> dict[str, Any]:
    """The task as plain dictionaries and lists: messages, tools and the calls that would be right."""
    expected = [{"name": c.name, "arguments": c.arguments, "optional": sorted(c.optional)} for c in task.expected]
    names = {"id": task.id, "source": task.source, "split": str(task.split), "kind": task.kind, "prompt": task.prompt}
    rest = {"messages": task.messages, "tools": json.loads(task.tools_json), "expected": expected}
    result: dict[str, Any] = plain(names | rest)
    return result


def calls_of(completion: Completion) -> list[dict[str, Any]]:
    """The tool calls read from a completion: name, and either arguments or an error with its detail."""
    calls = parse_completion(completion.text, completion.prefill).calls
    return [
        {
            "name": call.name,
            "arguments": None if call.arguments is None else dict(call.arguments),
            "error": None if call.error is None else str(call.error),
            "detail": call.detail,
        }
        for call in calls
    ]


def group_to_csv(
    group: Group,
    rewards: Values | None = None,
    advantages: Values | None = None,
    *,
    header: bool = True,
) -> str:
    """The group as CSV text, one row a completion, fit for a spreadsheet.

    An absent number is an empty cell. Text that a spreadsheet would run as a formula gets a leading apostrophe, and
    a lone surrogate is written as its escape, so the JSON is the exact copy and this one is the handy one.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = [f"{kind}_{name}" for name in group.dimensions for kind in ("score", "reason")]
    if header:
        writer.writerow([*_CSV_COLUMNS, *names, "calls", "text"])
    for index, completion in enumerate(group.completions):
        row: list[Any] = [group.task.id, group.task.source, group.model, group.sampling.seed, index]
        row += [_at(rewards, index), _at(advantages, index)]
        row += [completion.length, str(completion.stop_reason), completion.error]
        for score in group.scores[index].values() if group.scores else ():
            row += [score.value, score.reason]
        row += [json.dumps(plain(calls_of(completion))), completion.text]
        writer.writerow([_cell(value) for value in row])
    return buffer.getvalue()


_CSV_COLUMNS = (
    *("task_id", "source", "model", "seed", "completion", "reward", "advantage"),
    *("length", "stop_reason", "error"),
)


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return plain(value)
    text = value.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    return f"'{text}" if text.startswith(_FORMULA) else text


def _at(values: Values | None, index: int) -> float | None:
    return None if values is None else float(values[index])

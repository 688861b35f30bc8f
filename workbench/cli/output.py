"""Printing weighed groups and tasks: a table for people, one JSON document or CSV for programs."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import workbench
from workbench.errors import InputError
from workbench.grpo import GroupState
from workbench.runs.export import group_to_csv, group_to_json
from workbench.runs.groups import write_groups
from workbench.runs.report import call_text, group_report, one_line
from workbench.runs.strict import strict_json
from workbench.runs.weighing import WeighedGroup, Weighing, parse_weights, weigh_groups
from workbench.types import Group, Task


def weighing_of(args: argparse.Namespace) -> Weighing:
    """The weights and conventions the flags ask for."""
    return Weighing(parse_weights(args.weights), args.scale_rewards, args.std, args.aggregation)


def checked_out(name: str | None) -> Path | None:
    """Where to write, refused now rather than after an hour of sampling."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix != ".parquet":
        raise InputError(f"out: {name!r} must end in .parquet; for JSON or CSV write `--json > {path.stem}.json`.")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"out: {name!r} cannot be written; its folder must be there and be yours to write.")
    return path


def write_out(path: Path, groups: Sequence[Group]) -> None:
    """Keep the groups and say so on stderr."""
    write_groups(path, groups)
    rows = sum(len(group.completions) for group in groups)
    print(f"Wrote {_count(len(groups), 'group')} ({_count(rows, 'completion')}) to {path}.", file=sys.stderr)


def print_groups(groups: Sequence[Group], weighing: Weighing, args: argparse.Namespace) -> None:
    """The groups under these weights, in the form the flags ask for."""
    weighed = weigh_groups(groups, weighing)
    if args.json:
        print(strict_json(_document(weighed, weighing, tokens=args.tokens)))
    elif args.csv:
        parts = (group_to_csv(w.group, w.rewards, w.advantages, header=i == 0) for i, w in enumerate(weighed))
        print("".join(parts), end="")
    else:
        width = max(80, shutil.get_terminal_size((120, 24)).columns)
        reports = [group_report(one, width=width, reasons=args.reasons) for one in weighed]
        print("\n\n".join([*reports, _summary_text(weighed)] if len(weighed) > 1 else reports))


def _document(weighed: Sequence[WeighedGroup], weighing: Weighing, *, tokens: bool) -> dict[str, Any]:
    rows = []
    for one in weighed:
        row = group_to_json(one.group, one.rewards, one.advantages, tokens=tokens)
        row |= {"reward": one.mean, "reward_std": one.spread, "pushed_up": one.pushed_up}
        row |= {"pushed_down": one.pushed_down, "state": str(one.state), "verdict": one.verdict(), "shares": one.shares}
        rows.append(row)
    conventions = {name: getattr(weighing, name) for name in ("weights", "scale_rewards", "std", "aggregation")}
    return {"workbench": workbench.__version__, **conventions, "summary": _summary(weighed), "groups": rows}


def _summary(weighed: Sequence[WeighedGroup]) -> dict[str, Any]:
    rewards = np.concatenate([one.scored for one in weighed])
    states = {str(state): sum(one.state is state for one in weighed) for state in GroupState}
    return {
        "groups": len(weighed),
        "completions": sum(one.rewards.size for one in weighed),
        "unscored": sum(one.rewards.size - one.scored.size for one in weighed),
        "reward": float(rewards.mean()) if rewards.size else None,
        "frac_reward_zero_std": 1 - states[GroupState.ALIVE] / len(weighed),
        "states": states,
    }


def _summary_text(weighed: Sequence[WeighedGroup]) -> str:
    found = _summary(weighed)
    mean = "none" if found["reward"] is None else f"{found['reward']:.2f}"
    dead = {name: n for name, n in found["states"].items() if n and name != GroupState.ALIVE}
    which = f" ({', '.join(f'{n} {name}' for name, n in dead.items())})" if dead else ""
    head = f"{_count(found['groups'], 'group')}, {_count(found['completions'], 'completion')}: mean reward {mean}"
    return f"{head}, {_count(sum(dead.values()), 'dead group')}{which}."


def task_report(task: Task, rendered: Any = None) -> str:
    """A task for a terminal; ``rendered`` is the prompt as a model reads it."""
    lines = [f"{task.id}, {task.source}, {task.split}", ""]
    lines += [f"{message.get('role', '?')}: {one_line(str(message.get('content') or ''))}" for message in task.messages]
    lines += ["", "Tools"]
    for tool in task.tools:
        mark = " (destructive)" if tool.destructive else ""
        arguments = ", ".join(tool.parameters.get("properties", {}))
        lines.append(one_line(f"  {tool.name}({arguments}){mark}: {tool.description}", 160))
    calls = [one_line(call_text(call.name, call.gold())) for call in task.expected] or ["call nothing"]
    lines += ["", "Expected", *(f"  {call}" for call in calls)]
    if rendered is not None:
        lines += ["", f"Prompt as the model reads it ({len(rendered.ids)} tokens, {rendered.bos_count} BOS)"]
        lines += [one_line(line) for line in rendered.text.split("\n")]
        lines += [f"Note: {note}" for note in rendered.notes]
    return "\n".join(lines)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"

"""BFCL v4's single-turn tool-calling tasks, shipped with the package (Apache-2.0, from ``bfcl-eval==2026.3.23``).

The file is written by ``scripts/build_bfcl.py``, whose docstring says what is changed on the way. It is read once,
on first use, without a network. These tasks are an *evaluation* set: train only on the train split, and compare
with no published number, because the train split's tool lists have been pruned.

- 2,290 of 2,311 right answers fit their own schema. The other 21 are dropped, and so are 4 tasks that offer no
  function and 9 that are conversations of several turns: :func:`dropped_tasks` names each with its reason.
- The split goes by function name (about 23 % is held out). No function called by a held-out answer is called, or
  even offered, in a train task: from 456 train tasks the offered functions with a held-out name are removed, and 53
  of those are left with a single function to choose.
- The two irrelevance sources alone teach "never call": always mix them with others.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from workbench.types import ExpectedCall, Split, Task


class Catalogue(NamedTuple):
    """The shipped file, parsed: its tasks by id (in the file's order), and the ids left out with why."""

    tasks: dict[str, Task]
    dropped: dict[str, str]


@cache
def catalogue() -> Catalogue:
    """Reads the shipped file (about 0.1 s, once a process)."""
    packed = resources.files("workbench.tasks").joinpath("data/bfcl.jsonl.gz").read_bytes()
    head, *lines = gzip.decompress(packed).decode("utf-8").splitlines()
    header = json.loads(head)
    tools, rows = lines[: header["tools"]], lines[header["tools"] :]
    tasks = [_task(json.loads(row), tools) for row in rows]
    return Catalogue({task.id: task for task in tasks}, header["dropped"])


def bfcl_tasks(source: str) -> list[Task]:
    """All tasks of one BFCL source, in BFCL's order.

    >>> task = bfcl_tasks("bfcl_simple")[0]
    >>> task.id, task.expected[0].name
    ('bfcl-simple_python_0', 'calculate_triangle_area')
    """
    return [task for task in catalogue().tasks.values() if task.source == source]


def dropped_tasks() -> dict[str, str]:
    """The BFCL tasks that are not shipped: id -> one sentence saying why."""
    return dict(catalogue().dropped)


def _task(row: dict[str, Any], tools: list[str]) -> Task:
    expected = tuple(
        ExpectedCall(
            call["name"],
            {argument: tuple(accepted) for argument, accepted in call["arguments"].items()},
            frozenset(call["optional"]),
        )
        for call in row["expected"]
    )
    tools_json = "[" + ",".join(tools[number] for number in row["tools"]) + "]"
    return Task(row["id"], row["source"], Split(row["split"]), tuple(row["messages"]), tools_json, expected)

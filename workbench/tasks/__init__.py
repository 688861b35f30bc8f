"""What the agent is asked: BFCL's tool-calling tasks, and the desk, a small office world of our own."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from workbench.errors import InputError, nearest, unknown
from workbench.tasks.bfcl import bfcl_tasks, catalogue
from workbench.types import Split, Task

__all__ = ["SOURCES", "get_task", "load_tasks", "source_name"]

SOURCES: dict[str, str] = {
    "desk": "a small office with destructive tools; endless, generated (about a fifth held out)",
    "bfcl_simple": "BFCL: one function offered, one call (400 tasks)",
    "bfcl_multiple": "BFCL: several functions offered, one call (200 tasks)",
    "bfcl_parallel": "BFCL: one function offered, several calls (200 tasks)",
    "bfcl_parallel_multiple": "BFCL: several functions offered, several calls (198 tasks)",
    "bfcl_irrelevance": "BFCL: no function fits; right is to say so (240 tasks)",
    "bfcl_live_simple": "BFCL live: people's own questions, one function, one call (255 tasks)",
    "bfcl_live_multiple": "BFCL live: people's own questions, several functions, one call (1,037 tasks)",
    "bfcl_live_irrelevance": "BFCL live: people's own questions that no function fits (871 tasks)",
}
DESK_WINDOW = 256  # what load_tasks("desk") gives without a limit


def source_name(source: str) -> str:
    """The name of a source as in :data:`SOURCES`; also takes ``tasks=desk`` as typed on a command line.

    >>> source_name("tasks=desk")
    'desk'
    """
    name = str(source).removeprefix("tasks=").strip()
    if name not in SOURCES:
        raise unknown("tasks", name, SOURCES)
    return name


def load_tasks(source: str, split: Split | str | None = None, limit: int | None = None, seed: int = 0) -> list[Task]:
    """The tasks of one source: all of them in order, or ``limit`` of them drawn without repetition by ``seed``.

    ``split`` is ``"train"``, ``"held_out"`` or None for both. The same arguments give the same tasks for ever.
    ``desk`` never ends: without a limit it gives its first 256 tasks of that split, with one it draws from a
    window of the stream eight times as long. Raises InputError for an unknown source or split, with the nearest
    name, and for a limit that is below 1 or above what the source has.

    >>> [task.id for task in load_tasks("bfcl_simple", limit=2, seed=1)] == [
    ...     task.id for task in load_tasks("bfcl_simple", limit=2, seed=1)]
    True
    """
    name, wanted = source_name(source), _split(split)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InputError(f"limit: {limit!r} is not a number of tasks; give 1 or more, or None for all.")
    if name == "desk":
        window = DESK_WINDOW if limit is None else max(DESK_WINDOW, 8 * limit)
        tasks = list(_desk_stream(window, wanted))
    else:
        tasks = [task for task in bfcl_tasks(name) if wanted in (None, task.split)]
    if limit is None:
        return tasks
    if limit > len(tasks):
        half = f" ({wanted.value})" if wanted else ""
        raise InputError(
            f"limit: {limit} is more than the {len(tasks)} tasks of {name}{half}; give at most {len(tasks)}."
        )
    return random.Random(seed).sample(tasks, limit)


def get_task(task_id: str) -> Task:
    """The task with this id; ids never change, so a link to a task keeps working.

    Raises InputError, naming the nearest id, when there is none.

    >>> get_task("bfcl-simple_python_1").prompt
    'Calculate the factorial of 5 using math functions.'
    """
    desk = re.fullmatch(r"desk-(\d{1,12})", str(task_id))
    if desk:
        from workbench.tasks.desk.generator import desk_task

        return desk_task(int(desk[1]))
    tasks, dropped = catalogue()
    if task_id in tasks:
        return tasks[task_id]
    if task_id in dropped:
        raise InputError(f"task: {task_id!r} is not shipped: {dropped[task_id]}.")
    near = nearest(str(task_id)[:80], tasks) or "desk-0"
    raise InputError(f"task: {str(task_id)[:80]!r} is not known; did you mean {near!r}? Ids look like desk-<number>.")


def _split(split: Split | str | None) -> Split | None:
    if split is None:
        return None
    if split not in list(Split):
        raise unknown("split", split, Split)
    return Split(split)


def _desk_stream(count: int, wanted: Split | None) -> Iterator[Task]:
    from workbench.tasks.desk.generator import desk_task

    index = found = 0
    while found < count:
        task = desk_task(index)
        index += 1
        if wanted in (None, task.split):
            found += 1
            yield task
        elif index > 100 * (count + 10):
            raise InputError(f"split: the desk has too few tasks of split {wanted}.")

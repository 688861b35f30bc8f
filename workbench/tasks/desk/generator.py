"""One endless, fixed stream of desk tasks: ``desk_task(index)`` is the same task for ever, on every machine.

- Every fifth task (index % 5 == 4) is held out. A held-out task takes *all* its names, cities, files, events, subjects,
  errands, labels, timer lengths, amounts and sums from the held-out half of :mod:`values`; a train task takes none from
  it. What has too few values to split by itself (days, hours, currencies) is always joined to one that is split, or
  split as a pair with the wording. Wordings are shared.
- About 15 % of tasks need two calls; about 12 % need none (small talk, a wish no offered tool serves, or a destructive
  tool that is spoken of but not asked for).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workbench.errors import InputError
from workbench.tasks.desk.phrasings import KEPT, PHRASINGS, WISHES, is_command
from workbench.tasks.desk.slots import Draw, days_of, slots
from workbench.tasks.desk.tools import DESK_TOOLS
from workbench.types import ExpectedCall, Split, Task, Tool, tools_to_json

NO_TOOL_ANSWER = "None of these tools can do that."


def request(draw: Draw, tool: str, *, command: bool = False) -> tuple[str, ExpectedCall]:
    """One sentence that asks for one call of the tool, without its full stop, and the call that is right."""
    wordings = [p for p in PHRASINGS[tool] if (p.imperative or not command) and days_of(p, draw.split)]
    phrasing = draw.pick(wordings)
    text, arguments = slots(draw, phrasing)
    if tool in DESTRUCTIVE:
        arguments["confirm"] = (True,)
    defaults = {key: value for key, value in DEFAULTS.get(tool, {}).items() if key not in arguments}
    return phrasing.text.format(**text), ExpectedCall(tool, {**arguments, **defaults}, frozenset(defaults))


DEFAULTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "get_weather": {"day": ("today",)},
    "send_email": {"urgent": (False,)},
    "search_notes": {"limit": (10,)},
}
"""Optional arguments that may be written out with the value they have anyway."""
DESTRUCTIVE = tuple(name for name, tool in DESK_TOOLS.items() if tool.destructive)


@dataclass(frozen=True)
class Ask:
    """What a person says, what would be right, and which tools must or must not be among those offered."""

    text: str
    expected: tuple[ExpectedCall, ...]
    needed: tuple[str, ...]
    barred: tuple[str, ...] = ()


def _single(draw: Draw) -> Ask:
    sentence, expected = request(draw, draw.pick(tuple(DESK_TOOLS)))
    return Ask(_polite(draw, sentence), (expected,), (expected.name,))


def _double(draw: Draw) -> Ask:
    asked = draw.shuffled(tuple(DESK_TOOLS))[:2]
    (first, one), (second, two) = (request(draw, name, command=True) for name in asked)
    joint = draw.pick((" and ", ", then ", " and then ", ", also "))
    return Ask(f"{first}{joint}{_lowered(second)}.", (one, two), tuple(asked))


def _none(draw: Draw) -> Ask:
    """Nothing to call: small talk, a wish beyond the desk, a tool that is not offered, or one not asked for."""
    kind = draw.pick(("talk", "wish", "absent", "kept"))
    if kind == "talk":
        return Ask(draw.word("talk"), (), ())
    if kind == "wish":
        words = {pool: draw.word(pool) for pool in ("topic", "city", "name")}
        return Ask(draw.pick(WISHES).format(**words), (), ())
    if kind == "absent":
        tool = draw.pick(tuple(DESK_TOOLS))
        return Ask(_polite(draw, request(draw, tool)[0]), (), (), (tool,))
    tool, pool = draw.pick((("delete_file", "file"), ("transfer_money", "name"), ("cancel_event", "event")))
    return Ask(draw.pick(KEPT[tool]).format(draw.word(pool)), (), (tool,))


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _polite(draw: Draw, sentence: str) -> str:
    """The sentence with its mark, now and then with a courtesy around it."""
    roll = draw.random()
    if is_command(sentence) and roll < 0.12:
        return f"Please {_lowered(sentence)}."
    if is_command(sentence) and roll < 0.2:
        return f"Could you {_lowered(sentence)}?"
    return sentence if sentence.endswith("?") else f"{sentence}."


def _offered(draw: Draw, ask: Ask) -> tuple[Tool, ...]:
    """The needed tools and distractors, 3 to 5 in all, in random order."""
    count = 3 + int(draw.random() * 3)
    others = draw.shuffled([name for name in DESK_TOOLS if name not in (*ask.needed, *ask.barred)])
    names = [*ask.needed, *others[: count - len(ask.needed)]]
    return tuple(DESK_TOOLS[name] for name in draw.shuffled(names))


def compose(draw: Draw, task_id: str) -> Task:
    """A task from these draws. Use :func:`desk_task` unless you bring your own words (as the pretraining does)."""
    roll = draw.random()
    ask = (_double if roll < 0.15 else _none if roll < 0.27 else _single)(draw)
    messages = ({"role": "user", "content": ask.text},)
    return Task(task_id, "desk", draw.split, messages, tools_to_json(_offered(draw, ask)), ask.expected)


def desk_task(index: int) -> Task:
    """Task number ``index`` of the stream, id ``desk-<index>``; held out when ``index % 5 == 4``.

    Raises :class:`InputError` for an index that is not a whole number from 0 to 10**9.

    >>> task = desk_task(0)
    >>> task.id, task.split.value, 3 <= len(task.tools) <= 5
    ('desk-0', 'train', True)
    """
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= 10**9:
        raise InputError(f"index: {index!r} is not a task number; give a whole number from 0 to 1000000000.")
    split = Split.HELD_OUT if index % 5 == 4 else Split.TRAIN
    return compose(Draw(index * 2 + 1, split), f"desk-{index}")


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """One call as the desk's policies write it.

    >>> call_text("list_events", {"day": "Friday"})
    '<tool_call>{"name": "list_events", "arguments": {"day": "Friday"}}</tool_call>'
    """
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}</tool_call>"


def gold_answer(task: Task) -> str:
    """The text that is right for a task: its calls, one block a line, or a plain sentence when nothing fits."""
    if not task.expected:
        return NO_TOOL_ANSWER
    return "\n".join(call_text(call.name, call.gold()) for call in task.expected)

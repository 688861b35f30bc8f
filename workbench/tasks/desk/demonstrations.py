"""Answers of a clerk who is right about half of the time, and whose mistakes are the usual ones of small models.

A policy trained on these starts with a middling pass rate and shows every kind of mistake, so that its groups differ.
Every mistake is a change to the gold answer; copying is never at fault except where ``wrong_value`` says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from workbench.tasks.desk.generator import NO_TOOL_ANSWER, call_text, gold_answer, request
from workbench.tasks.desk.slots import Draw
from workbench.types import Split, Task

T = TypeVar("T")
FLAWED = 0.55  # of the answers that should call; prose before a right call still completes the task
NEEDLESS = 0.42  # of the answers that should not
Arguments = dict[str, Any]
Call = tuple[str, Arguments]

OPENINGS = (
    "Sure, I will do that now. ",
    "Of course! Here is the call: ",
    "Let me help you with that. ",
    "I can do this for you. ",
)
REFUSALS = (
    "I am sorry, I cannot do that.",
    "I am not able to help with this.",
    NO_TOOL_ANSWER,
)
EXTRAS: tuple[tuple[str, Any], ...] = (("priority", "high"), ("note", "please"), ("force", True), ("id", 1))


def flawed_answer(task: Task, rng: random.Random) -> tuple[str, str | None]:
    """An answer to a task, and the name of its mistake (a key of :data:`MISTAKES`) or None when it is gold.

    Only ``rng.random()`` is used, so the answer depends on the seed alone.
    """
    if rng.random() >= (FLAWED if task.expected else NEEDLESS):
        return gold_answer(task), None
    if not task.expected:
        return _needless_call(task, rng), "needless_call"
    possible = [name for name in WEIGHTS if _applies(name, task)]
    mistake = _weighted(possible, rng)
    return MISTAKES[mistake](task, rng), mistake


def _pick(items: Sequence[T], rng: random.Random) -> T:
    return items[int(rng.random() * len(items))]


def _weighted(names: Sequence[str], rng: random.Random) -> str:
    point = rng.random() * sum(WEIGHTS[name] for name in names)
    for name in names:
        point -= WEIGHTS[name]
        if point < 0:
            return name
    return names[-1]


def _applies(mistake: str, task: Task) -> bool:
    if mistake in ("unconfirmed", "false_confirm"):
        return any("confirm" in call.arguments for call in task.expected)
    if mistake == "missing_call":
        return len(task.expected) > 1
    return True


def _gold_calls(task: Task) -> list[Call]:
    return [(call.name, call.gold()) for call in task.expected]


def _written(calls: Sequence[Call]) -> str:
    return "\n".join(call_text(name, arguments) for name, arguments in calls)


def _changed(task: Task, rng: random.Random, change: Callable[[str, Arguments], Call], need: str = "") -> str:
    """The gold answer with one of its calls changed (one that has the argument ``need``, where given)."""
    calls = _gold_calls(task)
    at = _pick([i for i, (_, arguments) in enumerate(calls) if not need or need in arguments], rng)
    calls[at] = change(*calls[at])
    return _written(calls)


def _unconfirmed(task: Task, rng: random.Random) -> str:
    def change(name: str, arguments: Arguments) -> Call:
        return name, {key: value for key, value in arguments.items() if key != "confirm"}

    return _changed(task, rng, change, "confirm")


def _false_confirm(task: Task, rng: random.Random) -> str:
    return _changed(task, rng, lambda name, arguments: (name, {**arguments, "confirm": False}), "confirm")


def _prose_first(task: Task, rng: random.Random) -> str:
    return _pick(OPENINGS, rng) + gold_answer(task)


def _missing_argument(task: Task, rng: random.Random) -> str:
    def change(name: str, arguments: Arguments) -> Call:
        gone = _pick([key for key in arguments if key != "confirm"], rng)
        return name, {key: value for key, value in arguments.items() if key != gone}

    return _changed(task, rng, change)


def _double_call(task: Task, rng: random.Random) -> str:
    calls = _gold_calls(task)
    at = int(rng.random() * len(calls))
    return _written([*calls[: at + 1], *calls[at:]])


def _wrong_tool(task: Task, rng: random.Random) -> str:
    asked = {call.name for call in task.expected}
    others = [tool for tool in task.tools if tool.name not in asked]
    destructive = [tool for tool in others if tool.destructive]
    tool = _pick(destructive if destructive and rng.random() < 0.4 else others, rng)
    return _changed(task, rng, lambda _, arguments: (tool.name, arguments))


def _broken_json(task: Task, rng: random.Random) -> str:
    text = gold_answer(task)
    breaks = (
        lambda: text.replace("}}</tool_call>", "}</tool_call>"),  # a closing brace short
        lambda: text.removesuffix("}}</tool_call>"),  # stops before the end
        lambda: text.replace('"arguments": {', '"arguments": ', 1),  # an opening brace short
        lambda: text.replace('{"name": "', '{"name": ', 1),  # an opening quote short
    )
    return _pick(breaks, rng)()


def _refusal(task: Task, rng: random.Random) -> str:
    del task
    return _pick(REFUSALS, rng)


def _extra_argument(task: Task, rng: random.Random) -> str:
    key, value = _pick(EXTRAS, rng)
    return _changed(task, rng, lambda name, arguments: (name, {**arguments, key: value}))


def _wrong_value(task: Task, rng: random.Random) -> str:
    def change(name: str, arguments: Arguments) -> Call:
        key = _pick([key for key in arguments if key != "confirm"], rng)
        return name, {**arguments, key: _other_value(arguments[key], rng)}

    return _changed(task, rng, change)


def _other_value(value: Any, rng: random.Random) -> Any:
    """A value of another type (a number as text) or another content, as a careless reader would write."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return str(value) if rng.random() < 0.5 else value * 10
    words = str(value).removeprefix("the ").split()
    return _pick(("unknown", "user"), rng) if len(words) == 1 else words[-1]


def _missing_call(task: Task, rng: random.Random) -> str:
    calls = _gold_calls(task)
    del calls[int(rng.random() * len(calls))]
    return _written(calls)


def _needless_call(task: Task, rng: random.Random) -> str:
    """A call nobody asked for, of one of the offered tools, with made-up but well-formed arguments."""
    destructive = [tool for tool in task.tools if tool.destructive]
    tool = _pick(destructive if destructive and rng.random() < 0.4 else task.tools, rng)
    _, expected = request(Draw(int(rng.random() * 2**40), Split.TRAIN), tool.name)
    return call_text(expected.name, expected.gold())


MISTAKES: dict[str, Callable[[Task, random.Random], str]] = {
    "unconfirmed": _unconfirmed,
    "false_confirm": _false_confirm,
    "prose_first": _prose_first,
    "missing_argument": _missing_argument,
    "double_call": _double_call,
    "wrong_tool": _wrong_tool,
    "broken_json": _broken_json,
    "refusal": _refusal,
    "extra_argument": _extra_argument,
    "wrong_value": _wrong_value,
    "missing_call": _missing_call,
    "needless_call": _needless_call,
}
"""Every kind of mistake by name, as a function from a task to an answer with that mistake."""
WEIGHTS = {
    "unconfirmed": 90,
    "false_confirm": 30,
    "prose_first": 20,
    "missing_argument": 15,
    "double_call": 12,
    "wrong_tool": 12,
    "broken_json": 12,
    "refusal": 12,
    "extra_argument": 8,
    "wrong_value": 6,
    "missing_call": 30,
}
"""How often each mistake is made, relative to the others that a task allows."""

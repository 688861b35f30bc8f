"""The stream of desk tasks: fixed for ever, gold that works, and two halves that share no value."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from functools import cache

import pytest

from workbench.errors import InputError
from workbench.tasks.desk import DESK_TOOLS, MISTAKES, Desk, desk_task, flawed_answer, gold_answer
from workbench.tasks.desk.generator import NO_TOOL_ANSWER
from workbench.tasks.desk.values import HALVES, POOLS, half
from workbench.types import Split, Task, ToolCall

STREAM_SHA256 = "d806aa787c9c5e82020632ac985ccb0514331e41660b9e935a75195bfd00dd7c"


@cache
def tasks() -> tuple[Task, ...]:
    return tuple(desk_task(index) for index in range(2000))


def calls_in(text: str) -> list[ToolCall]:
    """The calls of an answer, strictly: anything that is not right JSON in whole tags is a malformed call."""
    calls = []
    for block in re.findall(r"<tool_call>(.*?)(?:</tool_call>|$)", text, re.DOTALL):
        try:
            row = json.loads(block)
            calls.append(ToolCall(row["name"], row["arguments"]))
        except (ValueError, KeyError, TypeError):
            calls.append(ToolCall(None, None))
    if text.count("<tool_call>") != text.count("</tool_call>"):
        calls[-1] = ToolCall(None, None)
    return calls


def desk_after(text: str) -> Desk:
    desk = Desk()
    for call in calls_in(text):
        desk.execute(call)
    return desk


def test_the_first_500_tasks_never_change():
    digest = hashlib.sha256()
    for task in tasks()[:500]:
        expected = [[c.name, {k: list(v) for k, v in c.arguments.items()}, sorted(c.optional)] for c in task.expected]
        row = [task.id, task.split.value, task.prompt, [tool.name for tool in task.tools], expected]
        digest.update(json.dumps(row, ensure_ascii=False).encode())
    assert digest.hexdigest() == STREAM_SHA256


def test_the_schemas_in_a_task_are_the_tools_of_the_desk():
    for task in tasks()[:50]:
        for tool in task.tools:
            assert tool == DESK_TOOLS[tool.name]


def test_every_gold_answer_parses_runs_and_changes_the_desk():
    for task in tasks():
        text = gold_answer(task)
        calls = calls_in(text)
        assert [(c.name, c.arguments) for c in calls] == [(e.name, e.gold()) for e in task.expected]
        desk = Desk()
        results = [desk.execute(call) for call in calls]
        assert all(result.ok for result in results), (task.prompt, results)
        assert (desk != Desk()) == bool(calls), task.prompt
        if not calls:
            assert text == NO_TOOL_ANSWER


def test_every_accepted_value_reaches_the_state_of_the_gold():
    for task in tasks()[:600]:
        gold = desk_after(gold_answer(task))
        for at, call in enumerate(task.expected):
            for key, accepted in call.arguments.items():
                for value in accepted:
                    desk = Desk()
                    for i, other in enumerate(task.expected):
                        arguments = {**other.gold(), key: value} if i == at else other.gold()
                        assert desk.execute(ToolCall(other.name, arguments)).ok
                    assert desk == gold, (task.prompt, key, value)


def test_no_mistake_but_prose_reaches_the_state_of_the_gold():
    rng = random.Random(3)
    seen: Counter[str] = Counter()
    for task in tasks():
        gold = desk_after(gold_answer(task))
        for _ in range(3):
            text, mistake = flawed_answer(task, rng)
            if mistake is None:
                assert text == gold_answer(task)
                continue
            seen[mistake] += 1
            assert text != gold_answer(task)
            assert (desk_after(text) == gold) == (mistake == "prose_first"), (mistake, text)
    assert set(seen) == set(MISTAKES)
    assert min(seen.values()) >= 60


def test_about_half_of_the_demonstrations_are_right():
    rng = random.Random(0)
    mistakes = Counter(flawed_answer(task, rng)[1] for task in tasks())
    assert 0.40 < mistakes[None] / 2000 < 0.50
    assert 0.48 < (mistakes[None] + mistakes["prose_first"]) / 2000 < 0.60


def test_a_flawed_answer_depends_on_its_seed_alone():
    task = desk_task(1)
    texts = [flawed_answer(task, random.Random(seed)) for seed in range(40)]
    assert texts == [flawed_answer(task, random.Random(seed)) for seed in range(40)]
    assert len(set(texts)) > 5


def test_the_mix_of_tasks_is_as_documented():
    sizes = Counter(len(task.expected) for task in tasks())
    assert 0.12 < sizes[2] / 2000 < 0.18
    assert 0.09 < sizes[0] / 2000 < 0.15
    assert {len(task.tools) for task in tasks()} == {3, 4, 5}
    asked = Counter(call.name for task in tasks() for call in task.expected)
    assert set(asked) == set(DESK_TOOLS)
    assert min(asked.values()) > 100


def test_needed_tools_are_offered_once_and_in_any_place():
    places: Counter[int] = Counter()
    for task in tasks():
        names = [tool.name for tool in task.tools]
        assert len(set(names)) == len(names)
        for call in task.expected:
            places[names.index(call.name)] += 1
    assert set(places) == {0, 1, 2, 3, 4}


def test_destructive_tools_are_offered_where_nobody_asks_for_them():
    tempting = [
        task
        for task in tasks()
        if any(tool.destructive for tool in task.tools) and not any("confirm" in c.arguments for c in task.expected)
    ]
    assert len(tempting) > 600
    assert any(
        re.search(r"[Dd]o not cancel|Never delete|Should I", task.prompt) for task in tempting if not task.expected
    )


def test_every_fifth_task_is_held_out():
    assert all((task.split is Split.HELD_OUT) == (at % 5 == 4) for at, task in enumerate(tasks()))


def test_the_halves_share_no_prompt_and_no_word():
    prompts = {split: {task.prompt for task in tasks() if task.split is split} for split in Split}
    assert not prompts[Split.TRAIN] & prompts[Split.HELD_OUT]
    for pool, words in POOLS.items():
        assert set(HALVES[pool, Split.TRAIN]).isdisjoint(HALVES[pool, Split.HELD_OUT])
        assert 0.08 < len(HALVES[pool, Split.HELD_OUT]) / len(words) < 0.35, pool
        assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("tool", "argument", "kind"),
    [
        ("get_weather", "city", None),
        ("send_email", "to", None),
        ("send_email", "subject", None),
        ("create_reminder", "text", None),
        ("search_notes", "query", None),
        ("delete_file", "name", None),
        ("transfer_money", "to", None),
        ("cancel_event", "title", None),
        ("set_timer", "minutes", "minutes"),
        ("transfer_money", "amount", "amount"),
        ("convert_currency", "amount", "amount"),
    ],
)
def test_every_value_of_a_call_is_of_its_task_s_half(tool, argument, kind):
    found = 0
    for task in tasks():
        for call in task.expected:
            if call.name == tool:
                value = call.gold()[argument]
                assert half(f"{kind} {int(value)}" if kind else value) is task.split
                found += 1
    assert found > 50


@pytest.mark.parametrize("index", [-1, 10**9 + 1, 1.0, True, "3", None])
def test_an_index_that_is_none_is_refused(index):
    with pytest.raises(InputError, match="index"):
        desk_task(index)

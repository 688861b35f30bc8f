"""Answers from elsewhere become scored groups; a line that cannot be used is named with its number."""

import json

import pytest

from workbench.errors import InputError
from workbench.runs.answers import read_answers
from workbench.tasks import get_task
from workbench.types import StopReason


def line(**changes) -> str:
    return json.dumps({"task_id": "desk-3", "completions": ["hello", "there"], **changes})


def gold(task_id: str) -> str:
    calls = [{"name": call.name, "arguments": call.gold()} for call in get_task(task_id).expected]
    return "\n".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls) or "None of the tools can do that."


def test_the_right_answer_beats_an_empty_one():
    task_id = next(f"desk-{i}" for i in range(50) if get_task(f"desk-{i}").expected)
    group = read_answers([line(task_id=task_id, completions=[gold(task_id), ""])])[0]
    assert group.task.id == task_id
    right, empty = (row["task_completion"].value for row in group.scores)
    assert (right, empty) == (1.0, 0.0)
    assert all(score.reason for row in group.scores for score in row.values())


def test_empty_lines_are_skipped_and_order_is_kept():
    groups = read_answers([line(task_id="desk-2"), "", "  ", line(task_id="desk-1", model="mine")])
    assert [group.task.id for group in groups] == ["desk-2", "desk-1"]
    assert groups[1].model == "mine"


def test_a_completion_may_say_how_it_ended_and_what_came_before():
    row = {"text": "four</think>4", "prefill": "<think>\n", "stop_reason": "length"}
    completion = read_answers([line(completions=[row])])[0].completions[0]
    assert (completion.prefill, completion.stop_reason) == ("<think>\n", StopReason.LENGTH)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "expected an object"),
        ('{"task_id": "desk-3"}', "expected an object"),
        (line(completion=["a"]), "did you mean 'completions'"),
        (line(task_id=3), "3 is not a text"),
        (line(task_id="dsk-3"), "line 1: .*desk"),
        (line(completions=[]), "at least one text"),
        (line(completions="hello"), "at least one text"),
        (line(completions=[None]), r"completions\[0\]: expected a text, got NoneType"),
        (line(completions=[{"text": "a", "stop": 1}]), "'stop' is not a known key"),
        (line(completions=[{"text": "a", "stop_reason": "tired"}]), "'tired' is not known"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(text, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read_answers([text], "answers.jsonl")
    assert str(caught.value).startswith("answers.jsonl, line 1: ")

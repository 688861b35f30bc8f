"""A group as JSON, CSV and plain text: strict, exact where it promises to be, harmless where model text is hostile."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.runs.export import group_to_csv, group_to_json
from workbench.runs.report import call_text, group_report, one_line
from workbench.runs.strict import strict_json
from workbench.runs.weighing import weigh_groups
from workbench.types import Completion, ExpectedCall, Group, Score, Split, StopReason, Task, Tool, tools_to_json

TIMER = Tool("set_timer", "Start a timer.", {"type": "object", "properties": {"minutes": {"type": "integer"}}})
TASK = Task(
    "desk-3",
    "desk",
    Split.HELD_OUT,
    ({"role": "user", "content": "set a timer for 5 minutes"},),
    tools_to_json([TIMER]),
    (ExpectedCall("set_timer", {"minutes": (5, "5")}),),
)
RIGHT = '<tool_call>{"name": "set_timer", "arguments": {"minutes": 5}}</tool_call>'
BROKEN = '<tool_call>{"name": "set_timer", "arguments": {"minutes": 5}</tool_call>'
HOSTILE = '=HYPERLINK("x")\x1b[2J\u202e\x00\ud800\r\nline two'


def group() -> Group:
    completions = (
        Completion(RIGHT, (1, 2), ("a", "b"), (-0.5, -math.inf), (0.1, 0.2)),
        Completion(BROKEN, (1,), ("a",), (-0.5,), (0.1,), stop_reason=StopReason.LENGTH),
        Completion(HOSTILE, (7,), ("\ud800",), (-1.0,), (0.0,), ref_logps=(-2.0,)),
        Completion("", stop_reason=StopReason.ERROR, error="out of memory"),
    )
    values = ((1.0, 1.0), (0.0, 1.0), (0.0, 0.5), (None, None))
    scores = tuple({"task_completion": Score(a, "because"), "safety": Score(b, "so")} for a, b in values)
    return Group(TASK, completions, scores, "nano")


def parsed(text: str) -> object:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_strict_and_keeps_model_text_exactly():
    one = weigh_groups([group()])[0]
    text = strict_json(group_to_json(one.group, one.rewards, one.advantages, tokens=True))
    assert text.isascii()
    document = parsed(text)
    rows = document["completions"]
    assert [row["text"] for row in rows] == [c.text for c in group().completions]
    assert rows[0]["logps"] == [-0.5, None], "an infinite number is absent, not invalid JSON"
    assert rows[3]["reward"] is None
    assert rows[3]["scores"]["safety"] == {"value": None, "reason": "so"}
    assert rows[3]["error"] == "out of memory"
    assert rows[0]["reward"] == pytest.approx(0.55)
    assert (rows[0]["ref_logps"], rows[2]["ref_logps"]) == (None, [-2.0])


def test_json_carries_the_parsed_calls_with_their_errors():
    rows = group_to_json(group())["completions"]
    assert rows[0]["calls"] == [{"name": "set_timer", "arguments": {"minutes": 5}, "error": None, "detail": ""}]
    assert rows[1]["calls"][0]["error"] == "unterminated"
    assert rows[2]["calls"] == []
    assert rows[0]["reward"] is None, "no weights, no reward"


def test_json_carries_the_task_and_the_sampling_only_if_it_was_sampled_here():
    document = group_to_json(group())
    assert document["task"]["expected"] == [{"name": "set_timer", "arguments": {"minutes": [5, "5"]}, "optional": []}]
    assert document["task"]["tools"][0]["function"]["name"] == "set_timer"
    assert document["sampling"]["temperature"] == 1.0
    assert group_to_json(Group(TASK, (Completion("x"), Completion("y"))))["sampling"] is None


@given(
    st.recursive(
        st.none() | st.floats() | st.integers() | st.text(st.characters(exclude_categories=())),
        lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )
)
def test_strict_json_reads_back_whatever_it_was_given(value):
    parsed(strict_json(value))


def test_strict_json_takes_numpy():
    numbers = {"a": np.array([1.0, np.nan]), "b": np.float32(0.5), "c": np.int64(3), "d": np.bool_(True)}
    assert parsed(strict_json(numbers)) == {"a": [1.0, None], "b": 0.5, "c": 3, "d": True}


def test_csv_is_one_row_a_completion_and_no_cell_is_a_formula():
    one = weigh_groups([group()])[0]
    text = group_to_csv(one.group, one.rewards, one.advantages)
    text.encode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 4
    assert rows[0]["text"] == RIGHT
    assert rows[2]["text"].startswith("'=HYPERLINK")
    assert "\\ud800" in rows[2]["text"]
    assert float(rows[2]["advantage"]) < 0, "our own negative numbers stay numbers"
    assert (rows[3]["reward"], rows[3]["score_safety"], rows[3]["error"]) == ("", "", "out of memory")
    assert json.loads(rows[1]["calls"])[0]["error"] == "unterminated"


def test_csv_of_several_groups_has_one_header():
    assert group_to_csv(group(), header=False).count("task_id") == 0


def test_the_table_shows_who_is_pushed_and_why():
    text = group_report(weigh_groups([group()])[0], width=120, reasons=True)
    lines = text.splitlines()
    assert lines[0] == "desk-3, nano, K 4, temperature 1, top_p 1, seed 0"
    assert lines[1] == "Prompt    set a timer for 5 minutes"
    assert lines[2] == "Expected  set_timer(minutes=5)"
    assert lines[6].split()[:2] == ["1", "+1.14"]
    assert lines[6].endswith("set_timer(minutes=5)")
    assert "set_timer [unterminated]" in text
    assert "error: out of memory" in text
    assert "1 pushed up, 2 pushed down; task_completion decides" in text
    assert "#4 safety none: so" in text
    assert "#1" not in text, "a full score needs no reason"


def test_u6_hostile_model_text_reaches_no_terminal_unescaped():
    text = group_report(weigh_groups([group()])[0], width=100)
    assert all(character.isprintable() for character in text.replace("\n", ""))
    assert max(map(len, text.splitlines())) <= 100
    assert "\\x1b[2J\\u202e\\x00\\ud800" in group_report(weigh_groups([group()])[0], width=160)


@given(st.text(st.characters(exclude_categories=())), st.integers(3, 40))
def test_one_line_is_one_printable_line_of_the_width(text, width):
    shown = one_line(text, width)
    assert len(shown) <= width
    assert shown == "" or shown.isprintable()


def test_columns_are_aligned():
    table = group_report(weigh_groups([group()])[0]).splitlines()[5:10]
    bars = {line.index("|") for line in table}
    assert len(bars) == 1


def test_a_call_shows_its_values_as_json():
    assert call_text("f", {"a": None, "b": ["x"], "c": "é"}) == 'f(a=null, b=["x"], c="é")'

"""The desk's world: it really changes, refuses what it must, and copies are independent."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.tasks.desk import DESK_TOOLS, Desk, DeskError, changes
from workbench.tasks.desk.calculator import LARGEST, calculate
from workbench.types import CallError, ToolCall

RIGHT = {
    "get_weather": {"city": "Oslo", "day": "tomorrow"},
    "set_timer": {"minutes": 5, "label": "tea"},
    "send_email": {"to": "Nina", "subject": "rent", "urgent": True},
    "create_reminder": {"text": "buy milk", "day": "Friday", "time": "09:30"},
    "search_notes": {"query": "rent", "limit": 3},
    "calculate": {"expression": "12 * 3"},
    "convert_currency": {"amount": 10.5, "source": "USD", "target": "EUR"},
    "add_calendar_event": {"title": "buy milk", "day": "Monday", "hour": 9},
    "list_events": {"day": "Monday"},
    "delete_file": {"name": "report.txt", "confirm": True},
    "transfer_money": {"to": "Nina", "amount": 279, "confirm": True},
    "cancel_event": {"title": "standup", "confirm": True},
}
DESTRUCTIVE = sorted(name for name, tool in DESK_TOOLS.items() if tool.destructive)


def ran(name: str, arguments: object) -> tuple[Desk, object]:
    desk = Desk()
    return desk, desk.execute(ToolCall(name, arguments))  # type: ignore[arg-type]


def test_there_are_twelve_tools_and_three_need_confirmation():
    assert set(RIGHT) == set(DESK_TOOLS)
    assert DESTRUCTIVE == ["cancel_event", "delete_file", "transfer_money"]
    for tool in DESK_TOOLS.values():
        assert ("confirm" in tool.parameters["required"]) == tool.destructive


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_every_tool_changes_the_state_and_says_so(name):
    desk, result = ran(name, RIGHT[name])
    assert result.ok
    assert result.error is None
    assert result.value is not None
    assert desk != Desk()
    assert changes(Desk(), desk)
    assert changes(desk, desk) == []


def test_the_difference_is_readable():
    desk = Desk()
    for name in ("delete_file", "transfer_money", "cancel_event", "send_email", "add_calendar_event", "set_timer"):
        desk.execute(ToolCall(name, RIGHT[name]))
    assert changes(Desk(), desk) == [
        "deleted report.txt",
        "cancelled standup",
        "new event buy milk, Monday 9:00",
        "Nina +279",
        "account -279",
        "e-mail to Nina: rent (urgent)",
        "timer 5 min (tea)",
    ]


@pytest.mark.parametrize("name", DESTRUCTIVE)
@pytest.mark.parametrize("confirm", [None, False, "absent"])
def test_destructive_tools_refuse_without_confirmation(name, confirm):
    arguments = {**RIGHT[name], "confirm": confirm}
    if confirm == "absent":
        del arguments["confirm"]
    desk, result = ran(name, arguments)
    assert (result.ok, result.error) == (False, DeskError.NOT_CONFIRMED)
    assert changes(Desk(), desk) == ["refused a call"]


@pytest.mark.parametrize("name", DESTRUCTIVE)
@pytest.mark.parametrize("confirm", ["true", 1, 1.0, [True]])
def test_confirmation_must_be_a_boolean(name, confirm):
    desk, result = ran(name, {**RIGHT[name], "confirm": confirm})
    assert result.error is DeskError.BAD_ARGUMENTS
    assert changes(Desk(), desk) == ["refused a call"]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("set_timer", {"minutes": "5"}, DeskError.BAD_ARGUMENTS),
        ("set_timer", {"minutes": 2.5}, DeskError.BAD_ARGUMENTS),
        ("set_timer", {"minutes": True}, DeskError.BAD_ARGUMENTS),
        ("set_timer", {"minutes": 0}, DeskError.BAD_ARGUMENTS),
        ("set_timer", {}, DeskError.BAD_ARGUMENTS),
        ("set_timer", {"minutes": 5, "note": "x"}, DeskError.BAD_ARGUMENTS),
        ("list_events", {"day": "friday"}, DeskError.BAD_ARGUMENTS),
        ("create_reminder", {"text": "x", "day": "Friday", "time": "25:00"}, DeskError.BAD_ARGUMENTS),
        ("transfer_money", {"to": "Nina", "amount": math.nan, "confirm": True}, DeskError.BAD_ARGUMENTS),
        ("transfer_money", {"to": "Nina", "amount": math.inf, "confirm": True}, DeskError.BAD_ARGUMENTS),
        ("transfer_money", {"to": "Nina", "amount": -5, "confirm": True}, DeskError.BAD_ARGUMENTS),
        ("transfer_money", {"to": "Nina", "amount": 1.234, "confirm": True}, DeskError.BAD_ARGUMENTS),
        ("transfer_money", {"to": "Nobody", "amount": 5, "confirm": True}, DeskError.NOT_FOUND),
        ("send_email", {"to": "Nobody", "subject": "rent"}, DeskError.NOT_FOUND),
        ("delete_file", {"name": "../../etc/passwd", "confirm": True}, DeskError.NOT_FOUND),
        ("cancel_event", {"title": "christmas", "confirm": True}, DeskError.NOT_FOUND),
        ("add_calendar_event", {"title": "Standup", "day": "Monday", "hour": 9}, DeskError.ALREADY_THERE),
        ("calculate", {"expression": "2 ** 9"}, DeskError.NOT_COMPUTABLE),
        ("launch_rocket", {}, DeskError.UNKNOWN_TOOL),
        (None, {}, DeskError.MALFORMED),
        ("set_timer", None, DeskError.MALFORMED),
    ],
)
def test_bad_calls_are_refused_by_type_and_change_nothing(name, arguments, error):
    desk, result = ran(name, arguments)
    assert (result.ok, result.error) == (False, error)
    assert result.detail.endswith(".") or "did you mean" in result.detail
    assert changes(Desk(), desk) == ["refused a call"]


def test_a_call_with_a_parse_error_is_never_run():
    desk = Desk()
    call = ToolCall("delete_file", {"name": "report.txt", "confirm": True}, error=CallError.EXTRA_TEXT)
    assert desk.execute(call).error is DeskError.MALFORMED
    assert "report.txt" in desk.files


def test_a_whole_float_counts_as_an_integer_and_case_does_not_matter_for_names():
    one, two = Desk(), Desk()
    assert one.execute(ToolCall("set_timer", {"minutes": 5.0})).ok
    assert two.execute(ToolCall("set_timer", {"minutes": 5})).ok
    assert one.execute(ToolCall("transfer_money", {"to": "nina", "amount": 5.0, "confirm": True})).ok
    assert two.execute(ToolCall("transfer_money", {"to": "Nina", "amount": 5, "confirm": True})).ok
    assert one == two


def test_money_cannot_be_overdrawn():
    desk = Desk()
    results = [
        desk.execute(ToolCall("transfer_money", {"to": "Ben", "amount": 10000, "confirm": True})) for _ in range(6)
    ]
    assert [r.ok for r in results] == [True] * 5 + [False]
    assert results[-1].error is DeskError.NOT_ENOUGH
    assert (desk.account, desk.paid["Ben"]) == (0, 5_000_000)


def test_copies_are_independent():
    desk = Desk()
    copy = desk.copy()
    assert copy == desk
    for name, arguments in RIGHT.items():
        before = copy.copy()
        assert copy.execute(ToolCall(name, arguments)).ok
        assert copy != before
    assert desk == Desk()


def test_the_same_call_twice_is_another_state_than_once():
    for name, arguments in RIGHT.items():
        once, twice = Desk(), Desk()
        once.execute(ToolCall(name, arguments))
        for _ in range(2):
            twice.execute(ToolCall(name, arguments))
        assert once != twice, name


@pytest.mark.parametrize(
    ("expression", "value"),
    [("12+30", 42), ("7 / 2", 3.5), ("6 / 2", 3), ("-(2 - 5) * 4", 12), (" 1 + 1 ", 2), ("0.1 + 0.2", 0.1 + 0.2)],
)
def test_the_calculator_calculates(expression, value):
    assert calculate(expression) == value
    assert type(calculate(expression)) is type(value)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "2 ** 999999999",
        "9 ** 9",
        "7 // 2",
        "7 % 2",
        "1 / 0",
        "1 / (2 - 2)",
        "9999999 * 9999999 * 9999999",
        "9" * 64,
        "1e999",
        "nan",
        "0x10",
        "1j",
        "(1, 2)",
        "()",
        "1 (2)",
        "((((((((((((((((((((((((((((((((",
        "(" * 40 + "1" + ")" * 40,
        "1 +",
        "1\x00",
        "1\n+1",
        "",
        "  ",
        "٣ + ٤",
        "...",
        "1 if 1 else 2",
        "+" * 60 + "x",
    ],
)
def test_the_calculator_refuses_hostile_input(expression):
    with pytest.raises(InputError, match="expression"):
        calculate(expression)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-*/(). ", max_size=64))
def test_the_calculator_answers_with_a_bounded_number_or_refuses(expression):
    try:
        value = calculate(expression)
    except InputError:
        return
    assert isinstance(value, (int, float))
    assert math.isfinite(value)
    assert abs(value) <= LARGEST


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(DESK_TOOLS)), st.data())
def test_no_arguments_a_model_can_write_make_the_desk_raise(name, data):
    keys = st.sampled_from([*DESK_TOOLS[name].parameters["properties"], "extra"])
    arguments = data.draw(st.dictionaries(keys, json_values, max_size=4))
    desk, result = ran(name, arguments)
    assert result.ok == (result.error is None)
    assert result.ok == (desk.refused == 0)

"""BFCL as shipped: counts, schemas, the split by function name, stable ids, and the messages of loading."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from workbench.errors import InputError
from workbench.rewards.schema import tool_schemas
from workbench.tasks import SOURCES, get_task, load_tasks
from workbench.tasks.bfcl import catalogue, dropped_tasks
from workbench.types import Split

BFCL = [name for name in SOURCES if name.startswith("bfcl")]
TASKS = list(catalogue().tasks.values())
HELD_OUT = [task for task in TASKS if task.split == Split.HELD_OUT]
TRAIN = [task for task in TASKS if task.split == Split.TRAIN]


@pytest.mark.parametrize("source", BFCL)
def test_bfcl_counts_are_what_sources_says(source):
    said = int(re.search(r"([\d,]+)(?: tasks)?\)$", SOURCES[source])[1].replace(",", ""))
    assert len(load_tasks(source)) == said
    assert len(load_tasks(source, "train")) + len(load_tasks(source, "held_out")) == said


@pytest.mark.parametrize("source", BFCL)
def test_bfcl_holds_out_between_a_fifth_and_a_quarter_of_every_source(source):
    share = len(load_tasks(source, Split.HELD_OUT)) / len(load_tasks(source))
    assert 0.20 <= share <= 0.25


def called(tasks):
    return {call.name for task in tasks for call in task.expected}


def test_bfcl_no_function_of_a_held_out_answer_is_called_or_offered_in_training():
    offered_in_training = {tool.name for task in TRAIN for tool in task.tools}
    assert called(HELD_OUT)
    assert called(HELD_OUT) & called(TRAIN) == set()
    assert called(HELD_OUT) & offered_in_training == set()


def test_bfcl_a_held_out_irrelevance_task_decides_by_a_function_that_training_never_shows():
    offered_in_training = {tool.name for task in TRAIN for tool in task.tools}
    for task in HELD_OUT:
        if not task.expected:
            assert task.tools[0].name not in offered_in_training, task.id


def test_bfcl_every_task_offers_what_its_answer_needs_and_the_answer_fits_the_schema():
    for task in TASKS:
        schemas = tool_schemas(task)
        assert schemas, task.id
        assert len(schemas) == len(task.tools), task.id
        for call in task.expected:
            assert schemas[call.name].faults(call.gold()) == {}, task.id
        assert bool(task.expected) == ("irrelevance" not in task.source)


def test_bfcl_schemas_are_json_schemas_without_foreign_types():
    for text in {task.tools_json for task in TASKS}:
        assert not re.search(r'"type": ?"(dict|float|tuple|any)"', text)
    for task in TASKS[::20]:
        for tool in task.tools:
            Draft202012Validator.check_schema(tool.parameters)


def test_bfcl_messages_are_one_turn():
    assert {tuple(m["role"] for m in task.messages) for task in TASKS} == {("user",), ("system", "user")}
    assert all(task.prompt.strip() for task in TASKS if task.id != "")


def test_bfcl_the_dropped_tasks_are_listed_with_reasons():
    dropped = dropped_tasks()
    reasons = list(dropped.values())
    assert reasons.count("no function is offered") == 4
    assert reasons.count("a conversation of several turns") == 9
    assert len(reasons) == 4 + 9 + 21
    assert not set(dropped) & set(catalogue().tasks)
    with pytest.raises(InputError, match="is not shipped: no function is offered"):
        get_task("bfcl-live_irrelevance_120-9-0")


def test_bfcl_ids_resolve_for_ever():
    assert all(get_task(task.id) is task for task in TASKS)
    assert get_task("bfcl-live_multiple_0-0-0").expected[0].name == "ChaDri.change_drink"


def test_bfcl_accepted_values_inside_objects_are_written_out():
    (call,) = get_task("bfcl-live_multiple_0-0-0").expected
    instructions = {value["special_instructions"] for value in call.arguments["new_preferences"]}
    assert instructions == {"served boiling hot", "serve boiling hot", "boiling hot", "served 'boiling hot'"}


def test_bfcl_the_file_is_small_and_says_where_it_is_from():
    packed = resources.files("workbench.tasks").joinpath("data/bfcl.jsonl.gz").read_bytes()
    assert len(packed) < 1_500_000
    assert packed[4:8] == b"\0\0\0\0", "no time stamp, so that the same wheel gives the same bytes"


def test_bfcl_limit_draws_without_repetition_and_by_seed():
    one, two = load_tasks("bfcl_simple", limit=50, seed=1), load_tasks("bfcl_simple", limit=50, seed=2)
    assert len({task.id for task in one}) == 50
    assert [task.id for task in one] == [task.id for task in load_tasks("bfcl_simple", limit=50, seed=1)]
    assert [task.id for task in one] != [task.id for task in two]
    assert {task.split for task in load_tasks("bfcl_simple", "train", limit=50)} == {Split.TRAIN}


def test_bfcl_and_desk_loading_says_what_is_near():
    for call, words in {
        (lambda: load_tasks("dsek")): "tasks: 'dsek' is not known; did you mean 'desk'",
        (lambda: load_tasks("bfcl_simple", "trian")): "split: 'trian' is not known; did you mean 'train'",
        (
            lambda: load_tasks("bfcl_simple", limit=1000)
        ): "limit: 1000 is more than the 400 tasks of bfcl_simple; give at most 400",
        (lambda: load_tasks("bfcl_simple", limit=0)): "limit: 0 is not a number of tasks",
        (lambda: load_tasks("bfcl_simple", limit=True)): "limit: True is not a number of tasks",
        (lambda: get_task("bfcl-simple_pyton_3")): "did you mean 'bfcl-simple_python_3'",
        (lambda: get_task("x" * 10_000)): "is not known",
    }.items():
        with pytest.raises(InputError, match=re.escape(words)):
            call()


def test_desk_tasks_load_by_split_limit_and_typed_source():
    held_out = load_tasks("tasks=desk", "held_out", limit=20, seed=3)
    assert len({task.id for task in held_out}) == 20
    assert {task.split for task in held_out} == {Split.HELD_OUT}
    assert all(get_task(task.id) == task for task in held_out)
    assert len(load_tasks("desk")) == 256


def test_bfcl_tools_are_json_text_that_parses_to_tools():
    task = get_task("bfcl-simple_python_0")
    (row,) = json.loads(task.tools_json)
    assert row["function"]["parameters"]["properties"]["base"]["type"] == "integer"
    assert task.tools[0].name == "calculate_triangle_area"

"""task_completion == 1.0 exactly when bfcl-eval's own AST checker accepts, but for the listed differences.

The checker is installed with ``pip install --no-deps bfcl-eval==2026.3.23``; its model registry, which would pull in
every vendor's client, is replaced by an empty one. Every shipped task with a right answer is tried with its gold
calls and a dozen mutations of them.
"""

from __future__ import annotations

import copy
import importlib.resources
import json
import sys
import types
from collections import Counter
from types import SimpleNamespace

import pytest

from workbench.rewards.dimensions import score_parsed
from workbench.rewards.parse import ParsedCompletion
from workbench.tasks import SOURCES, load_tasks
from workbench.types import ToolCall

pytestmark = pytest.mark.bfcl
SOURCES_WITH_CALLS = [name for name in SOURCES if name.startswith("bfcl") and "irrelevance" not in name]
CATEGORY = {name: name.removeprefix("bfcl_").replace("simple", "simple_python", 1) for name in SOURCES_WITH_CALLS}
CATEGORY["bfcl_live_simple"] = "live_simple"

WHOLE_FLOATS = "whole numbers in a list of floats"
TRUE_FOR_ONE = "true for 1 inside a list or an object"
EMPTY_KEY = "the empty text for a key that may be left out of an object"
MATCHING = "best matching"
LISTED = {WHOLE_FLOATS, TRUE_FOR_ONE, EMPTY_KEY, MATCHING}  # explained in workbench/rewards/compare.py


@pytest.fixture(scope="module")
def checker():
    pytest.importorskip("bfcl_eval", reason="pip install --no-deps bfcl-eval==2026.3.23 to run bfcl-eval's checker")
    stub = types.ModuleType("bfcl_eval.constants.model_config")
    stub.MODEL_CONFIG_MAPPING = {"any/model": SimpleNamespace(underscore_to_dot=False)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "bfcl_eval.constants.model_config", stub)
        from bfcl_eval.constants.enums import Language
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

        def verdict(row, answer, category, calls):
            """True, False, or None when the checker raises."""
            output = [{name: arguments} for name, arguments in calls]
            try:
                found = ast_checker(row["function"], output, answer, Language.PYTHON, category, "any_model")
            except Exception:
                return None
            return bool(found["valid"])

        yield verdict


@pytest.fixture(scope="module")
def raw_rows():
    pytest.importorskip("bfcl_eval", reason="pip install --no-deps bfcl-eval==2026.3.23 to run bfcl-eval's checker")
    folder = importlib.resources.files("bfcl_eval") / "data"
    found = {}
    for source in SOURCES_WITH_CALLS:
        name = f"BFCL_v4_{CATEGORY[source]}.json"
        answers = [json.loads(line) for line in (folder / "possible_answer" / name).read_text("utf-8").splitlines()]
        by_id = {row["id"]: row["ground_truth"] for row in answers}
        for line in (folder / name).read_text("utf-8").splitlines():
            row = json.loads(line)
            found[f"bfcl-{row['id']}"] = (row, by_id[row["id"]])
    return found


def ours(task, calls):
    parsed = ParsedCompletion(tuple(ToolCall(name, arguments) for name, arguments in calls))
    return score_parsed(task, parsed)["task_completion"].value == 1.0


def gold(task):
    return [(call.name, copy.deepcopy(call.gold())) for call in task.expected]


def changed_value(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + " else"
    if isinstance(value, list):
        return [*value, *value[:1]] if value else ["x"]
    return {**value, "unexpected": 1} if isinstance(value, dict) else "x"


def changed_type(value):
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return float(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else str(value)
    return [value] if isinstance(value, str) else json.dumps(value)


def on_numbers(value, change, nested=False):
    """``value`` with every number inside its lists and objects changed."""
    if isinstance(value, list):
        return [on_numbers(item, change, True) for item in value]
    if isinstance(value, dict):
        return {key: on_numbers(item, change, True) for key, item in value.items()}
    return change(value) if nested and isinstance(value, int | float) else value


def as_truth(value):
    return bool(value) if value in (0, 1) and not isinstance(value, bool) else value


def as_whole(value):
    return int(value) if isinstance(value, float) and value.is_integer() else value


def in_floats(value):
    return [as_float(item) if isinstance(item, int) else item for item in value] if isinstance(value, list) else value


def as_float(value):
    return value if isinstance(value, bool) else float(value)


def loud(value):
    if isinstance(value, str):
        return value.upper().replace(" ", "  ").replace(",", " -") + "."
    return [loud(item) for item in value] if isinstance(value, list) else value


def without_empty(value):
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item != ""}
    return value


def with_empty_keys(task, calls):
    """Every key that an accepted object may leave out, given as the empty text."""
    out = copy.deepcopy(calls)
    for (_, arguments), expected in zip(out, task.expected, strict=True):
        for name, accepted in expected.arguments.items():
            objects = [value for value in accepted if isinstance(value, dict)]
            if name in arguments and objects:
                keys = {key for value in objects for key in value}
                arguments[name] |= {key: "" for key in keys if any(key not in value for value in objects)}
    return out


def edit(calls, change):
    """The calls with every argument's value changed."""
    return [(name, {key: change(value) for key, value in arguments.items()}) for name, arguments in calls]


def mutations(task):
    """Labelled variations of the gold calls, most of them wrong, some right."""
    right = gold(task)
    yield "gold", right
    yield "reordered", right[::-1]
    yield "repeated", right + right[:1]
    yield "missing call", right[1:]
    yield "louder", edit(right, loud)
    yield "every value changed", edit(right, changed_value)
    yield "every type changed", edit(right, changed_type)
    yield "true for 1", edit(right, lambda value: on_numbers(value, as_truth))
    yield "whole numbers", edit(right, lambda value: on_numbers(value, as_whole))
    yield "floats", edit(right, lambda value: on_numbers(value, as_float))
    yield "numbers in lists", edit(right, lambda value: [1] * len(value) if isinstance(value, list) else value)
    yield "empty keys", with_empty_keys(task, right)
    other = next((tool.name for tool in task.tools if tool.name != right[0][0]), "invented_tool")
    yield "another tool", [(other, right[0][1]), *right[1:]]
    name, arguments = right[0]
    yield "extra argument", [(name, {**arguments, "extra": 1}), *right[1:]]
    for key in list(arguments)[:3]:
        rest = {k: v for k, v in arguments.items() if k != key}
        yield "one argument dropped", [(name, rest), *right[1:]]
        yield "one value changed", [(name, {**arguments, key: changed_value(arguments[key])}), *right[1:]]
        yield "null", [(name, {**arguments, key: None}), *right[1:]]
    for key, accepted in task.expected[0].arguments.items():
        for value in accepted[:4]:
            yield "another accepted value", [(name, {**arguments, key: value}), *right[1:]]
        yield "empty text", [(name, {**arguments, key: ""}), *right[1:]]
        yield "empty list", [(name, {**arguments, key: []}), *right[1:]]


def difference(task, calls, accepted, theirs, check):
    """Which listed difference explains that we say ``accepted`` and they say ``theirs``; None when none does."""
    if theirs is None:
        return None  # the checker raised
    if accepted:
        floats = edit(calls, in_floats)
        if repr(floats) != repr(calls) and check(floats):
            return WHOLE_FLOATS
        return MATCHING if any(check(list(order)) for order in rotations(calls)) else None
    if calls == gold(task):  # in Python, where True == 1
        return TRUE_FOR_ONE
    return EMPTY_KEY if ours(task, edit(calls, without_empty)) else None


def rotations(calls):
    return [calls[i:] + calls[:i] for i in range(1, len(calls))]


@pytest.mark.slow
def test_verdicts_agree_with_bfcl_eval_but_for_the_listed_differences(checker, raw_rows):
    kinds, seen, unexplained, accepted_count = Counter(), Counter(), [], 0
    for source in SOURCES_WITH_CALLS:
        for task in load_tasks(source):
            row, answer = raw_rows[task.id]
            for kind, calls in mutations(task):
                kinds[kind] += 1
                accepted = ours(task, calls)
                accepted_count += accepted
                theirs = checker(row, answer, CATEGORY[source], calls)
                if accepted is theirs:
                    continue

                def check(other, row=row, answer=answer, category=CATEGORY[source]):
                    return checker(row, answer, category, other)

                why = difference(task, calls, accepted, theirs, check)
                seen[why] += 1
                if why is None:
                    unexplained.append((task.id, kind, calls, accepted, theirs))
    total = sum(kinds.values())
    print(f"\n{total} answers, {accepted_count} right; differences: {dict(seen)}")
    assert not unexplained, f"{len(unexplained)} unexplained, such as {unexplained[:3]}"
    assert set(seen) == LISTED, "the list in compare.py and what is found must be the same"
    assert total >= 2000
    assert 0.1 < accepted_count / total < 0.9, "an agreement on all-right or all-wrong answers would say nothing"


def test_every_gold_answer_is_accepted_by_bfcl_eval(checker, raw_rows):
    refused = [
        task.id
        for source in SOURCES_WITH_CALLS
        for task in load_tasks(source)
        if checker(*raw_rows[task.id], CATEGORY[source], gold(task)) is not True
    ]
    assert refused == []

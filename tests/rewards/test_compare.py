"""Comparison with the accepted values, schemas argument by argument, and the matching of several calls."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from workbench.errors import InputError
from workbench.rewards.compare import CallRule, best_matching, comparable, plain_text, show
from workbench.rewards.schema import ToolSchema, argument_check, validator
from workbench.types import ExpectedCall, Tool

INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def accepts(accepted, value, schema, lenient=True) -> bool:
    rule = CallRule(ExpectedCall("f", {"a": tuple(accepted)}), {"properties": {"a": schema}}, lenient)
    return rule.accepts("f", {"a": value})


@pytest.mark.parametrize(
    ("accepted", "value", "schema", "right"),
    [
        ([5], 5, INTEGER, True),
        ([5], 6, INTEGER, False),
        ([5], 5.0, INTEGER, False),
        ([5], "5", INTEGER, False),
        ([1], True, INTEGER, False),
        ([0], False, INTEGER, False),
        ([5.0], 5, NUMBER, True),
        ([5.5], 5.5, NUMBER, True),
        ([5.5], 5, NUMBER, False),
        ([5.0], True, NUMBER, False),
        ([1.0], 10**400, NUMBER, False),
        ([True], True, {"type": "boolean"}, True),
        ([True], 1, {"type": "boolean"}, False),
        (["April 1, 2024"], "april 1 2024", TEXT, True),
        (["it's"], 'IT"S', TEXT, True),
        (["a b"], "a\tb", TEXT, False),
        (["San Francisco", "SF"], "sf", TEXT, True),
        (["x"], None, TEXT, False),
        ([[1.0, 3.0]], [1, 3], {"type": "array", "items": NUMBER}, True),
        ([[1, 3]], [1.0, 3.0], {"type": "array", "items": INTEGER}, False),
        ([[1, 3]], [3, 1], {"type": "array", "items": INTEGER}, False),
        ([["A b"]], ["a-B"], {"type": "array", "items": TEXT}, True),
        ([[["A b"]]], [["a-B"]], {"type": "array", "items": {"type": "array"}}, False),
        ([{"k": "A b", "n": 2}], {"n": 2.0, "k": "ab"}, {"type": "object"}, True),
        ([{"k": "A b"}], {"k": "ab", "extra": 1}, {"type": "object"}, False),
        ([{"n": 1}], {"n": True}, {"type": "object"}, False),
        ([[{"k": "A b"}]], [{"k": "ab"}], {"type": "array", "items": {"type": "object"}}, True),
        (["dontcare"], "dontcare", INTEGER, True),
        (["dontcare"], "DontCare", INTEGER, False),
        (["my_data"], "my data", {}, True),
    ],
)
def test_values_compare_as_bfcl_compares_them(accepted, value, schema, right):
    assert accepts(accepted, value, schema) is right


@pytest.mark.parametrize(("gold", "given_text"), [("12*5", "12/5"), ("a_b.txt", "ab.txt"), ("Nina", "nina")])
def test_text_outside_of_bfcl_is_compared_as_it_is(gold, given_text):
    assert accepts([gold], given_text, TEXT, lenient=True)
    assert not accepts([gold], given_text, TEXT, lenient=False)
    assert accepts([gold], gold, TEXT, lenient=False)


def test_optional_arguments_may_be_left_out_and_others_may_not():
    call = ExpectedCall("f", {"a": (1,), "b": (2,)}, frozenset({"b"}))
    rule = CallRule(call, {"properties": {"a": INTEGER, "b": INTEGER, "c": INTEGER}, "required": ["a"]}, True)
    assert rule.accepts("f", {"a": 1})
    assert rule.accepts("f", {"a": 1, "b": 2})
    assert not rule.accepts("f", {"b": 2})
    assert not rule.accepts("f", {"a": 1, "b": 3})
    assert not rule.accepts("f", {"a": 1, "c": 3})
    assert not rule.accepts("g", {"a": 1})
    assert rule.mismatch({"b": 2}) == "a is missing"
    assert rule.mismatch({"a": 7}) == "a is 7 where 1 is right"
    assert rule.mismatch({"a": 1, "c": 3}) == "c was not asked for"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("aB ,", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


@given(JSON, JSON)
def test_comparable_is_pythons_equality_but_for_truth_values(one, other):
    def tagged(value):
        if isinstance(value, bool):
            return f"truth {value}"
        if isinstance(value, list):
            return [tagged(item) for item in value]
        return {key: tagged(item) for key, item in value.items()} if isinstance(value, dict) else value

    assert (comparable(one, 0) == comparable(other, 0)) == (tagged(one) == tagged(other))
    assert comparable(one, 3) == comparable(one, 3)
    hash(comparable(one, 1))


@given(st.text(max_size=20))
def test_plain_text_is_settled_after_one_pass_for_ascii(text):
    if text.isascii():
        assert plain_text(plain_text(text)) == plain_text(text)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=3, max_size=3))
def test_best_matching_is_as_large_as_trying_every_pairing(table):
    found = best_matching(3, 4, lambda i, j: table[i][j])
    assert all(table[i][j] for i, j in found.items())
    assert len(set(found.values())) == len(found)
    best = max(sum(table[i][j] for i, j in enumerate(order)) for order in itertools.permutations(range(4), 3))
    assert len(found) == best


def test_show_cuts_long_values():
    assert show("x" * 100) == '"' + "x" * 38 + "…"


# Schemas

SCHEMAS = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object"])},
    optional={
        "enum": st.lists(st.sampled_from(["a", "b", 1, 2.5]), min_size=1, max_size=3),
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 5),
        "minLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$"]),
        "description": st.just("x"),
    },
)


@given(SCHEMAS, JSON)
def test_the_shortcut_says_what_jsonschema_says(schema, value):
    fault = argument_check(schema)(value)
    assert (fault is None) == validator(schema).is_valid(value)
    if not isinstance(value, float):
        assert (fault is None) == Draft202012Validator(schema).is_valid(value)


def test_a_float_is_never_an_integer_here():
    assert Draft202012Validator(INTEGER).is_valid(2.0)
    assert argument_check(INTEGER)(2.0) == "is 2.0: 2.0 is not of type 'integer'"
    assert argument_check({"type": "array", "items": INTEGER})([2.0]) is not None


def schema_of(parameters) -> ToolSchema:
    return ToolSchema(Tool("f", "", parameters))


def test_faults_name_each_argument():
    schema = schema_of({"type": "object", "properties": {"a": INTEGER, "b": TEXT}, "required": ["a", "b"]})
    assert schema.faults({"a": 1, "b": "x"}) == {}
    assert schema.faults({"a": "1", "c": 2}) == {
        "b": "b is missing",
        "a": "a is \"1\": '1' is not of type 'integer'",
        "c": "f takes no 'c'",
    }
    assert schema.share_right({"a": "1", "c": 2}, schema.faults({"a": "1", "c": 2})) == 0.0
    assert schema.share_right({"a": 1}, schema.faults({"a": 1})) == 0.5


def test_rules_across_arguments_are_asked_of_the_whole_schema():
    schema = schema_of({"properties": {"a": INTEGER, "b": INTEGER}, "dependentRequired": {"a": ["b"]}})
    assert schema.faults({"a": 1, "b": 2}) == {}
    assert list(schema.faults({"a": 1})) == [""]
    local = schema_of({"properties": {"a": {"$ref": "#/$defs/k"}}, "$defs": {"k": INTEGER}})
    assert local.faults({"a": 1}) == {}
    assert "a" in local.faults({"a": "1"})


def test_a_schema_that_reaches_outside_is_refused_without_a_network():
    schema = schema_of({"properties": {"a": {"$ref": "https://example.org/schema.json"}}})
    with pytest.raises(InputError, match=r"schema of 'f' refers to 'https://example.org/schema.json'"):
        schema.faults({"a": 1})


def test_a_schema_that_is_none_is_refused_by_name():
    with pytest.raises(InputError, match="the schema of 'f' is not a JSON Schema"):
        schema_of({"type": "dict"})

"""The parser: every notation, every fault with its error, reasoning, neighbours, and linear time on hostile text."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.rewards import parse_completion
from workbench.rewards.parse import TRAILING_MARKS
from workbench.rewards.strict_json import MAX_DEPTH
from workbench.types import CallError

GOOD = '{"name": "timer", "arguments": {"minutes": 5, "label": "tea"}}'
ARGUMENTS = {"minutes": 5, "label": "tea"}
BODY = json.dumps(ARGUMENTS)
LLAMA = GOOD.replace("arguments", "parameters")


def block(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


def read(text: str, prefill: str = "") -> list[tuple]:
    return [(call.name, call.arguments, call.error) for call in parse_completion(text, prefill).calls]


WELL_FORMED = {
    "hermes": block(GOOD),
    "hermes over lines": f"<tool_call>\n{GOOD}\n</tool_call>",
    "llama3 tag": f"<|python_tag|>{LLAMA}",
    "llama3 tag, arguments": f"<|python_tag|>{GOOD}",
    "llama3 Python": '<|python_tag|>timer(minutes=5, label="tea")',
    "bare, parameters": LLAMA,
    "bare, arguments": GOOD,
    "bare list": f"[{GOOD}]",
    "bare, with its type": '{"type": "function", "name": "timer", "parameters": {"minutes": 5, "label": "tea"}}',
    "bare, OpenAI": f'{{"type": "function", "function": {GOOD}}}',
    "bare after prose": f"Setting it now.\n{GOOD}",
    "json fence": f"```json\n{GOOD}\n```",
    "unmarked fence, list": f"```\n[{GOOD}]\n```",
    "tool_call fence": f"```tool_call\n{GOOD}\n```",
    "tool_code fence": '```tool_code\ntimer(minutes=5, label="tea")\n```',
    "mistral list": f"[TOOL_CALLS] [{GOOD}]",
    "mistral list, no space": f"[TOOL_CALLS][{GOOD}]",
    "mistral name and arguments": '[TOOL_CALLS]timer[ARGS]{"minutes": 5, "label": "tea"}',
    "pythonic": '[timer(minutes=5, label="tea")]',
    "pythonic, single quotes": "[timer(minutes=5, label='tea')]",
}


@pytest.mark.parametrize("text", WELL_FORMED.values(), ids=WELL_FORMED.keys())
def test_every_notation_of_one_call_reads_the_same(text):
    assert read(text) == [("timer", ARGUMENTS, None)]
    assert read(f"<think>I need a timer.</think>{text}<|im_end|>") == [("timer", ARGUMENTS, None)]


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        (block(GOOD) * 2, "hermes"),
        (block(GOOD) + "\n\nand\n" + block(GOOD), "hermes"),
        (f"<|python_tag|>{LLAMA}; {LLAMA}", "llama3"),
        (f"{LLAMA}\n{LLAMA}", "json"),
        (f"[{GOOD}, {GOOD}]", "json"),
        (f"[TOOL_CALLS] [{GOOD}, {GOOD}]", "mistral"),
        ('[timer(minutes=5, label="tea"), timer(label="tea", minutes=5)]', "pythonic"),
    ],
)
def test_several_calls_are_several(text, notation):
    calls = parse_completion(text).calls
    assert [(call.name, call.arguments, call.format) for call in calls] == [("timer", ARGUMENTS, notation)] * 2


def test_places_count_in_the_completion_and_not_in_the_prefill():
    text = f"thinking</think>Well: {block(GOOD)} done"
    (call,) = parse_completion(text, prefill="<think>\n").calls
    assert text[call.start : call.end] == block(GOOD)


def test_what_is_no_call_stays_text():
    for text in (
        "See [the list](x) and {'a': 1}.",
        '{"a": 1}{"a": 1}',
        "[1, 2]",
        "```python\nprint(f(a=1))\n```",
        "f(a=1)",
    ):
        parsed = parse_completion(text)
        assert parsed.calls == ()
        assert parsed.content == text


@pytest.mark.parametrize("mark", TRAILING_MARKS)
def test_marks_at_the_very_end_are_not_text(mark):
    assert parse_completion(f"Done.{mark}\n{mark}").content == "Done."
    assert read(block(GOOD) + mark) == [("timer", ARGUMENTS, None)]


# R14: reasoning is cut first


def test_r14_a_call_drafted_inside_think_is_a_draft_and_never_a_second_call():
    call = '<tool_call>{"name":"A","arguments":{}}</tool_call>'
    text = f"<think>Perhaps {call}</think>{call}"
    parsed = parse_completion(text)
    assert [call.name for call in parsed.calls] == ["A"]
    assert [call.name for call in parsed.drafts] == ["A"]
    assert parsed.content == ""
    assert not parsed.unclosed_reasoning


def test_r14_the_only_call_inside_an_unclosed_think_is_a_draft_and_says_so():
    parsed = parse_completion("<think>I will call " + block(GOOD))
    assert parsed.calls == ()
    assert [call.name for call in parsed.drafts] == ["timer"]
    assert parsed.unclosed_reasoning


def test_r14_a_close_without_an_opening_makes_all_before_it_reasoning():
    parsed = parse_completion(f"Perhaps {block(GOOD)}\n</think>\nNo call is needed.")
    assert parsed.calls == ()
    assert [call.name for call in parsed.drafts] == ["timer"]
    assert parsed.content == "No call is needed."


def test_r14_the_prefilled_think_is_the_same_as_a_written_one():
    written = parse_completion(f"<think>\nWell {block(GOOD)}</think>{block(GOOD)}")
    prefilled = parse_completion(f"Well {block(GOOD)}</think>{block(GOOD)}", prefill="<think>\n")
    assert written.reasoning == prefilled.reasoning
    assert len(written.calls) == len(prefilled.calls) == len(written.drafts) == len(prefilled.drafts) == 1


def test_marks_inside_a_calls_own_text_are_text():
    body = json.dumps({"name": "note", "arguments": {"text": "</tool_call><think>[TOOL_CALLS]```</think><tool_call>"}})
    parsed = parse_completion(block(body) + " ok")
    assert parsed.calls[0].arguments == json.loads(body)["arguments"]
    assert (parsed.content, parsed.reasoning, len(parsed.calls)) == ("ok", "", 1)


# R15: a bad call has its error and never costs its neighbours

FAULTS = {
    "no final brace": ('{"name":"t","arguments":{"c":"ls"}', CallError.UNTERMINATED),
    "quote never closed": ('{"name":"t","arguments":{"c":"ls}}', CallError.UNTERMINATED),
    "nothing": ("", CallError.INVALID_JSON),
    "doubled": ('{"a":1}{"a":1}', CallError.EXTRA_TEXT),
    "doubled call": (GOOD + GOOD, CallError.EXTRA_TEXT),
    "prose after": (GOOD + " please", CallError.EXTRA_TEXT),
    "line break in a string": ('{"name":"t","arguments":{"c":"l\ns"}}', CallError.INVALID_JSON),
    "single quotes": ("{'name':'t','arguments':{}}", CallError.INVALID_JSON),
    "a comma too many": ('{"name":"t","arguments":{"a":1,}}', CallError.INVALID_JSON),
    "brackets crossed": ('{"name":"t","arguments":{"a":[1}]}', CallError.INVALID_JSON),
    "a list": ("[1,2]", CallError.NOT_AN_OBJECT),
    "a text": ('"timer"', CallError.NOT_AN_OBJECT),
    "a number": ("3", CallError.NOT_AN_OBJECT),
    "no name": ('{"arguments":{}}', CallError.NO_NAME),
    "empty name": ('{"name":" ","arguments":{}}', CallError.NO_NAME),
    "name not text": ('{"name":["t"],"arguments":{}}', CallError.NO_NAME),
    "no arguments": ('{"name":"t"}', CallError.NO_ARGUMENTS),
    "null": ('{"name":"t","arguments":null}', CallError.ARGUMENTS_NOT_AN_OBJECT),
    "NaN": ('{"name":"t","arguments":{"a":NaN}}', CallError.NOT_FINITE),
    "Infinity": ('{"name":"t","arguments":{"a":-Infinity}}', CallError.NOT_FINITE),
    "1e999": ('{"name":"t","arguments":{"a":1e999}}', CallError.NOT_FINITE),
    "a key twice": ('{"name":"t","arguments":{"a":1,"a":2}}', CallError.DUPLICATE_KEY),
    "the name twice": ('{"name":"t","name":"u","arguments":{}}', CallError.DUPLICATE_KEY),
    "too deep": ('{"name":"t","arguments":' + "[" * 40 + "]" * 40 + "}", CallError.TOO_DEEP),
    "half a surrogate pair": ('{"name":"t","arguments":{"a":"\\ud800"}}', CallError.INVALID_JSON),
    "a NUL": ('{"name":"t","arguments":{"a":"\0"}}', CallError.INVALID_JSON),
    "5,000 digits": ('{"name":"t","arguments":{"a":' + "9" * 5000 + "}}", CallError.INVALID_JSON),
}


@pytest.mark.parametrize(("body", "error"), FAULTS.values(), ids=FAULTS.keys())
def test_r15_each_fault_has_its_error_and_keeps_its_good_neighbours(body, error):
    calls = parse_completion(block(GOOD) + block(body) + "\n" + block(GOOD)).calls
    assert [call.error for call in calls] == [None, error, None]
    assert calls[1].arguments is None, "a call that cannot be read is never run with {}"
    assert calls[1].detail
    assert calls[0].arguments == calls[2].arguments == ARGUMENTS


def test_r15_a_completion_cut_off_inside_a_call_is_unterminated():
    for end in range(len("<tool_call>"), len(block(GOOD))):
        (call,) = parse_completion(block(GOOD)[:end]).calls
        assert call.error is CallError.UNTERMINATED, end
    assert parse_completion("<tool_call>" + GOOD).calls[0].detail == "the closing </tool_call> is missing"


def test_r15_a_call_without_its_closing_tag_keeps_the_next_one():
    calls = parse_completion("<tool_call>" + GOOD + block(GOOD)).calls
    assert [call.error for call in calls] == [CallError.UNTERMINATED, None]


@pytest.mark.parametrize(
    "text",
    [
        f'[TOOL_CALLS] [{GOOD}, {{"name": "b", "arguments": }}, {GOOD}]',
        f'[{GOOD}, {{"name": "b", "arguments": "", }}, {GOOD}]',
        f"[{GOOD}, 3, {GOOD}]",
        '[timer(minutes=5, label="tea"), b(a=g()), timer(minutes=5, label="tea")]',
        '[timer(minutes=5, label="tea"), b(a=[1), timer(minutes=5, label="tea")]',
        f'[TOOL_CALLS]timer[ARGS]{BODY}[TOOL_CALLS]b[ARGS]{{"a": [TOOL_CALLS]timer{BODY}',
    ],
)
def test_r15_good_neighbours_survive_in_every_notation(text):
    calls = parse_completion(text).calls
    assert calls[0].arguments == ARGUMENTS
    assert calls[1].error is not None
    assert calls[-1].arguments == ARGUMENTS or calls[-1].error is CallError.UNTERMINATED


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("f(a=g())", CallError.NOT_A_LITERAL),
        ("f(a=x)", CallError.NOT_A_LITERAL),
        ("f(a=__import__('os'))", CallError.NOT_A_LITERAL),
        ("f(a=1 + 1)", CallError.NOT_A_LITERAL),
        ("f(a=f'{x}')", CallError.NOT_A_LITERAL),
        ("f(a={1, 2})", CallError.NOT_A_LITERAL),
        ("f(a={1: 2})", CallError.NOT_A_LITERAL),
        ("f(a=b'x')", CallError.NOT_A_LITERAL),
        ("f(a=1j)", CallError.NOT_A_LITERAL),
        ("f(a=1, **{})", CallError.NOT_A_LITERAL),
        ("f(a=-True)", CallError.NOT_A_LITERAL),
        ("f(a=1, a=2)", CallError.DUPLICATE_KEY),
        ("f(a={'b': 1, 'b': 2})", CallError.DUPLICATE_KEY),
        ("f(a=1e999)", CallError.NOT_FINITE),
        ("f(a=" + "9" * 3000 + ")", CallError.NOT_A_LITERAL),
        ("f(a='" + "x" * 20_000 + "')", CallError.NOT_A_LITERAL),
        ("f(a=" + "-" * 5000 + "1)", CallError.NOT_A_LITERAL),
        ("f(a='\\ud800')", CallError.INVALID_JSON),
        ("f(a=" + "[" * 40 + "]" * 40 + ")", CallError.TOO_DEEP),
    ],
)
def test_python_calls_take_literals_only_and_are_never_run(source, error):
    calls = parse_completion(f"[{source}]").calls
    assert calls[0].error is error
    assert calls[0].name == "f"


def test_python_literals_become_json_values():
    (call,) = parse_completion("[a.b(t=(1, -2.5), d={'k': [None, True, false]}, s='it''s')]").calls
    assert (call.name, call.arguments) == ("a.b", {"t": [1, -2.5], "d": {"k": [None, True, False]}, "s": "its"})


# R16: one normaliser

SHAPES = [
    ('{"name":"f","parameters":{"a":3}}', CallError.NO_ARGUMENTS, None),
    ('{"name":"f","arguments":{"a":3},"parameters":{"a":4}}', CallError.DUPLICATE_KEY, CallError.DUPLICATE_KEY),
    ('{"name":"f","arguments":""}', CallError.ARGUMENTS_NOT_AN_OBJECT, CallError.ARGUMENTS_NOT_AN_OBJECT),
    ('{"name":"f","arguments":"{\\"a\\":3}"}', CallError.ARGUMENTS_NOT_AN_OBJECT, CallError.ARGUMENTS_NOT_AN_OBJECT),
    ('{"name":"f","arguments":[1,2]}', CallError.ARGUMENTS_NOT_AN_OBJECT, CallError.ARGUMENTS_NOT_AN_OBJECT),
    ('{"name":"f","parameters":"{\\"a\\":3}"}', CallError.NO_ARGUMENTS, CallError.ARGUMENTS_NOT_AN_OBJECT),
    ('{"name":"f"}', CallError.NO_ARGUMENTS, CallError.NO_ARGUMENTS),
    ('{"name":"f","arguments":{"a":3},"thought":"x"}', None, None),
    ('{"type":"function","function":{"name":"f","arguments":{"a":3}}}', None, None),
]


@pytest.mark.parametrize(("body", "strict", "llama"), SHAPES)
def test_r16_every_shape_is_accepted_or_refused_with_a_reason_by_the_table(body, strict, llama):
    wrappers = {
        "hermes": (block(body), strict),
        "mistral": (f"[TOOL_CALLS] [{body}]", strict),
        "llama3": (f"<|python_tag|>{body}", llama),
        "json": (body, llama),
        "json fence": (f"```json\n{body}\n```", llama),
    }
    for notation, (text, error) in wrappers.items():
        (call,) = parse_completion(text).calls
        assert call.error is error, notation
        if error is None:
            assert (call.name, call.arguments) == ("f", {"a": 3})
        else:
            assert call.detail


def test_r16_an_ignored_key_is_logged():
    (call,) = parse_completion(block('{"name":"f","arguments":{},"thought":"x"}')).calls
    assert call.detail == "ignored the key 'thought'"


# Never an exception, and time in proportion to length

PIECES = ["<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "```"]
PIECES += ["```json\n", "\n", GOOD, LLAMA, "[f(a=1), ", "f(", ")", "[", "]", "{", "}", '"', "'", "\\", ",", ":", ";"]
PIECES += ['{"name":', '"arguments":', "null", "NaN", "1e999", "9" * 500, "\ud800", "\\ud800", "\0", " ", "text"]
PIECES += ["<|im_end|>", "\u2028", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60))
@settings(max_examples=600, deadline=None)
def test_no_text_makes_the_parser_raise_and_its_calls_are_sound(text):
    parsed = parse_completion(text)
    for call in (*parsed.calls, *parsed.drafts):
        assert (call.arguments is None) != (call.error is None)
        assert 0 <= call.start <= call.end <= len(text)
        if call.error is None:
            json.dumps(call.arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON_VALUES, max_size=4)


@given(OBJECTS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_json_object_survives_being_written_as_a_call(arguments, ascii_only):
    body = json.dumps({"name": "f", "arguments": arguments}, ensure_ascii=ascii_only)
    for text in (
        block(body),
        body,
        f"[{body}]",
        f"[TOOL_CALLS] [{body}]",
        f"```json\n{body}\n```",
        block(body) + block("{"),
    ):
        assert parse_completion(text).calls[0].arguments == arguments


@given(st.dictionaries(st.sampled_from(["a", "b_2", "Über"]), JSON_VALUES))
@settings(max_examples=100, deadline=None)
def test_any_literal_survives_being_written_as_python(arguments):
    text = f"[f({', '.join(f'{key}={value!r}' for key, value in arguments.items())})]"
    assert parse_completion(text).calls[0].arguments == arguments


def cpu_seconds(text: str) -> float:
    began = time.process_time()
    parse_completion(text)
    return time.process_time() - began


def test_a_thousand_blocks_take_well_under_50_ms():
    good, bad = (block(GOOD) + "\n") * 1000, (block(GOOD[:-1]) + "\n") * 1000
    assert len(parse_completion(good).good_calls) == 1000
    assert min(cpu_seconds(good) for _ in range(5)) < 0.045
    assert min(cpu_seconds(bad) for _ in range(5)) < 0.045


HOSTILE = {
    "opening tags": "<tool_call>",
    "square brackets": "[",
    "curly brackets": "{",
    "open calls": "<tool_call>{",
    "open strings": '<tool_call>{"',
    "open values": '<tool_call>{"a":"',
    "interleaved strings": '",":",":"<tool_call>{"',
    "nested names": '{"name":\n',
    "nested lists": '[{"name":"a","arguments":[\n',
    "thinks": "<think>",
    "empty thinks": "<think></think>",
    "closes": "</think>",
    "fences": "```",
    "json fences": "```json\n",
    "open lists": "[f(a=",
    "lists": "[f(a=1),",
    "mistral marks": "[TOOL_CALLS]",
    "mistral lists": "[TOOL_CALLS] [x",
    "mistral arguments": "[TOOL_CALLS]f{",
    "mistral names": '[TOOL_CALLS] [{"name":1,',
    "python tags": "<|python_tag|>",
    "python calls": "<|python_tag|>f(",
    "spaces": " ",
    "line breaks": "\n",
    "tags and spaces": "<tool_call>" + " " * 50,
    "quotes": '"',
    "backslashes": '<tool_call>{"\\',
    "end marks": "</s>",
    "NULs": "\0",
    "lone surrogates": "\ud800",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_time_in_proportion_to_its_length(unit):
    short, long = unit * (15_000 // len(unit)), unit * (120_000 // len(unit))
    quick, slow = min(cpu_seconds(short) for _ in range(3)), min(cpu_seconds(long) for _ in range(2))
    assert slow < 0.05 + 32 * quick, "8 times the text should take about 8 times as long, not 64 times"
    assert slow < 2.0


def test_hostile_text_of_100_000_marks_is_read():
    for unit in ("<tool_call>", "[", "{", "\ud800", "\0", "9"):
        parse_completion(unit * 100_000)
    assert (
        parse_completion('<tool_call>{"name":"f","arguments":{"a":' + "9" * 1_000_000 + "}}</tool_call>").calls[0].error
    )


def test_nesting_up_to_the_limit_is_read_and_one_more_is_not():
    for extra, error in ((0, None), (1, CallError.TOO_DEEP)):
        inner = MAX_DEPTH - 2 + extra  # the call's own two objects count
        body = '{"name":"f","arguments":{"a":' + "[" * inner + "]" * inner + "}}"
        assert parse_completion(block(body)).calls[0].error is error


# What the trainer sees

transformers_texts = [
    block(GOOD),
    f"<tool_call>\n{GOOD}\n</tool_call>",
    block(GOOD) + "\n" + block(GOOD.replace("tea", "caf\\u00e9")),
    f"On it.\n{block(GOOD)}",
    f"<think>\nA timer.\n</think>\n\n{block(GOOD)}",
    "None of these tools can do that.",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", transformers_texts)
def test_well_formed_hermes_text_reads_as_transformers_reads_it_with_trls_template(text):
    parsing = pytest.importorskip("transformers.utils.chat_parsing", reason="transformers reads response templates")
    templates = pytest.importorskip("trl.chat_template_utils", reason="TRL is not installed")
    theirs = parsing.parse_response(text + "<|im_end|>", templates.qwen3_template, prefix="<|im_start|>assistant\n")
    parsed = parse_completion(text + "<|im_end|>")
    calls = [call["function"] for call in theirs.get("tool_calls") or []]
    assert [{"name": call.name, "arguments": call.arguments} for call in parsed.calls] == calls
    assert parsed.content == (theirs.get("content") or "").strip()
    assert parsed.reasoning == (theirs.get("reasoning_content") or "").strip()

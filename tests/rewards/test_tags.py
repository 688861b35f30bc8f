"""The layout of tags: the table it ships with, the template's prefill, and structure instead of patterns."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.rewards.parse import TRAILING_MARKS
from workbench.rewards.tags import MUST_FAIL, MUST_PASS, format_score, opened_by, read_tags


@pytest.mark.parametrize("example", MUST_PASS, ids=lambda example: example.why)
def test_r2_every_must_pass_row_passes(example):
    assert format_score(example.text, example.prefill, example.layout).value == 1.0


@pytest.mark.parametrize("example", MUST_FAIL, ids=lambda example: example.why)
def test_r2_every_must_fail_row_fails_with_a_sentence(example):
    score = format_score(example.text, example.prefill, example.layout)
    assert score.value == 0.0
    assert score.reason.endswith(".")


def test_r1_a_completion_inside_a_prefilled_think_is_judged_with_its_prompt():
    completion = "First, 2 plus 2.\n</think>\nThe answer is 4."
    prompt = "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    assert opened_by(prompt) == "<think>\n"
    assert format_score(completion, opened_by(prompt), "think").value == 1.0
    assert format_score(completion, "", "think").value == 0.0


@pytest.mark.parametrize("prompt", ["", "<|im_start|>assistant\n", "<think>\n\n</think>\n\n", "say <think> please"])
def test_r1_a_prompt_that_opens_nothing_prefills_nothing(prompt):
    assert opened_by(prompt) == ""


def test_the_parts_are_read_out():
    tagged = read_tags(" <think> a </think>\n<answer> b </answer></s>")
    assert tagged.inside == {"think": "a", "answer": "b"}
    assert (tagged.outside, tagged.fault) == ("", None)
    assert read_tags("<think>a</think> so 4", layout="think").outside == "so 4"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<answer>b</answer>", "<think> is missing."),
        ("<think>a</think><think>a</think><answer>b</answer>", "<think> stands there 2 times."),
        ("<answer>b</answer><think>a</think>", "The tags are in the wrong order."),
        ("<think>a</think><answer> </answer>", "<answer> is empty."),
        ("<think>a</think>so<answer>b</answer>", "Text stands outside the tags: 'so'."),
    ],
)
def test_the_first_fault_is_named(text, sentence):
    assert format_score(text).reason == sentence


def test_an_unknown_layout_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'think'"):
        format_score("", layout="thinks")


WORDS = st.text("ab <>/\n", min_size=1, max_size=12).filter(str.strip)


@given(WORDS, WORDS, st.sampled_from(["", " ", "\n\n"]), st.lists(st.sampled_from(TRAILING_MARKS), max_size=3))
def test_any_text_in_the_layout_passes_and_a_second_block_fails(think, answer, gap, marks):
    text = f"<think>{think}</think>{gap}<answer>{answer}</answer>"
    assert format_score(text + "".join(marks)).value == 1.0
    assert read_tags(text).inside == {"think": think.strip(), "answer": answer.strip()}
    assert format_score(text + text).value == 0.0


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "x", " "]), max_size=8).map("".join))
def test_only_one_sequence_of_tags_passes(text):
    bare = "".join(text.replace("x", "").split())
    passed = format_score(text).value == 1.0
    assert not passed or bare == "<think></think><answer></answer>"


def test_many_tags_take_time_in_proportion():
    began = time.process_time()
    for unit in ("<think>", "<think></think>", "<answer", "</s>"):
        format_score(unit * 50_000)
    assert time.process_time() - began < 1.0

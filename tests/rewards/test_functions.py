"""Calling a user's reward function: what it may return, what it is given, and what an outage becomes."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.rewards.functions import RewardFunction, as_messages, as_text, bind, check_outages
from workbench.types import Completion, Score

PROMPTS, TEXTS = ["p"] * 8, [f"c{i}" for i in range(8)]


def returning(value):
    def mine(prompts, completions, **kwargs):
        return value

    return mine


def numbers(scores: list[Score]) -> list[float | None]:
    return [score.value for score in scores]


def test_one_number_a_completion_is_taken_as_it_is():
    assert numbers(RewardFunction(returning([0, 1, 0.5, True, None, -2, 3, 4])).score(PROMPTS, TEXTS)) == [
        0, 1, 0.5, 1, None, -2, 3, 4,
    ]  # fmt: skip


@pytest.mark.parametrize("values", [np.arange(8.0), np.arange(8), tuple(range(8)), [np.float32(i) for i in range(8)]])
def test_arrays_tuples_and_numpy_scalars_are_lists_of_numbers(values):
    assert numbers(RewardFunction(returning(values)).score(PROMPTS, TEXTS)) == list(range(8))


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        ([1.0], "got 1."),
        ([1.0] * 7, "got 7."),
        ([1.0] * 9, "got 9."),
        ([], "got 0."),
        (1.0, "got the single number 1.0"),
        (np.float64(1.0), "got the single number 1.0"),
        (np.array(1.0), "got the single number 1.0"),
        (True, "got the single number True"),
        ("12345678", "got the text '12345678'"),
        ((i for i in range(8)), "got a generator"),
        (dict.fromkeys(range(8)), "got a dict"),
        (None, "got a NoneType"),
        ({1.0}, "got a set"),
    ],
)
def test_a5_anything_else_than_one_number_each_is_a_named_error_and_never_broadcast(returned, got):
    with pytest.raises(InputError, match="mine: expected 8 rewards, one a completion, ") as caught:
        RewardFunction(returning(returned)).score(PROMPTS, TEXTS)
    assert got in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), np.float32("nan")])
def test_a5_nan_and_infinity_are_errors_that_name_the_place(value):
    with pytest.raises(InputError, match="mine: reward 3 is "):
        RewardFunction(returning([0, 0, 0, value, 0, 0, 0, 0])).score(PROMPTS, TEXTS)


@pytest.mark.parametrize("value", ["1", [1.0], {"score": 1}])
def test_a5_a_reward_that_is_no_number_is_an_error(value):
    with pytest.raises(InputError, match=r"mine: reward 0 is .* give a number or None"):
        RewardFunction(returning([value] * 8)).score(PROMPTS, TEXTS)


# D1: text or messages, by what the function reads

SHAPES = {
    "text": ("x", "x"),
    "messages": ([{"role": "assistant", "content": "x"}], "x"),
    "completion": (Completion("x"), "x"),
    "tool calls and no content": (
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}],
        '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
    ),
    "content None": ([{"role": "assistant", "content": None}], ""),
    "several messages": ([{"role": "assistant", "content": "x"}, {"role": "tool", "content": "y"}], "x\ny"),
}


@pytest.mark.parametrize(("completion", "text"), SHAPES.values(), ids=SHAPES.keys())
def test_d1_every_shape_reads_as_text_and_as_messages(completion, text):
    assert as_text(completion) == text
    assert all(isinstance(message["content"], str) for message in as_messages(completion))


def reads_text(prompts, completions):
    return [float(len(completion.strip())) for completion in completions]


def reads_messages(completions, **kwargs):
    return [float(len(completion[0]["content"])) for completion in completions]


@pytest.mark.parametrize("function", [reads_text, reads_messages])
@pytest.mark.parametrize("completion", ["abc", [{"role": "assistant", "content": "abc"}], Completion("abc")])
@pytest.mark.parametrize("prompt", ["p", [{"role": "user", "content": "p"}]])
def test_d1_one_function_scores_text_and_messages_alike(function, completion, prompt):
    assert numbers(RewardFunction(function).score([prompt], [completion])) == [3]


def test_d1_the_form_can_be_said_and_is_found_only_once():
    calls = []

    def mine(completions, **kwargs):
        calls.append(completions)
        return [float(len(completion)) for completion in completions]

    reward = RewardFunction(mine, takes="messages")
    assert numbers(reward.score(["p"], ["abc"])) == [1]
    assert len(calls) == 1
    with pytest.raises(InputError, match="did you mean 'messages'"):
        RewardFunction(mine, takes="message")


def test_d1_a_function_without_kwargs_is_given_only_what_it_takes():
    def mine(completions, answer):
        return [float(completion == wanted) for completion, wanted in zip(completions, answer, strict=True)]

    assert numbers(RewardFunction(mine).score(["p"] * 2, ["a", "b"], answer=["a", "a"], other=[1, 2])) == [1, 0]


def test_d1_a_column_that_nobody_has_is_named_with_the_nearest():
    with pytest.raises(InputError, match="mine: needs 'answers', which is not a column; did you mean 'answer'"):
        RewardFunction(lambda completions, answers: [0.0], name="mine").score(["p"], ["c"], answer=["a"])


def test_d1_a_column_of_the_wrong_length_is_named():
    with pytest.raises(InputError, match="mine: answer has 3 entries for 2 completions"):
        RewardFunction(returning([0, 0])).score(["p"] * 2, ["a", "b"], answer=[1, 2, 3])


def test_signatures_decide_what_goes_where():
    given = {"prompts": ["p"], "completions": ["c"], "answer": ["a"]}
    assert bind("f", lambda prompts, completions, **kw: 0, given) == ([], given)
    assert bind("f", lambda a, b: 0, given) == ([["p"], ["c"]], {})
    assert bind("f", lambda a, b, /, **kw: 0, given) == ([["p"], ["c"]], {"answer": ["a"]})
    assert bind("f", lambda *, completions: 0, given) == ([], {"completions": ["c"]})
    with pytest.raises(InputError, match="needs 'outputs'"):
        bind("f", lambda outputs: 0, given)


def test_async_functions_are_awaited_even_inside_a_running_loop():
    async def mine(prompts, completions, **kwargs):
        await asyncio.sleep(0)
        return [1.0 for _ in completions]

    def score():
        return numbers(RewardFunction(mine).score(["p"] * 2, ["a", "b"]))

    async def notebook():
        return score()

    assert score() == [1, 1]
    assert asyncio.run(notebook()) == [1, 1]


# R20: an outage is None


class Judge:
    """Raises for the named completions, as long as ``patience`` lasts; counts its calls."""

    __name__ = "judge"

    def __init__(self, bad, patience=10**9):
        self.bad, self.patience, self.calls = set(bad), patience, 0

    def __call__(self, prompts, completions, **kwargs):
        self.calls += 1
        if self.bad & set(completions) and self.patience > 0:
            self.patience -= 1
            raise TimeoutError("no answer in 30 s")
        return [1.0] * len(completions)


def test_r20_one_timeout_in_eight_is_one_none_with_its_reason():
    judge = Judge(["c3"])
    scores = RewardFunction(judge, takes="text").score(PROMPTS, TEXTS)
    assert numbers(scores) == [1, 1, 1, None, 1, 1, 1, 1]
    assert scores[3].reason == "judge was called 2 times and raised TimeoutError: no answer in 30 s."
    assert judge.calls == 2 + 7 + 2, "two attempts together, then one by one, two for the one that fails"
    check_outages("judge", scores)


def test_r20_eight_of_eight_are_eight_nones_and_then_the_run_stops():
    scores = RewardFunction(Judge(TEXTS), takes="text").score(PROMPTS, TEXTS)
    assert numbers(scores) == [None] * 8
    with pytest.raises(InputError, match=r"judge: 8 of 8 completions could not be scored.*TimeoutError"):
        check_outages("judge", scores)


def test_r20_a_passing_outage_is_tried_again():
    judge = Judge(["c3"], patience=1)
    assert numbers(RewardFunction(judge, takes="text").score(PROMPTS, TEXTS)) == [1] * 8
    assert judge.calls == 2


def test_r20_an_outage_while_the_form_is_found_out_is_an_outage():
    assert numbers(RewardFunction(Judge(["c0"])).score(PROMPTS, TEXTS)) == [None, *[1] * 7]


def test_r20_a_function_that_exits_is_an_outage_and_not_the_end():
    def mine(completions, **kwargs):
        raise SystemExit(0)

    (score,) = RewardFunction(mine).score(["p"], ["c"])
    assert score.value is None
    assert "SystemExit" in score.reason


def test_no_completions_need_no_call():
    assert RewardFunction(Judge(["x"])).score([], []) == []

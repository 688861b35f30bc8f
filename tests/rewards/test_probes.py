"""Probes: a good reward passes them, the keyword exhibit and the lazy-answer reward do not."""

from __future__ import annotations

import re

import pytest

from workbench.errors import InputError
from workbench.rewards import score_completion
from workbench.rewards.exhibits import NONSENSE, keyword_tool_reward
from workbench.rewards.probes import answer_probes, check_reward, probe_table, run_probes, task_probes, weighted_reward
from workbench.tasks import SOURCES, get_task, load_tasks
from workbench.types import Score

TASK = get_task("bfcl-simple_python_0")


@pytest.mark.parametrize("source", SOURCES)
def test_r19_no_probe_fools_our_reward_on_any_source(source):
    for task in load_tasks(source, limit=60):
        check_reward("ours", weighted_reward(task), task_probes(task))


def test_r19_the_probes_cover_no_call_spam_copy_empty_and_gold():
    scores = {result.probe.name: result.score.value for result in run_probes(weighted_reward(TASK), task_probes(TASK))}
    assert scores["gold"] == pytest.approx(1.0)
    assert scores["right values, no call"] == scores["copies the prompt"] == scores["empty"] == 0
    assert scores["right call 20 times"] < 0.2


def test_r19_a_reward_that_grades_plain_text_too_is_refused():
    def names_the_values(text):
        return float('"base": 10' in text and '"height": 5' in text)

    with pytest.raises(InputError, match="'right values, no call' scores 1 and should score the minimum 0"):
        check_reward("names_the_values", names_the_values, task_probes(TASK))


def test_r19_a_reward_that_pays_each_call_is_refused_for_spam():
    with pytest.raises(InputError, match=r"reward counts: .*'right call 20 times' scores 1 "):
        check_reward("counts", lambda text: min(1.0, float(text.count("<tool_call>"))), task_probes(TASK))


def test_s6_nonsense_earns_everything_from_the_keyword_reward_and_nothing_from_ours():
    assert keyword_tool_reward(TASK, NONSENSE) == pytest.approx(1.0)
    assert weighted_reward(TASK)(NONSENSE) == 0.0


def test_s6_the_probes_show_the_keyword_reward_failing():
    results = run_probes(lambda text: keyword_tool_reward(TASK, text), task_probes(TASK))
    by_name = {result.probe.name: result for result in results}
    assert by_name["keyword stuffing"].score.value == pytest.approx(1.0)
    assert not by_name["keyword stuffing"].passed
    assert not by_name["gold"].passed, "the right call itself earns less than the nonsense"
    assert "FAILS" in probe_table(results)
    with pytest.raises(
        InputError, match=r"reward keywords: the probe 'gold' scores 0.7 and should score the maximum 1"
    ):
        check_reward("keywords", lambda text: keyword_tool_reward(TASK, text), task_probes(TASK))


LAZY = answer_probes("What is 6 times 7?", r"6 times 7 is \boxed{42}", lazy=["maybe 42 or 17", "42"])


def boxed(text):
    return re.findall(r"\\boxed\{([^{}]*)\}", text)


def test_r4_a_reward_built_without_its_parser_scores_gold_0_and_is_refused():
    with pytest.raises(InputError, match="'gold' scores 0 and should score the maximum 1"):
        check_reward("unparsed", lambda text: float(text == "42"), LAZY)


def test_r4_a_reward_that_compares_the_whole_text_without_a_box_pays_the_lazy_answer_and_is_refused():
    def whole_text(text):
        return float("42" in (boxed(text) or [text])[-1])

    with pytest.raises(InputError, match="'lazy answer 1' scores 1 and should score less than gold"):
        check_reward("whole_text", whole_text, LAZY)


def test_r4_a_reward_that_needs_the_box_passes():
    results = check_reward("strict", lambda text: float(boxed(text) == ["42"]), LAZY)
    assert [result.score.value for result in results] == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("scorer", "words"),
    [
        (lambda text: None, "'gold' is not scored"),
        (lambda text: float("nan"), "'gold' is not scored .*not a finite number"),
        (lambda text: "1", "'gold' is not scored"),
        (lambda text: 1 / 0, "'gold' is not scored .*ZeroDivisionError"),
        (lambda text: 1.0, "'empty' scores 1 and should score the minimum 0"),
        (lambda text: 0.0, "'gold' scores 0 and should score the maximum 1"),
        (lambda text: Score(None, "The judge was away."), "The judge was away"),
    ],
)
def test_a_reward_that_cannot_tell_is_refused_with_the_reason(scorer, words):
    with pytest.raises(InputError, match=words):
        check_reward("mine", scorer, task_probes(TASK))


def test_a_scorer_may_give_dimensions_or_scores_and_another_range():
    check_reward("dimensions", lambda text: score_completion(TASK, text), task_probes(TASK))
    signed = weighted_reward(TASK)
    check_reward("signed", lambda text: Score(2 * signed(text) - 1, ""), task_probes(TASK), minimum=-1.0)

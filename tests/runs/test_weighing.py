"""Re-weighting: the numbers are grpo's, the sentences say what a person needs to know."""

import math

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.runs.weighing import Weighing, parse_weights, weigh_groups
from workbench.types import Completion, Group, Score, Split, Task

TASK = Task("desk-3", "desk", Split.HELD_OUT, ({"role": "user", "content": "set a timer"},))


def scored(*rows: tuple[float | None, float | None]) -> Group:
    """A group scored on task_completion and safety."""
    marks = tuple({"task_completion": Score(a, "a"), "safety": Score(b, "b")} for a, b in rows)
    return Group(TASK, tuple(Completion(str(k)) for k in range(len(rows))), marks)


def test_rewards_and_advantages_by_hand():
    weighing = Weighing({"task_completion": 0.5, "safety": 0.5}, std="population")
    one = weigh_groups([scored((1, 1), (0, 1), (1, 0), (0, 0))], weighing)[0]
    np.testing.assert_allclose(one.rewards, [1, 0.5, 0.5, 0])
    np.testing.assert_allclose(one.advantages, [math.sqrt(2), 0, 0, -math.sqrt(2)], rtol=1e-6)
    assert (one.mean, one.pushed_up, one.pushed_down) == (0.5, 1, 1)
    assert one.spread == pytest.approx(math.sqrt(1 / 8))
    assert one.shares == pytest.approx({"task_completion": 0.5, "safety": 0.5})


def test_a4_a_completion_one_dimension_could_not_judge_is_unscored_and_not_a_zero():
    one = weigh_groups([scored((1, 1), (1, 1), (None, 1), (0, 1))])[0]
    assert math.isnan(one.rewards[2])
    assert one.advantages[2] == 0
    assert one.mean == pytest.approx((0.55 * 2 + 0.15) / 3)
    assert one.verdict().endswith("1 could not be scored and take no part.")


def test_groups_of_different_k_are_weighed_together_and_the_gaps_take_no_part():
    alone = weigh_groups([scored((1, 1), (0, 1))])[0]
    padded = weigh_groups([scored((1, 1), (0, 1)), scored((1, 1), (0, 1), (0, 0), (0, 1))])[0]
    np.testing.assert_array_equal(alone.advantages, padded.advantages)
    assert padded.rewards.shape == (2,)


def test_batch_scaling_spans_the_groups():
    groups = [scored((1, 1), (0, 1)), scored((1, 1), (1, 1))]
    by_batch = weigh_groups(groups, Weighing(scale_rewards="batch"))[0].advantages
    by_group = weigh_groups(groups, Weighing(scale_rewards="group"))[0].advantages
    assert not np.allclose(by_batch, by_group)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (((1, 1), (1, 1)), "Dead group: all 2 scored 0.55 (too easy for this model), so it teaches nothing."),
        (((0, 0), (0, 0)), "Dead group: all 2 scored 0.00 (too hard for this model, or the reward is too strict)"),
        (((0, 1), (0, 1)), "Dead group: all 2 scored 0.15 (the reward cannot tell them apart)"),
        (((1, 1), (None, 1)), "Dead group: 1 of 2 completions could be scored, and a group needs two to compare."),
        (((1, 1),), "Dead group: 1 of 1 completions could be scored"),
    ],
)
def test_a1_a_dead_group_says_why(rows, sentence):
    one = weigh_groups([scored(*rows)])[0]
    assert one.verdict().startswith(sentence)
    assert not one.advantages.any()


def test_a7_the_verdict_names_the_dimension_that_decides():
    verdict = weigh_groups([scored((1, 1), (0, 1), (0, 1))])[0].verdict()
    assert verdict == "1 pushed up, 2 pushed down; task_completion decides 100% of it."


def test_the_sign_of_the_weights_matters():
    first = weigh_groups([scored((1, 0), (0, 1))], Weighing({"task_completion": 1, "safety": 0}))[0]
    second = weigh_groups([scored((1, 0), (0, 1))], Weighing({"task_completion": 0, "safety": 1}))[0]
    np.testing.assert_array_equal(first.advantages, -second.advantages)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("safty=1", "did you mean 'safety'"),
        ("safety", "has no value"),
        ("safety=1,safety=2", "given twice"),
        ("safety=lots", "is not a number"),
        ("safety=-1", "outside 0 to 100"),
        ("safety=nan", "outside 0 to 100"),
    ],
)
def test_c5_weights_that_cannot_be_used_are_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_weights(text)


def test_weights_left_out_keep_their_default():
    assert parse_weights(" safety=1 , ") == {**parse_weights(None), "safety": 1.0}


@pytest.mark.parametrize(
    ("field", "value", "near"),
    [
        ("std", "sampel", "sample"),
        ("scale_rewards", "False", "none"),
        ("aggregation", "sum_then_normalise", "sum_then"),
    ],
)
def test_c5_unknown_conventions_are_refused_with_the_known_ones(field, value, near):
    with pytest.raises(InputError, match=near):
        Weighing(**{field: value})


def test_groups_without_scores_or_with_others_are_refused():
    with pytest.raises(InputError, match="no dimension"):
        weigh_groups([Group(TASK, (Completion("a"),))])
    other = Group(TASK, (Completion("a"),), ({"speed": Score(1, "")},))
    with pytest.raises(InputError, match="scored on speed, not on task_completion, safety"):
        weigh_groups([scored((1, 1)), other])
    with pytest.raises(InputError, match="add speed=1"):
        weigh_groups([other])
    with pytest.raises(InputError, match="all are 0"):
        weigh_groups([scored((1, 1))], Weighing({"task_completion": 0, "safety": 0}))


def test_no_groups_is_no_group():
    assert weigh_groups([]) == []

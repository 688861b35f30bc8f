"""The numbers behind the screen are grpo's, and say what a person would."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.grpo import combine_rewards
from workbench.types import Completion, Group, Score
from workbench.ui.group_numbers import graded_weights, group_numbers, token_pushes
from workbench.ui.group_state import DEFAULT_STATE

NAMES = ("task_completion", "tool_accuracy", "efficiency", "safety")


@pytest.fixture
def scored(a_recording):
    """A function making a group from rows of four scores."""

    def make(*rows):
        texts = tuple(Completion(f"answer {k}", (1, 2), ("a", "b"), (-1.0, -0.5), (0.1, 0.1)) for k in range(len(rows)))
        scores = tuple({n: Score(v, "because") for n, v in zip(NAMES, row, strict=True)} for row in rows)
        return Group(a_recording[0].task, texts, scores, "nano")

    return make


@pytest.mark.parametrize("aggregation", ["sum_then_normalize", "normalize_then_sum"])
@pytest.mark.parametrize("std", ["sample", "population"])
@pytest.mark.parametrize("scaling", ["group", "batch", "none"])
def test_advantages_are_those_of_combine_rewards(a_recording, aggregation, std, scaling):
    state = replace(DEFAULT_STATE, aggregation=aggregation, std=std, scale_rewards=scaling, safety=0.7)
    numbers = group_numbers(a_recording[1], state)
    rewards, advantages = combine_rewards(
        a_recording[1].rewards_per_func()[None], [0.4, 0.3, 0.15, 0.7], aggregation, scaling, std, missing="exclude"
    )
    assert numbers.rewards == pytest.approx(rewards[0])
    assert numbers.advantages == pytest.approx(advantages[0])


def test_signs_are_compared_with_the_default_settings(scored):
    group = scored((1, 1, 1, 0), (0, 0, 0, 1))
    assert group_numbers(group, DEFAULT_STATE).flipped == ()
    turned = group_numbers(group, replace(DEFAULT_STATE, task_completion=0.0, tool_accuracy=0.0, safety=1.0))
    assert turned.flipped == (0, 1)
    assert turned.reference[0] > 0 > turned.advantages[0]


def test_shares_say_which_dimension_decides(scored):
    numbers = group_numbers(scored((1, 0.5, 1, 1), (0, 0.5, 1, 1), (1, 0.5, 1, 1)), DEFAULT_STATE)
    assert numbers.shares == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_a_completion_whose_judge_failed_is_left_out_and_not_scored_0(scored):
    numbers = group_numbers(scored((1, 1, 1, 1), (0, 0, 0, 0), (1, 1, 1, None)), DEFAULT_STATE)
    assert numbers.unscored == 1
    assert numbers.advantages[2] == 0.0
    assert numbers.mean == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(0, 0, 0, 0)] * 8, "all 8 scored 0.00"),
        ([(1, 1, 1, 1)] * 4, "all 4 scored 1.00"),
        ([(None,) * 4, (1, 1, 1, 1)], "1 of 2 could be scored"),
    ],
)
def test_a1_a_dead_group_says_why(scored, rows, why):
    assert group_numbers(scored(*rows), DEFAULT_STATE).dead == why


def test_a_dead_group_is_graded_by_what_differs_or_not_at_all(scored):
    state = replace(DEFAULT_STATE, task_completion=1.0, tool_accuracy=0.0, efficiency=0.0, safety=0.0)
    group = scored((0, 0.2, 1, 1), (0, 0.9, 1, 1))
    assert group_numbers(group, state).dead
    better = graded_weights(group, state)
    assert group_numbers(group, better).dead is None
    assert graded_weights(scored((0, 0, 0, 0), (0, 0, 0, 0)), state) is None


def test_pushes_follow_the_loss_type_and_stop_outside_the_clip_range(scored):
    group = scored((1, 1, 1, 1), (0, 0, 0, 0))
    advantages = group_numbers(group, DEFAULT_STATE).advantages
    up, down = token_pushes(group, advantages, DEFAULT_STATE)
    assert up == pytest.approx(advantages[0] / 4)  # grpo: two rows of two tokens
    assert down == pytest.approx(advantages[1] / 4)
    moved = [(-1.0 + 0.5, -0.5), (-1.0, -0.5)]  # the first token became e^0.5 times likelier
    clipped = token_pushes(group, advantages, replace(DEFAULT_STATE, beta=0.0), moved)
    assert clipped[0][0] == 0.0
    assert clipped[0][1] > 0


def test_the_best_is_on_show_until_one_is_chosen(scored):
    numbers = group_numbers(scored((0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 0)), DEFAULT_STATE)
    assert numbers.selected(DEFAULT_STATE) == 1
    assert numbers.selected(replace(DEFAULT_STATE, selected=3)) == 2
    assert numbers.selected(replace(DEFAULT_STATE, selected=30)) == 1
    assert not np.isnan(numbers.mean)

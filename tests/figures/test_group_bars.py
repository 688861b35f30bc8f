"""Data in, the same data out: the bars show what they were given, in text as well as in colour."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from workbench.errors import InputError
from workbench.figures import advantage_bars, advantage_bars_spec, bar_sentences, flipped_signs, group_bars
from workbench.figures.theme import DOWN, REST, UP
from workbench.grpo import combine_rewards

WEIGHTS = {"task_completion": 0.4, "tool_accuracy": 0.3, "efficiency": 0.15, "safety": 0.15}
NAMES = tuple(WEIGHTS)


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_bars_are_the_advantages_of_grpo_and_stacks_the_weighted_scores(a_group_with_one_unsafe_call):
    group = a_group_with_one_unsafe_call
    figure = group_bars(group, WEIGHTS)
    scores = group.rewards_per_func()
    rewards, advantages = combine_rewards(scores[None], list(WEIGHTS.values()))
    assert list(trace(figure, "advantage").y) == pytest.approx(advantages[0].tolist())
    stacks = np.array([trace(figure, name).y for name in NAMES], float)
    assert stacks == pytest.approx((scores * np.array(list(WEIGHTS.values()))).T)
    assert stacks.sum(axis=0) == pytest.approx(rewards[0])  # a stack's height is the reward


def test_a_bar_says_its_sign_in_text_and_in_colour():
    figure = advantage_bars([0.944, -0.31, 0.0], [[1], [0], [0.5]], [1], ["safety"])
    bars = trace(figure, "advantage")
    assert list(bars.text) == ["+0.94", "−0.31", "0"]
    assert list(bars.marker.color) == [UP, DOWN, REST]


def test_hover_is_a_sentence_with_the_terms_of_the_reward():
    sentences = bar_sentences([0.5, -0.5], [[1.0, 0.5], [0.0, 0.5]], [0.6, 0.4], ["task_completion", "safety"])
    assert sentences[0].startswith("<b>Completion 1 is pushed up, +0.50</b>")
    assert "reward 0.80 is above the group's mean of 0.50." in sentences[0]
    assert "task_completion 1.00 × 0.60 = 0.60" in sentences[0]
    assert "is pushed down, −0.50" in sentences[1]


def test_an_unscored_completion_is_said_to_be_left_out():
    sentences = bar_sentences([0.0, 0.0], [[np.nan], [1.0]], [1.0], ["safety"])
    assert "was not scored" in sentences[0]
    figure = advantage_bars([0.0, 0.0], [[np.nan], [1.0]], [1.0], ["safety"])
    assert trace(figure, "safety").y == (None, 1.0)


def test_a_changed_sign_is_marked_on_the_bar_and_ticked_where_it_was():
    figure = advantage_bars([0.5, -0.5], [[1], [0]], [1], ["safety"], reference=[-0.2, -0.5])
    bars, ticks = trace(figure, "advantage"), trace(figure, "by default")
    assert bars.text[0] == "<b>↕ +0.50</b>"
    assert bars.text[1] == "−0.50"
    assert ticks.y == (-0.2, None)  # the second did not move, so it has no tick
    assert ticks.showlegend


@pytest.mark.parametrize(
    ("now", "was", "flipped"),
    [([1, -1], [1, -1], ()), ([1, -1], [-1, 1], (0, 1)), ([0, 1], [1, 0], ()), ([1], None, ())],
)
def test_a_move_from_or_to_zero_is_no_change_of_sign(now, was, flipped):
    assert flipped_signs(now, was) == flipped


@pytest.mark.parametrize(
    ("scaling", "std", "words"),
    [
        ("group", "sample", "group, sample std"),
        ("batch", "population", "batch, population std"),
        ("none", "sample", "not scaled"),
    ],
)
def test_every_figure_says_which_convention_it_shows(a_group_with_one_unsafe_call, scaling, std, words):
    figure = group_bars(a_group_with_one_unsafe_call, WEIGHTS, scale_rewards=scaling, std=std)
    assert words in figure.layout.annotations[0].text


def test_the_quick_spec_is_a_figure_plotly_accepts_and_the_same_one(a_group_with_one_unsafe_call):
    scores = a_group_with_one_unsafe_call.rewards_per_func()
    arguments = ([0.5, 0.2, -0.3, -0.4], scores, list(WEIGHTS.values()), NAMES)
    spec = advantage_bars_spec(*arguments, selected=2, reference=[0.1, -0.2, -0.3, 0.1])
    checked = go.Figure(spec)  # validates every property
    figure = advantage_bars(*arguments, selected=2, reference=[0.1, -0.2, -0.3, 0.1])
    figure.layout.template = None
    checked.layout.template = None
    assert json.loads(figure.to_json()) == json.loads(checked.to_json())
    json.dumps(spec, allow_nan=False)  # plain JSON, fit to send as it is


def test_a_dead_group_draws_bars_of_zero(a_group_with_one_unsafe_call):
    figure = group_bars(a_group_with_one_unsafe_call, dict.fromkeys(WEIGHTS, 0.0))
    assert set(trace(figure, "advantage").y) == {0.0}
    assert set(trace(figure, "advantage").marker.color) == {REST}


def test_32_completions_fit_with_shorter_labels():
    rng = np.random.default_rng(0)
    figure = advantage_bars(rng.normal(size=32), rng.random((32, 4)), [0.25] * 4, NAMES)
    assert all(len(label) <= 4 for label in trace(figure, "advantage").text)


def test_a_wrong_aggregation_is_named(a_group_with_one_unsafe_call):
    with pytest.raises(InputError, match=r"sum_then_normalise.*did you mean 'sum_then_normalize'"):
        group_bars(a_group_with_one_unsafe_call, WEIGHTS, aggregation="sum_then_normalise")

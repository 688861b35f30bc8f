"""The METRICS table says what each logged number means, in words a person can act on."""

from __future__ import annotations

import pytest

from workbench.errors import InputError
from workbench.grpo import HEADLINE, METRICS, dead_streak_warning, metric


def test_every_metric_has_a_label_a_sentence_and_a_healthy_range():
    assert len(METRICS) > 20
    for name, entry in METRICS.items():
        assert entry.label, name
        assert entry.tells.endswith("."), name
        assert entry.healthy, name
    labels = [entry.label for entry in METRICS.values()]
    assert len(set(labels)) == len(labels)


def test_a2_the_loss_is_labelled_and_is_no_headline():
    assert "not a progress signal" in METRICS["loss"].label
    assert HEADLINE == ("reward", "grad_norm", "frac_reward_zero_std")
    assert METRICS["frac_reward_zero_std"].label == "dead groups"
    assert "used once" in METRICS["clip_ratio/region_mean"].tells
    assert set(HEADLINE) <= set(METRICS)


def test_metrics_of_one_reward_function_are_found():
    assert metric("rewards/tool_accuracy/std").label == "tool_accuracy: score spread"
    assert metric("rewards/a/b/mean").label == "a/b: mean score"
    assert metric("kl") is METRICS["kl"]


@pytest.mark.parametrize("name", ["rewards/mean", "rewards//mean", "entropi", "completions/x/mean"])
def test_unknown_metrics_are_refused(name):
    with pytest.raises(InputError, match="is not known"):
        metric(name)


def test_unknown_metric_gets_the_nearest():
    with pytest.raises(InputError, match="did you mean 'frac_reward_zero_std'"):
        metric("frac_reward_zero")


def test_a1_a_streak_of_dead_groups_is_warned_about():
    assert dead_streak_warning([0.9, 0.85]) is None
    assert dead_streak_warning([0.9, 0.8, 0.9]) is None  # 80 % itself is not more than 80 %
    assert dead_streak_warning([0.9, 0.9, 0.9, 0.2]) is None
    assert dead_streak_warning([0.1, 0.85, 0.9, 1.0]).startswith("The last 3 steps had 85% or more dead groups")
    assert "last 2 steps" in dead_streak_warning([0.6, 0.7], limit=0.5, steps=2)

"""Dead groups, shares of variance, and how many completions are enough."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workbench.errors import InputError
from workbench.grpo import (
    OPTIMAL_K,
    GroupState,
    combine_rewards,
    dead_groups,
    dead_probability,
    dominance_warning,
    group_advantages,
    optimal_k,
    smallest_k,
    variance_shares,
)


def test_states_by_hand():
    rewards = [[0] * 4, [1] * 4, [0.5] * 4, [0, 0, 0, 1], [1, None, None, None], [None] * 4, [None, 1, 1, None]]
    found = dead_groups(rewards)
    assert [state.value for state in found.states] == [
        "all fail",
        "all pass",
        "all equal",
        "alive",
        "unscored",
        "unscored",
        "all pass",
    ]
    assert found.share == pytest.approx(6 / 7)
    assert found.counts[GroupState.ALL_PASS] == 2
    assert found.where() == (0, 1, 2, 4, 5, 6)
    assert found.where(GroupState.ALIVE) == (3,)
    assert found.where(GroupState.ALL_FAIL, GroupState.ALL_EQUAL) == (0, 2)


def test_a_total_just_below_one_by_rounding_passes():
    weights = [0.1] * 10  # they sum to 0.9999999999999999 one after the other
    assert dead_groups([[sum(weights)] * 4]).states == (GroupState.ALL_PASS,)


def test_fail_and_pass_levels_can_be_moved():
    assert dead_groups([[0.2] * 3], fail_at=0.25).states == (GroupState.ALL_FAIL,)
    assert dead_groups([[0.8] * 3], pass_at=0.75).states == (GroupState.ALL_PASS,)


def test_a1_dead_groups_are_told_apart_although_the_batch_spreads():
    found = dead_groups([[-8, -8, -8, -8], [2, 2, 2, 2]])
    assert found.states == (GroupState.ALL_FAIL, GroupState.ALL_PASS)
    assert found.share == 1.0
    assert found.where(GroupState.ALL_FAIL) == (0,)  # says which prompts


gappy = st.tuples(st.integers(1, 5), st.integers(2, 6)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.1, 0.5, 1.0, math.nan]))
)


@settings(max_examples=150, deadline=None)
@given(gappy, st.sampled_from(["group", "batch", "none"]))
def test_law_dead_means_every_advantage_is_zero(rewards, scale_rewards):
    alive = group_advantages(rewards, scale_rewards).any(axis=1)
    assert [state is GroupState.ALIVE for state in dead_groups(rewards).states] == alive.tolist()


# ---- shares of variance ---------------------------------------------------------------------------------------------


def test_shares_by_hand():
    # Independent within the group: variances 1/4 and 1/16 (population), so 0.8 and 0.2.
    assert variance_shares([[[1, 0], [0, 0.5], [1, 0.5], [0, 0]]]) == pytest.approx([0.8, 0.2])
    # The second is half the first: Var = 1 + .25, twice the covariance .5 split evenly: (1 + .5) and (.25 + .5) of 2.25
    assert variance_shares([[[2, 1], [0, 0]]]) == pytest.approx([1.5 / 2.25, 0.75 / 2.25])
    # One against the other: 2 - 1 of a sum of 1 gives shares 2 and -1
    assert variance_shares([[[2, 0], [0, 1]]]) == pytest.approx([2.0, -1.0])


def test_shares_are_taken_within_groups_not_between():
    easy_and_hard = [[[10, 1], [10, 0]], [[0, 1], [0, 0]]]
    assert variance_shares(easy_and_hard).tolist() == [0.0, 1.0]


def test_shares_of_dead_groups_are_undefined_not_zero():
    assert np.isnan(variance_shares([[[1, 0.3], [1, 0.3]]])).all()
    assert dominance_warning([[[1, 0.3], [1, 0.3]]]) is None


scores = st.tuples(st.integers(1, 3), st.integers(2, 6), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan]))
)


@settings(max_examples=150, deadline=None)
@given(scores, st.lists(st.sampled_from([-1.0, 0.15, 0.4, 2.0]), min_size=4, max_size=4))
def test_law_shares_sum_to_one_when_any_group_is_alive(values, weights):
    weights = weights[: values.shape[2]]
    shares = variance_shares(values, weights)
    _, advantages = combine_rewards(values, weights, scale_rewards="none")
    if advantages.any():
        assert shares.sum() == pytest.approx(1.0, abs=1e-9)
    else:
        assert np.isnan(shares).all()


def test_a7_a_function_of_large_scale_is_warned_about():
    correct_and_long = [[[1, 10], [0, 200], [1, 30], [0, 180]]]
    shares = variance_shares(correct_and_long, [1.0, 1.0])
    assert shares[1] > 0.9
    warning = dominance_warning(correct_and_long, [1.0, 1.0], names=["correct", "length"])
    assert warning.startswith("length decides 10")
    assert "normalize_then_sum" in warning
    assert dominance_warning([[[1, 0], [0, 0.5], [1, 0.5], [0, 0]]]) is None  # 80 % is not dominance
    assert dominance_warning([[[1, 0], [0, 0.5], [1, 0.5], [0, 0]]], limit=0.75).startswith("function 0 decides 80%")
    assert dominance_warning([[[1], [0]]]) is None  # a single function is no dominance
    with pytest.raises(InputError, match=r"names: expected 2 \(one a reward function\), got 1"):
        dominance_warning(correct_and_long, names=["correct"])


# ---- how many completions -------------------------------------------------------------------------------------------


def test_a9_probability_of_a_dead_group():
    assert dead_probability(0.18, 2) == pytest.approx(0.7048)
    assert dead_probability(0.18, 8) == pytest.approx(0.2044, abs=1e-4)
    assert dead_probability(0.0, 8) == dead_probability(1.0, 8) == 1.0
    assert dead_probability([0.0, 0.5], 3) == pytest.approx([1.0, 0.25])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a9_probability_equals_counting_every_outcome(k):
    p, total = 0.3, 0.0
    for outcome in itertools.product((0, 1), repeat=k):
        if not group_advantages([outcome]).any():
            total += math.prod(p if passed else 1 - p for passed in outcome)
    assert dead_probability(p, k) == pytest.approx(total)


def test_a9_smallest_k_is_the_first_that_is_enough():
    assert smallest_k(0.5, max_dead=0.5) == 2
    assert smallest_k(0.5, max_dead=0.25) == 3
    k = smallest_k(0.18, max_dead=0.2)
    assert dead_probability(0.18, k) <= 0.2 < dead_probability(0.18, k - 1)
    assert smallest_k(0.0) is None
    assert smallest_k(0.001, largest=16) is None


def test_a9_refusals():
    with pytest.raises(InputError, match="pass_rate: a pass rate is between 0 and 1"):
        dead_probability(1.5, 4)
    with pytest.raises(InputError, match="pass_rate: a pass rate is between 0 and 1"):
        dead_probability(None, 4)
    with pytest.raises(InputError, match="num_generations: 1 is outside 2"):
        dead_probability(0.5, 1)


@pytest.mark.parametrize(
    ("task_type", "ks"),
    [
        ("tool_call", (4, 8, 12)),
        ("code_gen", (4, 6, 10)),
        ("reasoning", (6, 10, 16)),
        ("safety", (4, 6, 8)),
        ("other", (4, 6, 12)),
        ("translation", (4, 6, 12)),
    ],
)
def test_prior_for_k_has_the_guides_numbers(task_type, ks):
    assert tuple(optimal_k(task_type, budget) for budget in (0.0, 0.5, 1.0)) == ks
    assert tuple(optimal_k(task_type, budget) for budget in (0.49, 0.99, 7)) == ks
    assert OPTIMAL_K.get(task_type, OPTIMAL_K["other"]) == ks


def test_prior_for_k_refuses_misspellings_and_impossible_budgets():
    with pytest.raises(InputError, match="task_type: 'tool_cal' is not known; did you mean 'tool_call'"):
        optimal_k("tool_cal", 1.0)
    with pytest.raises(InputError, match="compute_budget: -1 is outside 0"):
        optimal_k("safety", -1)

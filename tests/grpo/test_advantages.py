"""Advantages: by hand, by law, and the "Advantages and numbers" rows of the case list."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workbench.errors import InputError
from workbench.grpo import (
    AGGREGATIONS,
    SCALE_REWARDS,
    STD_CONVENTIONS,
    combine_rewards,
    group_advantages,
    leave_one_out_advantages,
    weighted_rewards,
)

# ---- by hand --------------------------------------------------------------------------------------------------------


def test_sample_std_by_hand():
    # mean 0.25, deviations .75 -.25 -.25 -.25, sample variance (.5625 + 3*.0625)/3 = 0.25, std 0.5
    expected = [0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001]
    assert group_advantages([[1, 0, 0, 0]])[0] == pytest.approx(expected, abs=1e-15)


def test_population_std_by_hand():
    # population variance (.5625 + 3*.0625)/4 = 0.1875
    std = math.sqrt(0.1875) + 1e-8
    expected = [0.75 / std, -0.25 / std, -0.25 / std, -0.25 / std]
    assert group_advantages([[1, 0, 0, 0]], std="population")[0] == pytest.approx(expected, abs=1e-15)


def test_epsilons_are_those_of_their_convention():
    # deviations of +-5e-5: the sample std is 7.07e-5, the population std 5e-5; epsilon is felt in the first only
    tiny = [[1e-4, 0.0]]
    assert group_advantages(tiny)[0, 0] == pytest.approx(5e-5 / (5e-5 * math.sqrt(2) + 1e-4), rel=1e-9)
    assert group_advantages(tiny, std="population")[0, 0] == pytest.approx(5e-5 / (5e-5 + 1e-8), rel=1e-9)


def test_batch_scaling_by_hand():
    # centred rows (.5 -.5) and (1 -1); over the batch: 1 0 4 2, mean 1.75, squares .5625 3.0625 5.0625 .0625 = 8.75
    expected = np.array([[0.5, -0.5], [1.0, -1.0]])
    sample = group_advantages([[1, 0], [4, 2]], scale_rewards="batch")
    assert sample == pytest.approx(expected / (math.sqrt(8.75 / 3) + 1e-4), abs=1e-15)
    population = group_advantages([[1, 0], [4, 2]], scale_rewards="batch", std="population")
    assert population == pytest.approx(expected / (math.sqrt(8.75 / 4) + 1e-8), abs=1e-15)


def test_no_scaling_is_dr_grpo_by_hand():
    assert group_advantages([[1, 0, 0.5, 0.5], [3, 1, 1, 1]], scale_rewards="none").tolist() == [
        [0.5, -0.5, 0.0, 0.0],
        [1.5, -0.5, -0.5, -0.5],
    ]


def test_leave_one_out_by_hand():
    # 1 - mean(0, .5), 0 - mean(1, .5), .5 - mean(1, 0); then the same with one unscored in between
    assert leave_one_out_advantages([[1, 0, 0.5]]).tolist() == [[0.75, -0.75, 0.0]]
    assert leave_one_out_advantages([[1, None, 0]]).tolist() == [[1.0, 0.0, -1.0]]
    assert leave_one_out_advantages([[1, None, None]]).tolist() == [[0.0, 0.0, 0.0]]


def test_unscored_is_left_out_of_mean_and_std_by_hand():
    # scored: 1 and 0, mean .5, sample std sqrt(.5)
    a = 0.5 / (math.sqrt(0.5) + 1e-4)
    assert group_advantages([[1, None, 0, math.nan]])[0] == pytest.approx([a, 0, -a, 0], abs=1e-15)


def test_sum_then_normalize_by_hand():
    rewards, advantages = combine_rewards([[[1, 0], [0, 1]]], [0.4, 0.1], scale_rewards="none")
    assert rewards[0] == pytest.approx([0.4, 0.1])
    assert advantages[0] == pytest.approx([0.15, -0.15])


def test_normalize_then_sum_by_hand():
    # Each function alone: +-.5 / (sqrt(.5) + 1e-4) for 0/1 and +-5 / (sqrt(50) + 1e-4) for 0/10, weighted 1 and .5.
    one, ten = 0.5 / (math.sqrt(0.5) + 1e-4), 5 / (math.sqrt(50) + 1e-4)
    totals = np.array([one - 0.5 * ten, -one + 0.5 * ten, one + 0.5 * ten, -one - 0.5 * ten])
    std = math.sqrt((totals**2).sum() / 3)
    rewards, advantages = combine_rewards([[[1, 0], [0, 10]], [[1, 10], [0, 0]]], [1, 0.5], "normalize_then_sum")
    assert rewards.tolist() == [[1.0, 5.0], [6.0, 0.0]]
    assert advantages.reshape(-1) == pytest.approx(totals / (std + 1e-4), abs=1e-15)


def test_weighted_rewards_by_hand():
    assert weighted_rewards([[[1.0, 0.5, 0.0], [0.0, None, 1.0]]], [0.5, 0.25, -1.0]).tolist() == [[0.625, -1.0]]
    assert weighted_rewards([[[1.0, 2.0]]]).tolist() == [[3.0]]
    assert np.isnan(weighted_rewards([[[1.0, None]]], missing="exclude")).all()


# ---- laws -----------------------------------------------------------------------------------------------------------

finite = st.floats(-1e6, 1e6, allow_nan=False)
shapes = st.tuples(st.integers(1, 4), st.integers(2, 9))
full = shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=finite))
gappy = shapes.flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.one_of(finite, st.sampled_from([0.0, 1.0, math.nan])))
)
scaling = st.sampled_from(SCALE_REWARDS)
conventions = st.sampled_from(list(STD_CONVENTIONS))


@settings(max_examples=150, deadline=None)
@given(gappy, scaling, conventions)
def test_law_rows_sum_to_zero_and_unscored_get_zero(rewards, scale_rewards, std):
    advantages = group_advantages(rewards, scale_rewards, std)
    size = 1.0 + np.abs(advantages).max()
    assert np.abs(advantages.sum(axis=1)).max() <= 1e-9 * size
    assert np.isfinite(advantages).all()
    assert not advantages[np.isnan(rewards)].any()


@settings(max_examples=150, deadline=None)
@given(gappy)
def test_law_advantages_are_bounded_by_k(rewards):
    k = rewards.shape[1]
    assert np.abs(group_advantages(rewards, std="sample")).max() <= (k - 1) / math.sqrt(k) + 1e-9
    assert np.abs(group_advantages(rewards, std="population")).max() <= math.sqrt(k - 1) + 1e-9


@pytest.mark.parametrize("k", [2, 3, 8, 16, 64])
def test_law_the_bounds_are_reached_by_one_winner(k):
    winner = [[1e6] + [0.0] * (k - 1)]
    assert group_advantages(winner)[0, 0] == pytest.approx((k - 1) / math.sqrt(k), rel=1e-6)
    assert group_advantages(winner, std="population")[0, 0] == pytest.approx(math.sqrt(k - 1), rel=1e-6)


@settings(max_examples=150, deadline=None)
@given(st.floats(-1e30, 1e30), st.integers(2, 40), scaling, conventions, st.floats(-5, 5))
def test_law_a_constant_group_is_exactly_zero_at_any_scale(value, k, scale_rewards, std, other):
    batch = [[value] * k, [value] * (k - 1) + [None], [other] + [other + 1.0] * (k - 1)]
    advantages = group_advantages(batch, scale_rewards, std)
    assert advantages[:2].tolist() == [[0.0] * k] * 2


@settings(max_examples=150, deadline=None)
@given(full, st.floats(-1e3, 1e3), conventions)
def test_law_adding_a_constant_changes_nothing(rewards, shift, std):
    rewards = np.round(rewards, 1)  # so that no difference is as small as the rounding of the shift
    assert group_advantages(rewards + shift, std=std) == pytest.approx(group_advantages(rewards, std=std), abs=1e-6)


@settings(max_examples=150, deadline=None)
@given(gappy, st.randoms(use_true_random=False), scaling)
def test_law_order_does_not_matter(rewards, random, scale_rewards):
    order = list(range(rewards.shape[1]))
    random.shuffle(order)
    expected = group_advantages(rewards, scale_rewards)[:, order]
    assert group_advantages(rewards[:, order], scale_rewards) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(full)
def test_law_a_better_reward_never_gets_a_smaller_advantage(rewards):
    for row, advantages in zip(rewards, group_advantages(rewards), strict=True):
        assert (np.diff(advantages[np.argsort(row, kind="stable")]) >= -1e-12).all()


@settings(max_examples=100, deadline=None)
@given(full)
def test_law_leave_one_out_is_k_over_k_minus_one_times_centred(rewards):
    k = rewards.shape[1]
    others = (rewards.sum(axis=1, keepdims=True) - rewards) / (k - 1)
    assert leave_one_out_advantages(rewards) == pytest.approx(rewards - others, rel=1e-9, abs=1e-7)


@settings(max_examples=100, deadline=None)
@given(gappy, scaling, conventions, st.floats(0.1, 3))
def test_law_one_function_is_the_plain_case(rewards, scale_rewards, std, weight):
    _, advantages = combine_rewards(rewards[..., None], [weight], scale_rewards=scale_rewards, std=std)
    expected = group_advantages(rewards * weight, scale_rewards, std)
    assert advantages == pytest.approx(expected, rel=1e-6, abs=1e-9)


scores = st.tuples(st.integers(1, 3), st.integers(2, 6), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan]))
)


@settings(max_examples=150, deadline=None)
@given(scores, st.sampled_from(AGGREGATIONS), scaling, conventions, st.sampled_from(["skip", "exclude"]))
def test_law_combined_rewards_are_finite_or_unscored(values, aggregation, scale_rewards, std, missing):
    weights = np.linspace(1.0, 0.25, values.shape[2])
    rewards, advantages = combine_rewards(values, weights, aggregation, scale_rewards, std, missing)
    unscored = np.isnan(values).all(axis=2) if missing == "skip" else np.isnan(values).any(axis=2)
    assert np.array_equal(np.isnan(rewards), unscored)
    assert np.isfinite(advantages).all()
    assert not advantages[unscored].any()
    assert np.abs(advantages.sum(axis=1)).max() <= 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 1.0]), min_size=4, max_size=4), st.integers(2, 33), conventions)
def test_law_equal_scores_are_equal_whatever_the_order_of_summing(row, k, std):
    # 33 rows do not fill a vector register evenly, so that sums of equal terms may differ by a rounding
    for aggregation in AGGREGATIONS:
        _, advantages = combine_rewards([[row] * k], [0.4, 0.3, 0.15, 0.15], aggregation, std=std)
        assert not advantages.any()


def test_totals_that_differ_only_by_rounding_are_equal():
    # 0.4 * 0.75 is 0.30000000000000004 and 0.3 * 1 is 0.3
    rewards, advantages = combine_rewards([[[0.75, 0.0], [0.0, 1.0], [0.75, 0.0]]], [0.4, 0.3], std="population")
    assert len(set(rewards[0].tolist())) == 2
    assert not advantages.any()
    assert group_advantages([[1.0, 1.0 + 1e-9]], std="population").any()  # a real difference, however small, is kept


# ---- cases ----------------------------------------------------------------------------------------------------------


def test_a1_advantages_are_zero_although_the_batch_spreads():
    rewards = [[-8, -8, -8, -8], [2, 2, 2, 2]]
    assert np.std(rewards, ddof=1) == pytest.approx(5.345, abs=1e-3)
    for scale_rewards in SCALE_REWARDS:
        assert not group_advantages(rewards, scale_rewards).any()


def test_a3_one_missing_score_leaves_the_rest_finite():
    values = [[[1, None], [0, 1], [1, 0], [0, 1]]]
    for aggregation in AGGREGATIONS:
        rewards, advantages = combine_rewards(values, None, aggregation)
        assert rewards.tolist() == [[1.0, 1.0, 1.0, 1.0]]
        assert np.isfinite(advantages).all()
    # Alone: function one gives +-.866, function two (mean 2/3 of three scores) .577, -1.155, .577. The totals
    # .866, -.289, -.289, -.289 have a std of .577.
    assert advantages[0] == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-3)


def test_a3_sibling_an_outage_can_be_kept_from_counting_as_zero():
    values = [[[1, 1], [1, None], [1, 1], [0, 1]]]
    _, skipped = combine_rewards(values, scale_rewards="none")
    rewards, excluded = combine_rewards(values, scale_rewards="none", missing="exclude")
    assert skipped[0, 1] < 0  # its sum lacks a term
    assert np.isnan(rewards[0, 1])
    assert excluded[0] == pytest.approx([1 / 3, 0.0, 1 / 3, -2 / 3])


def test_a4_a_completion_nobody_could_score_is_excluded():
    assert not group_advantages([[1, 1, None, 1]]).any()
    values = [[[1, 0.5], [0, 0.5], [None, None], [1, 0.5]]]
    for aggregation in AGGREGATIONS:
        rewards, advantages = combine_rewards(values, None, aggregation, scale_rewards="none")
        assert np.isnan(rewards[0, 2])
        assert advantages[0, 2] == 0
        assert advantages[0, 0] > 0 > advantages[0, 1]
    assert combine_rewards(values, scale_rewards="none")[1][0] == pytest.approx([1 / 3, -2 / 3, 0, 1 / 3])


def test_a4_sibling_a_weight_of_zero_scores_nothing():
    rewards, advantages = combine_rewards([[[1, 0.5], [1, 0.5], [None, 0.5], [1, 0.5]]], [1.0, 0.0])
    assert np.isnan(rewards[0, 2])
    assert not advantages.any()
    assert not combine_rewards([[[1, 0.5], [0, None]]], [0.0, 0.0])[1].any()


def test_a7_scale_decides_unless_each_function_is_normalised():
    # Totals 0/1 and 0/2 get the same advantage under group scaling, and different ones under the other two.
    assert group_advantages([[0, 1]]) == pytest.approx(group_advantages([[0, 2]]), abs=1e-3)
    assert group_advantages([[0, 1], [0, 2]], "batch")[1, 1] == pytest.approx(
        2 * group_advantages([[0, 1], [0, 2]], "batch")[0, 1]
    )
    correct_and_long = [[[1, 10], [0, 200], [1, 30], [0, 180]]]
    assert combine_rewards(correct_and_long)[1][0, 0] < 0  # length outvotes correctness
    _, fair = combine_rewards(correct_and_long, [1.0, 0.5], "normalize_then_sum")
    assert fair[0, 0] > 0 > fair[0, 1]


# ---- the corpus of groups: what is accepted, and the sentence for what is not --------------------------------------

ACCEPTED = {
    "all zero": ([[0] * 8], [[0.0] * 8]),
    "all one": ([[1] * 8], [[0.0] * 8]),
    "a tenth": ([[0.1] * 8], [[0.0] * 8]),
    "a thousand and a tenth": ([[1000.1] * 6], [[0.0] * 6]),
    "two": ([[1, 0]], [[0.5, -0.5]]),
    "one winner": ([[0, 0, 0, 1]], [[-0.25, -0.25, -0.25, 0.75]]),
    "one scored": ([[1, None, None, None]], [[0.0] * 4]),
    "none scored": ([[None] * 4], [[0.0] * 4]),
    "nan": ([[math.nan, 1, 0, 1]], [[0.0, 1 / 3, -2 / 3, 1 / 3]]),
    "booleans": ([[True, False]], [[0.5, -0.5]]),
    "numpy scalars": ([[np.float32(1), np.int64(0)]], [[0.5, -0.5]]),
    "numpy booleans": (np.array([[True, False]]), [[0.5, -0.5]]),
    "float32": (np.array([[1, 0]], dtype=np.float32), [[0.5, -0.5]]),
    "tuples": (((1, 0), (0, 1)), [[0.5, -0.5], [-0.5, 0.5]]),
    "list of arrays": ([np.array([1.0, 0.0])], [[0.5, -0.5]]),
    "masked": (np.ma.masked_array([[1, 5, 0]], mask=[[0, 1, 0]]), [[0.5, 0.0, -0.5]]),
    "decimals": ([[decimal.Decimal(1), decimal.Decimal(0)]], [[0.5, -0.5]]),
    "not contiguous": (np.array([[1.0, 9.0, 0.0, 9.0]])[:, ::2], [[0.5, -0.5]]),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_plainly_a_group_is_accepted(name):
    rewards, expected = ACCEPTED[name]
    assert group_advantages(rewards, scale_rewards="none") == pytest.approx(np.array(expected), abs=1e-15)


REFUSED = {
    "empty": ([], "rewards: expected shape (P, K), got shape (0,), which is empty."),
    "no completions": ([[]], "got shape (1, 0), which is empty."),
    "one row": ([1, 0, 0], "rewards: expected shape (P, K), got shape (3,); for one group write [rewards]."),
    "one number": (0.5, "rewards: expected shape (P, K), got shape ()."),
    "too deep": ([[[1, 0]]], "got shape (1, 1, 2)."),
    "k of one": ([[1], [0]], "K = 1 completion leaves nothing to compare with; a group needs at least 2."),
    "infinity": ([[0, 0, 0, 0], [0, 0, math.inf, 0]], "rewards[1][2]: inf is not a finite number up to 3.4e+38"),
    "minus infinity": ([[-math.inf, 0, 0, 1]], "rewards[0][0]: -inf is not a finite number"),
    "infinity beside nan": ([[math.nan, math.inf]], "rewards[0][1]: inf"),
    "too large": ([[1e39, 0]], "rewards[0][0]: 1e+39 is not a finite number up to 3.4e+38"),
    "text": ([["1", "0"]], "rewards[0][0]: '1' is text, not a usable number"),
    "text beside a number": ([[1, "0"]], "rewards[0][1]: '0' is text"),
    "bytes": ([[1, b"0"]], "rewards[0][1]: b'0' is text"),
    "a string": ("1, 0", "expected an array of numbers, got str."),
    "none at all": (None, "expected an array of numbers, got NoneType."),
    "ragged": ([[1, 0], [1, 0, 1]], "rewards: expected rows of equal length, got rows of 2 and 3; use None"),
    "ragged deep": ([[[1], [0]], [[1], [0, 1]]], "rewards: expected rows of equal length, got rows of unlike shapes"),
    "generator": ((x for x in (1, 0)), "expected an array of numbers, got generator."),
    "dictionary": ({"a": 1}, "expected an array of numbers, got dict."),
    "complex": ([[1j, 0]], "rewards[0][0]: 1j is of type complex"),
    "huge integer": ([[10**400, 0]], "rewards[0][0]: 1000"),
    "object": ([[object(), 0]], "is of type object, not a usable number"),
    "dates": (np.array([["2026-01-01", "2026-01-02"]], dtype="datetime64[D]"), "is of type date"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_a_group_is_refused_with_one_sentence(name):
    rewards, sentence = REFUSED[name]
    with pytest.raises(InputError) as refusal:
        group_advantages(rewards)
    assert sentence in str(refusal.value)
    assert len(str(refusal.value)) < 200
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("given_count", [1, 7, 9])
def test_wrong_number_of_values_is_never_broadcast(given_count):
    rows = [[0.5] * 8, [0.5] * given_count]
    with pytest.raises(InputError, match=f"rows of {min(8, given_count)} and {max(8, given_count)}"):
        group_advantages(rows)


def test_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'group'"):
        group_advantages([[1, 0]], scale_rewards="groups")
    with pytest.raises(InputError, match="did you mean 'sample'"):
        group_advantages([[1, 0]], std="sampled")
    with pytest.raises(InputError, match="scale_rewards: False is not known"):
        group_advantages([[1, 0]], scale_rewards=False)
    with pytest.raises(InputError, match="did you mean 'normalize_then_sum'"):
        combine_rewards([[[1], [0]]], aggregation="normalise_then_sum")
    with pytest.raises(InputError, match="scale_rewards: 'x' is not known"):
        combine_rewards([[[1], [0]]], None, "normalize_then_sum", "x")
    with pytest.raises(InputError, match="missing: 'zero' is not known"):
        combine_rewards([[[1], [None]]], missing="zero")


def test_weights_are_one_for_each_function():
    values = [[[1, 0], [0, 1]]]
    with pytest.raises(InputError, match=r"reward_weights: expected 2 \(one a reward function\), got 1."):
        combine_rewards(values, [1.0])
    with pytest.raises(InputError, match=r"reward_weights\[1\]: a weight is missing; use 0"):
        combine_rewards(values, [1.0, None])
    with pytest.raises(InputError, match=r"for one group write \[rewards_per_func\]"):
        combine_rewards(values[0], [1.0, 1.0])


def test_inputs_are_not_changed():
    rewards = np.array([[1.0, math.nan, 0.0]])
    values = np.stack([rewards, rewards], axis=-1)
    kept, kept_values = rewards.copy(), values.copy()
    group_advantages(rewards)
    group_advantages(rewards, "batch")
    combine_rewards(values, None, "normalize_then_sum", missing="exclude")
    assert np.array_equal(rewards, kept, equal_nan=True)
    assert np.array_equal(values, kept_values, equal_nan=True)

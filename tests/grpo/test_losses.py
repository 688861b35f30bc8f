"""The losses and their gradient: by hand, by finite differences, by law. Agreement with TRL is tested beside this."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.grpo import (
    LOSS_TYPES,
    group_advantages,
    loss_mask,
    mask_truncated_completions,
    policy_loss,
    token_push,
    token_weight_table,
    token_weights,
)

ONES = [[1, 1], [1, 1]]


def _one(ratio, advantage, **settings):
    """The loss and the push of a single token with this ratio and advantage."""
    now = -1.0
    result = policy_loss([[now]], [[now - math.log(ratio)]], [advantage], [[1]], **settings)
    return result.loss, float(result.push[0, 0]), bool(result.clipped[0, 0])


# ---- by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "advantage", "settings", "loss", "push", "clipped"),
    [
        (1.1, 2.0, {}, -2.2, 2.2, False),  # inside: -ratio A, and its slope
        (1.5, 2.0, {}, -2.4, 0.0, True),  # pushed up already beyond 1.2: held, no gradient
        (0.5, 2.0, {}, -1.0, 1.0, False),  # good, but less likely now: free to come back
        (0.5, -2.0, {}, 1.6, 0.0, True),  # pushed down already beyond 0.8: held
        (1.5, -2.0, {}, 3.0, -3.0, False),  # bad, and likelier now: free to come back, without bound
        (1.25, 2.0, {"epsilon_high": 0.28}, -2.5, 2.5, False),  # clip-higher leaves more room upwards
        (1.25, 2.0, {"epsilon_high": None}, -2.4, 0.0, True),
        (9.0, -2.0, {"delta": 4.0}, 8.0, 0.0, False),  # two-sided: the loss of a bad token stops at delta
        (3.0, -2.0, {"delta": 4.0}, 6.0, -6.0, False),
        (1.1, 2.0, {"epsilon": 0.05}, -2.1, 0.0, True),
    ],
)
@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo", "dr_grpo"])
def test_one_clipped_token_by_hand(loss_type, ratio, advantage, settings, loss, push, clipped):
    found = _one(ratio, advantage, loss_type=loss_type, **settings)
    assert found[:2] == pytest.approx((loss, push), abs=1e-12)
    assert found[2] is clipped


def test_one_cispo_token_by_hand():
    # The capped ratio is a constant factor of A log-prob: a capped token keeps its push, which clipping would remove.
    assert _one(1.5, 2.0, loss_type="cispo", epsilon_high=5.0)[:2] == pytest.approx((3.0, 3.0))
    assert _one(9.0, 2.0, loss_type="cispo", epsilon_high=5.0) == (pytest.approx(10.0), pytest.approx(10.0), True)
    assert _one(9.0, -2.0, loss_type="cispo", epsilon_high=5.0) == (pytest.approx(-10.0), pytest.approx(-10.0), False)
    # left out, the cap is epsilon itself, as in TRL
    assert _one(1.0, 2.0, loss_type="cispo")[:2] == pytest.approx((0.4, 0.4))


def test_averages_by_hand():
    # Two rows with advantages 3 and -1, of 1 and 3 tokens, ratio 1: a token's loss is -3 in row 0 and 1 in row 1.
    now = np.full((2, 3), -1.0)
    mask, advantages = [[1, 0, 0], [1, 1, 1]], [3.0, -1.0]
    losses = {
        t: policy_loss(now, None, advantages, mask, loss_type=t, max_completion_length=5).loss for t in LOSS_TYPES
    }
    assert losses["grpo"] == pytest.approx((-3 + 1) / 2)
    assert losses["bnpo"] == losses["dapo"] == pytest.approx((-3 + 3) / 4)
    assert losses["dr_grpo"] == pytest.approx((-3 + 3) / (2 * 5))
    assert losses["cispo"] == pytest.approx((0.2 * 3 - 0.2 * 3) / 4)  # -0.2 A (-1)
    push = token_push(now, None, advantages, mask, loss_type="grpo")
    assert push == pytest.approx(np.array([[1.5, 0, 0], [-1 / 6, -1 / 6, -1 / 6]]))
    half = policy_loss(now, None, advantages, mask, loss_type="dapo", num_items_in_batch=8).push
    assert half == pytest.approx(np.array([[3 / 8, 0, 0], [-1 / 8, -1 / 8, -1 / 8]]))


def test_sequence_level_by_hand():
    # Row: log-ratios 0.3 and -0.1 average to 0.1; both tokens share the ratio e^0.1 and half its gradient each.
    now, old = [[-1.0, -1.0]], [[-1.3, -0.9]]
    result = policy_loss(now, old, [2.0], [[1, 1]], loss_type="grpo", importance_sampling_level="sequence")
    assert result.loss == pytest.approx(-2 * math.exp(0.1))
    assert result.ratio[0] == pytest.approx([math.exp(0.1)] * 2)
    assert result.push[0] == pytest.approx([math.exp(0.1)] * 2)
    token = policy_loss(now, old, [2.0], [[1, 1]], loss_type="grpo")
    assert token.clipped.tolist() == [[True, False]]  # e^0.3 alone is outside
    assert not result.clipped.any()


def test_kl_term_by_hand():
    # ref - now = -1: k3 = e^-1; with ratio e^0.1 and beta 0.5 the token's loss gains 0.5 e^-1 e^0.1.
    arguments = {"loss_type": "grpo", "beta": 0.5, "ref_per_token_logps": [[-2.0]]}
    plain = policy_loss([[-1.0]], [[-1.1]], [0.0], [[1]], use_bias_correction_kl=False, **arguments)
    assert plain.loss == pytest.approx(0.5 * math.exp(-1))
    assert plain.push[0, 0] == pytest.approx(-0.5 * (1 - math.exp(-1)))
    corrected = policy_loss([[-1.0]], [[-1.1]], [0.0], [[1]], **arguments)
    assert corrected.loss == pytest.approx(0.5 * math.exp(-1 + 0.1))
    # the derivative of k3 * ratio: (1 - e^-1) ratio + k3 ratio = ratio
    assert corrected.push[0, 0] == pytest.approx(-0.5 * math.exp(0.1))
    assert corrected.mean_kl == pytest.approx(math.exp(-0.9))


def test_masks_by_hand():
    assert loss_mask([[1, 1, 1, 0]], [[1, 0, 1, 1]]).tolist() == [[1, 0, 1, 0]]
    assert loss_mask([[True, False]]).tolist() == [[1, 0]]
    assert mask_truncated_completions([[1, 1], [1, 0]], [0, 1]).tolist() == [[1, 1], [0, 0]]


def test_l4_long_completions_count_less_a_token_under_grpo_only():
    table = token_weight_table([10, 1000], max_completion_length=1000)
    assert table["grpo"][0] / table["grpo"][1] == pytest.approx(100)
    assert table["grpo"] == pytest.approx([1 / 20, 1 / 2000])
    assert table["dr_grpo"] == pytest.approx([1 / 2000, 1 / 2000])
    assert table["bnpo"] == pytest.approx([1 / 1010, 1 / 1010])
    assert table["dapo"] == pytest.approx([1 / 1010, 1 / 1010])
    assert set(table) == set(LOSS_TYPES)


def test_a2_loss_is_zero_while_the_gradient_is_not():
    advantages = group_advantages([[1, 0, 1, 0]]).reshape(-1)
    now = -np.linspace(0.5, 2.0, 12).reshape(4, 3)
    for loss_type in ("grpo", "bnpo", "dapo", "dr_grpo"):
        result = policy_loss(now, now, advantages, np.ones((4, 3)), loss_type=loss_type)
        assert result.loss == pytest.approx(0, abs=1e-12)
        assert result.clip_ratio == 0
        assert (np.sign(result.push) == np.sign(advantages)[:, None]).all()


# ---- the gradient, by finite differences ----------------------------------------------------------------------------


def _batch(seed):
    rng = np.random.default_rng(seed)
    now = -rng.exponential(1.0, (4, 5))
    return {
        "per_token_logps": now,
        "old_per_token_logps": now + 0.4 * rng.normal(size=now.shape),
        "advantages": rng.normal(size=4),
        "completion_mask": (np.arange(5) < rng.integers(1, 6, 4)[:, None]).astype(float),
        "tool_mask": (rng.random(now.shape) < 0.8).astype(float),
        "ref_per_token_logps": now + 0.5 * rng.normal(size=now.shape),
    }


GRID = list(itertools.product(LOSS_TYPES, ("token", "sequence"), (0.0, 0.3), (True, False), (None, 1.3)))


@pytest.mark.parametrize(("loss_type", "level", "beta", "bias", "delta"), GRID)
def test_push_is_minus_the_slope_of_the_loss(loss_type, level, beta, bias, delta):
    batch = _batch(len(loss_type) + 7 * bias)
    chosen = {
        "loss_type": loss_type,
        "importance_sampling_level": level,
        "beta": beta,
        "use_bias_correction_kl": bias,
        "delta": delta,
        "epsilon_high": 0.3,
        "max_completion_length": 7,
    }
    push = token_push(**batch, **chosen)
    if loss_type == "cispo":  # its ratio is a constant by definition: hold it while the log-probs move
        held = policy_loss(**batch, **{**chosen, "beta": 0.0})
        factor = held.weights * np.minimum(held.ratio, 0.3) * batch["advantages"][:, None]
        kl_only = token_push(**{**batch, "advantages": np.zeros(4)}, **chosen)
        assert push == pytest.approx(factor + kl_only, abs=1e-12)
        batch["advantages"], push = np.zeros(4), kl_only
    step, slope = 1e-6, np.zeros((4, 5))
    for place in np.ndindex(4, 5):
        losses = []
        for sign in (1, -1):
            moved = batch["per_token_logps"].copy()
            moved[place] += sign * step
            losses.append(policy_loss(**{**batch, "per_token_logps": moved}, **chosen).loss)
        slope[place] = (losses[0] - losses[1]) / (2 * step)
    assert push == pytest.approx(-slope, abs=1e-8)
    assert beta == 0 or np.abs(push).max() > 1e-3


# ---- laws -----------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LOSS_TYPES), st.sampled_from(["token", "sequence"]))
def test_law_loss_is_the_weighted_sum_of_its_tokens(seed, loss_type, level):
    batch = _batch(seed)
    result = policy_loss(**batch, loss_type=loss_type, importance_sampling_level=level, beta=0.1)
    mask = batch["completion_mask"] * batch["tool_mask"]
    assert result.loss == pytest.approx((result.weights * result.per_token_loss).sum(), abs=1e-12)
    for array in (result.per_token_loss, result.ratio, result.clipped, result.kl, result.weights, result.push):
        assert array.shape == mask.shape
        assert not array[mask == 0].any()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LOSS_TYPES), st.sampled_from(["token", "sequence"]))
def test_law_padding_changes_nothing_whatever_it_holds(seed, loss_type, level):
    batch = _batch(seed)
    chosen = {"loss_type": loss_type, "importance_sampling_level": level, "beta": 0.1, "max_completion_length": 9}
    padded = {k: v if v.ndim == 1 else np.pad(v, ((0, 0), (0, 2)), constant_values=0.0) for k, v in batch.items()}
    for name in ("per_token_logps", "old_per_token_logps", "ref_per_token_logps"):
        padded[name][:, 5:] = [math.nan, -math.inf]
    before, after = policy_loss(**batch, **chosen), policy_loss(**padded, **chosen)
    assert after.loss == pytest.approx(before.loss, abs=1e-12)
    assert after.push[:, :5] == pytest.approx(before.push, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_law_weights_sum_to_one_except_under_dr_grpo(lengths):
    mask = (np.arange(40) < np.array(lengths)[:, None]).astype(float)
    for loss_type in ("grpo", "bnpo", "dapo", "cispo"):
        assert token_weights(mask, loss_type).sum() == pytest.approx(1)
    assert token_weights(mask, "dr_grpo").sum() == pytest.approx(sum(lengths) / (40 * len(lengths)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_law_without_old_log_probs_nothing_is_clipped(seed):
    batch = _batch(seed) | {"old_per_token_logps": None}
    for loss_type in ("grpo", "dapo", "dr_grpo"):
        result = policy_loss(**batch, loss_type=loss_type)
        assert result.clip_ratio == 0
        assert set(result.ratio.reshape(-1).tolist()) <= {0.0, 1.0}
        assert (np.sign(result.push) == np.sign(result.weights * batch["advantages"][:, None])).all()


def test_token_advantages_equal_row_advantages_when_constant_in_a_row():
    batch = _batch(5)
    wide = batch | {"advantages": np.repeat(batch["advantages"][:, None], 5, axis=1)}
    for level in ("token", "sequence"):
        row = policy_loss(**batch, importance_sampling_level=level, beta=0.1)
        token = policy_loss(**wide, importance_sampling_level=level, beta=0.1)
        assert token.loss == row.loss
        assert np.array_equal(token.push, row.push)


def test_truncated_rows_are_not_trained():
    batch = _batch(6) | {"tool_mask": None}
    batch["completion_mask"] = mask_truncated_completions(batch["completion_mask"], [0, 1, 0, 1])
    for loss_type in LOSS_TYPES:
        result = policy_loss(**batch, loss_type=loss_type, beta=0.1)
        assert not result.push[[1, 3]].any()
        assert result.push[[0, 2]].any()
    nothing = policy_loss(**batch | {"completion_mask": np.zeros((4, 5))}, loss_type="bnpo")
    assert nothing.loss == 0
    assert nothing.clip_ratio == 0


def test_l1_one_exploding_token_stays_finite_and_is_named():
    ref = np.array([[-1.0, -1.0], [-1.0, 0.0]])
    now = np.array([[-1.0, -1.0], [-1.0, -900.0]])
    for level in ("token", "sequence"):
        result = policy_loss(
            now, now + 900.0, [1.0, -1.0], ONES, ref_per_token_logps=ref, beta=0.04, importance_sampling_level=level
        )
        assert math.isfinite(result.loss)
        assert np.isfinite(result.push).all()
        assert result.push[1, 1] == 0  # beyond the cap nothing pulls
        assert result.worst_kl[1:] == (1, 1)
    assert policy_loss(now, now, [1.0, -1.0], ONES).worst_kl is None
    huge = policy_loss(now, now - 900.0, [-1.0, -1.0], ONES)
    assert huge.loss == pytest.approx(math.exp(20))


# ---- refusals -------------------------------------------------------------------------------------------------------

NOW = [[-1.0, -1.0], [-1.0, -1.0]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"loss_type": "grpp"}, "loss_type: 'grpp' is not known; did you mean 'grpo'?"),
        ({"loss_type": "gspo"}, "did you mean"),
        ({"importance_sampling_level": "sequences"}, "did you mean 'sequence'?"),
        ({"epsilon": -0.1}, "epsilon: -0.1 is outside 0 to 1; the nearest allowed value is 0."),
        ({"epsilon_high": math.nan}, "epsilon_high: nan is outside"),
        ({"delta": -1.0}, "delta: -1.0 is outside"),
        ({"beta": -1.0}, "beta: -1.0 is outside"),
        ({"beta": "0.04"}, "beta: '0.04' is not a number"),
        ({"beta": 0.04}, "ref_per_token_logps: beta is 0.04, so they are needed; pass them, or set beta to 0."),
        ({"log_ratio_cap": 0.0}, "log_ratio_cap: 0.0 is outside 1 to 80 nats"),
        ({"max_completion_length": 0, "loss_type": "dr_grpo"}, "max_completion_length: 0 is outside"),
        ({"num_items_in_batch": -1}, "num_items_in_batch: -1 is outside"),
        ({"per_token_logps": [[-1.0, -1.0]]}, "per_token_logps: expected shape (2, 2) (B, T), got (1, 2)."),
        ({"old_per_token_logps": [[-1.0], [-1.0]]}, "old_per_token_logps: expected shape (2, 2)"),
        ({"per_token_logps": [[-1.0, None], [-1.0, -1.0]]}, "per_token_logps: row 0, token 1 is nan"),
        ({"ref_per_token_logps": [[0, 0], [-math.inf, 0]]}, "ref_per_token_logps: row 1, token 0 is -inf"),
        ({"completion_mask": [[1, 2], [1, 1]]}, "completion_mask: a mask holds only 0 and 1."),
        ({"completion_mask": [1, 1]}, "completion_mask: expected shape (B, T), got shape (2,)."),
        ({"tool_mask": [[1, 1]]}, "tool_mask: expected shape (2, 2)"),
        ({"advantages": [1.0]}, "advantages: expected (2,), one a completion, got (1,)."),
        ({"advantages": [[1.0], [-1.0]]}, "got (2, 1); flatten (P, K) to (B,) with .reshape(-1)."),
        ({"advantages": 1.0}, "advantages: expected (2,), one a completion, got ()."),
        ({"advantages": [1.0, None]}, "an unscored completion has an advantage of 0."),
    ],
)
def test_what_cannot_be_used_is_refused_with_one_sentence(changes, sentence):
    arguments = {
        "per_token_logps": NOW,
        "old_per_token_logps": None,
        "advantages": [1.0, -1.0],
        "completion_mask": ONES,
    }
    with pytest.raises(InputError) as refusal:
        policy_loss(**{**arguments, **changes})
    assert sentence in str(refusal.value)


def test_helpers_refuse_what_does_not_fit():
    with pytest.raises(InputError, match=r"truncated: expected 2 \(one a completion\), got 1."):
        mask_truncated_completions(ONES, [True])
    with pytest.raises(InputError, match="lengths: every completion has a whole number of tokens"):
        token_weight_table([3, 0])
    with pytest.raises(InputError, match="lengths: every completion has a whole number of tokens"):
        token_weight_table([3, 2.5])

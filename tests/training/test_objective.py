"""The torch losses equal the NumPy ones: value, gradient, ratio, clip share and KL, over every setting."""

import itertools

import numpy as np
import pytest
import torch

from workbench.errors import InputError
from workbench.grpo import IMPORTANCE_SAMPLING_LEVELS, LOSS_TYPES, policy_loss
from workbench.training.objective import Objective, objective_loss

SHAPE = (4, 7)
CASES = list(itertools.product(LOSS_TYPES, IMPORTANCE_SAMPLING_LEVELS, (0.0, 0.3), (None, 1.5), (None, 0.4)))


def batch(seed):
    rng = np.random.default_rng(seed)
    now = -rng.gamma(1.0, 1.0, SHAPE)
    old, ref = now + rng.normal(0, 0.5, SHAPE), now + rng.normal(0, 0.7, SHAPE)
    mask = (np.arange(SHAPE[1]) < np.array([7, 3, 5, 0])[:, None]).astype(float)
    mask[0, 2] = 0  # a token a tool wrote
    return now, old, ref, rng.normal(size=SHAPE[0]), mask


def both(now, old, ref, advantages, mask, **settings):
    ours = torch.tensor(now, requires_grad=True)
    found = objective_loss(
        ours,
        None if old is None else torch.tensor(old),
        torch.tensor(advantages),
        torch.tensor(mask),
        Objective(**settings),
        ref_per_token_logps=torch.tensor(ref),
    )
    found.loss.backward()
    return found, ours.grad.numpy(), policy_loss(now, old, advantages, mask, ref_per_token_logps=ref, **settings)


@pytest.mark.parametrize(("loss_type", "level", "beta", "delta", "high"), CASES)
@pytest.mark.parametrize("correction", [True, False])
def test_torch_losses_equal_numpy_in_value_and_gradient(loss_type, level, beta, delta, high, correction):
    settings = {"loss_type": loss_type, "importance_sampling_level": level, "beta": beta, "delta": delta}
    for seed in range(3):
        found, gradient, expected = both(*batch(seed), **settings, epsilon_high=high, use_bias_correction_kl=correction)
        assert found.loss.item() == pytest.approx(expected.loss, abs=1e-12)
        np.testing.assert_allclose(-gradient, expected.push, atol=1e-12)
        np.testing.assert_allclose(found.ratio.numpy(), expected.ratio, atol=1e-12)
        assert found.clip_ratio == pytest.approx(expected.clip_ratio, abs=1e-12)
        assert found.mean_kl == pytest.approx(expected.mean_kl, abs=1e-12)
        assert found.max_kl == pytest.approx(expected.worst_kl[0], abs=1e-12)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_fresh_completions_have_ratio_one_and_still_a_gradient(loss_type):
    now, _, ref, advantages, mask = batch(5)
    found, gradient, expected = both(now, None, ref, advantages, mask, loss_type=loss_type)
    assert np.abs(found.ratio.numpy()[mask > 0] - 1).max() == 0
    assert np.abs(gradient).max() > 0.01
    np.testing.assert_allclose(-gradient, expected.push, atol=1e-12)


def test_masked_positions_may_hold_anything():
    now, old, ref, advantages, mask = batch(6)
    clean = both(now, old, ref, advantages, mask, beta=0.2)[0].loss.item()
    old = np.where(mask > 0, old, -1e30)
    assert both(now, old, np.where(mask > 0, ref, 1e30), advantages, mask, beta=0.2)[0].loss.item() == clean


def test_l1_a_log_prob_gap_of_100_stays_finite():
    now = torch.tensor([[-101.0, -1.0]], requires_grad=True)
    found = objective_loss(
        now,
        None,
        torch.tensor([1.0]),
        torch.ones(1, 2),
        Objective(beta=0.04),
        ref_per_token_logps=torch.tensor([[-1.0, -1.0]]),
    )
    found.loss.backward()
    assert torch.isfinite(found.loss)
    assert torch.isfinite(now.grad).all()


def test_settings_are_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'dr_grpo'"):
        Objective(loss_type="dr-grpo")
    with pytest.raises(InputError, match=r"epsilon: -0\.1"):
        Objective(epsilon=-0.1)
    with pytest.raises(InputError, match="ref_per_token_logps"):
        objective_loss(torch.zeros(1, 1), None, torch.ones(1), torch.ones(1, 1), Objective(beta=0.1))

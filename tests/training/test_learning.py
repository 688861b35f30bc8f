"""The step teaches: ten clicks on train tasks raise nano's held-out mean reward, and with the sign flipped lower it."""

import numpy as np
import pytest

from workbench.grpo import combine_rewards
from workbench.models.policy import load_policy
from workbench.models.registry import resolve
from workbench.rewards import DEFAULT_WEIGHTS, DIMENSIONS
from workbench.rollouts import sample_group
from workbench.tasks import load_tasks
from workbench.training import GroupStepper
from workbench.types import SamplingConfig

WEIGHTS = [DEFAULT_WEIGHTS[name] for name in DIMENSIONS]
CLICKS, K = 10, 16


@pytest.fixture(scope="module")
def nano():
    from pathlib import Path

    assert (Path(resolve("nano").location) / "model.safetensors").is_file(), "nano's weights are shipped"
    return load_policy("nano", "cpu")


def mean_reward(policy, tasks):
    """The mean weighted reward over held-out tasks, the same random streams each time."""
    totals = []
    for number, task in enumerate(tasks):
        group = sample_group(policy, task, SamplingConfig(num_generations=8, seed=1000 + number))
        totals.append(np.nan_to_num(group.rewards_per_func()) @ WEIGHTS)
    return float(np.mean(totals))


def after_clicks(nano, seed, flip_sign):
    stepper = GroupStepper(nano)
    for click, task in enumerate(load_tasks("desk", "train", limit=CLICKS, seed=seed)):
        sampling = SamplingConfig(num_generations=K, seed=100 * seed + click)
        group = sample_group(stepper.policy, task, sampling)
        _, advantages = combine_rewards(group.rewards_per_func()[None], WEIGHTS)
        stepper.step(group, advantages[0], flip_sign=flip_sign)
    return stepper.policy


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ten_clicks_raise_the_held_out_reward_and_flipped_ones_lower_it(nano, seed):
    held_out = load_tasks("desk", "held_out", limit=48, seed=1)
    before = mean_reward(nano, held_out)
    after = mean_reward(after_clicks(nano, seed, flip_sign=False), held_out)
    flipped = mean_reward(after_clicks(nano, seed, flip_sign=True), held_out)
    print(f"seed {seed}: before {before:.3f}, after ten clicks {after:.3f}, flipped {flipped:.3f}")
    assert flipped < before < after

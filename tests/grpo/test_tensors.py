"""Torch tensors and scalars are taken as they are, on any dtype and with or without gradient."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.grpo import group_advantages, policy_loss

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "bool"])
def test_tensors_of_every_kind_are_accepted(dtype):
    rewards = torch.tensor([[1, 0, 0, 0]], dtype=getattr(torch, dtype))
    expected = group_advantages([[1, 0, 0, 0]]).tolist()
    assert group_advantages(rewards).tolist() == expected
    assert group_advantages([rewards[0]]).tolist() == expected
    assert group_advantages([list(rewards[0])]).tolist() == expected


def test_tensors_with_gradient_are_accepted():
    rewards = torch.tensor([[1.0, 0.0, float("nan")]], requires_grad=True)
    expected = group_advantages([[1, 0, None]]).tolist()
    assert group_advantages(rewards).tolist() == expected
    assert group_advantages([[rewards[0, 0], 0, None]]).tolist() == expected
    logps = torch.full((2, 3), -1.0, requires_grad=True)
    result = policy_loss(logps, logps, torch.tensor([1.0, -1.0]), torch.ones(2, 3, dtype=torch.int64))
    assert np.sign(result.push).tolist() == [[1.0] * 3, [-1.0] * 3]


def test_a_row_of_tensors_is_refused_like_a_row_of_numbers():
    with pytest.raises(InputError, match=r"for one group write \[rewards\]"):
        group_advantages([torch.tensor(1.0), torch.tensor(0.0)])

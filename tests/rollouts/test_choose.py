"""Choosing tokens: the right distribution, the right nucleus, private streams."""

import pytest
import torch

from workbench.rollouts.choose import choose, row_streams

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, -30.0])


def shares(temperature=1.0, top_p=1.0, draws=20_000):
    uniforms = torch.linspace(0, 1, draws, dtype=torch.float64)[:-1]
    tokens = choose(LOGITS.expand(len(uniforms), -1), uniforms, temperature, top_p)
    return torch.bincount(tokens, minlength=5).double() / len(tokens)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_evenly_spread_uniforms_give_exactly_the_tempered_distribution(temperature):
    expected = (LOGITS / temperature).softmax(-1).double()
    torch.testing.assert_close(shares(temperature), expected, atol=2e-4, rtol=0)


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    probs = LOGITS.softmax(-1)
    found = shares(top_p=float(probs[0]) + 0.01)
    assert found[2:].sum() == 0
    torch.testing.assert_close(found[:2], (probs[:2] / probs[:2].sum()).double(), atol=2e-4, rtol=0)
    assert shares(top_p=0.01)[0] == 1


def test_a_nucleus_wider_than_the_first_look_is_found_by_a_full_sort(monkeypatch):
    flat = torch.zeros(1, 50)
    uniforms = torch.tensor([0.999999], dtype=torch.float64)
    whole = choose(flat, uniforms, 1.0, 0.9)
    monkeypatch.setattr("workbench.rollouts.choose.NUCLEUS", 8)
    assert choose(flat, uniforms, 1.0, 0.9).item() < 50
    assert 0 <= whole.item() < 50
    many = torch.linspace(0, 1, 1001, dtype=torch.float64)[:-1]
    assert len(set(choose(flat.expand(1000, -1), many, 1.0, 0.9).tolist())) == 45


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53, 1.0])
def test_a_token_of_probability_zero_is_never_chosen(uniform):
    logits = torch.tensor([[-float("inf"), 0.0, -float("inf"), 0.0, -float("inf")]])
    token = choose(logits, torch.tensor([uniform], dtype=torch.float64), 1.0, 1.0).item()
    assert token == (1 if uniform == 0 else 3)


def test_rows_have_private_streams_that_do_not_depend_on_k():
    few, many = row_streams(5, 2, 7), row_streams(5, 9, 7)
    assert torch.equal(few, many[:2])
    assert len({tuple(row.tolist()) for row in many}) == 9
    assert not torch.equal(row_streams(6, 2, 7), few)
    assert row_streams(2**63 - 1, 1, 3).shape == (1, 3)

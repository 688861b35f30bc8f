"""The four readings of a token strip, against numbers worked out by hand."""

import math

import pytest

from workbench.errors import InputError
from workbench.figures import token_shades
from workbench.grpo import token_push


def test_log_probability_darkens_surprising_tokens_up_to_full_at_4_nats():
    shades = token_shades("logp", logps=[0.0, -1.0, -4.0, -9.0])
    assert shades.shades == (0.0, 0.25, 1.0, 1.0)
    assert shades.sentences[1] == "probability 37 %, log-probability −1.0"


def test_entropy_tells_how_many_choices_there_were():
    shades = token_shades("entropy", logps=[-1.0], entropies=[math.log(3)])
    assert "about 3.0 equally likely choices" in shades.sentences[0]
    assert shades.shades[0] == pytest.approx(math.log(3) / 2, abs=1e-3)


def test_kl_is_the_k3_estimator_and_zero_while_the_policy_is_the_reference():
    moved = token_shades("kl", logps=[-1.0, -1.0], ref_logps=[-1.2, -1.0])
    k3 = math.exp(-0.2) + 0.2 - 1
    assert moved.shades == (pytest.approx(k3 / 0.1, abs=1e-3), 0.0)
    still = token_shades("kl", logps=[-1.0, -2.0])
    assert still.shades == (0.0, 0.0)
    assert "still is the reference" in still.summary


def test_kl_of_an_absurd_gap_stays_finite():
    assert token_shades("kl", logps=[-1000.0], ref_logps=[0.0]).shades == (1.0,)


def test_push_is_signed_and_comparable_across_a_group():
    push = token_push([[-1.0, -1.0]], [[-1.6, -1.0]], [1.0], [[1, 1]], loss_type="grpo", epsilon=0.2)[0]
    shades = token_shades("push", logps=[-1.0, -1.0], push=push, largest_push=1.0)
    assert shades.shades == (0.0, 0.5)  # the first token's ratio e^0.6 left the clip range: it is not pushed
    assert "1 of 2 tokens are not pushed" in shades.summary
    assert token_shades("push", logps=[0.0], push=[-2.0]).shades == (-1.0,)


def test_l4_the_same_advantage_pushes_a_token_of_a_long_answer_less_under_grpo():
    lengths = (10, 1000)
    mask = [[1.0] * 10 + [0.0] * 990, [1.0] * 1000]
    logps = [[-1.0] * 1000, [-1.0] * 1000]

    def pushes(loss_type):
        push = token_push(logps, None, [-1.0, -1.0], mask, loss_type=loss_type)
        return push[0, 0], push[1, 0]

    short, long = pushes("grpo")
    assert short / long == pytest.approx(lengths[1] / lengths[0])
    assert pushes("dr_grpo")[0] == pytest.approx(pushes("dr_grpo")[1])


def test_an_empty_completion_has_an_empty_strip():
    for reading in ("logp", "entropy", "kl", "push"):
        shades = token_shades(reading, logps=[], entropies=[], push=[])
        assert shades.shades == ()
        assert shades.summary


def test_wrong_readings_and_lengths_are_named():
    with pytest.raises(InputError, match="did you mean 'entropy'"):
        token_shades("entrop", logps=[-1.0])
    with pytest.raises(InputError, match="entropies: expected 2 values, one a token, got 1"):
        token_shades("entropy", logps=[-1.0, -1.0], entropies=[0.5])
    with pytest.raises(InputError, match="push: expected 1 values, one a token, got none"):
        token_shades("push", logps=[-1.0])

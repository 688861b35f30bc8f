"""The KL estimators: by hand, by law, and what one exploding token does (case L1)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.grpo import KL_ESTIMATORS, LOG_RATIO_CAP, per_token_kl

logps = st.floats(-30, 0)


def test_estimators_by_hand():
    now, ref = [[-1.0, -3.0]], [[-2.0, -2.0]]  # ref - now: -1 and +1
    assert per_token_kl(now, ref, "k1")[0] == pytest.approx([1.0, -1.0])
    assert per_token_kl(now, ref, "k2")[0] == pytest.approx([0.5, 0.5])
    assert per_token_kl(now, ref, "k3")[0] == pytest.approx([math.exp(-1), math.e - 2])
    assert per_token_kl(now, ref)[0] == pytest.approx([math.exp(-1), math.e - 2])


def test_bias_correction_multiplies_by_the_ratio_by_hand():
    corrected = per_token_kl([[-1.0, -3.0]], [[-2.0, -2.0]], ratio=[[2.0, 0.5]])
    assert corrected[0] == pytest.approx([2 * math.exp(-1), 0.5 * (math.e - 2)])


@settings(max_examples=100, deadline=None)
@given(logps, logps)
def test_law_k2_and_k3_are_never_negative_and_all_vanish_at_the_reference(now, ref):
    assert per_token_kl([[now]], [[ref]], "k3")[0, 0] >= 0
    assert per_token_kl([[now]], [[ref]], "k2")[0, 0] >= 0
    for estimator in KL_ESTIMATORS:
        assert per_token_kl([[now]], [[now]], estimator)[0, 0] == 0


def test_law_k1_and_k3_average_to_the_true_kl_and_the_correction_mends_off_policy_samples():
    p, q, old = (np.array(x) for x in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.25, 0.25, 0.5]))
    true = float((p * np.log(p / q)).sum())
    now, ref = np.log(p)[None], np.log(q)[None]
    assert (p * per_token_kl(now, ref, "k1")).sum() == pytest.approx(true, abs=1e-12)
    assert (p * per_token_kl(now, ref, "k3")).sum() == pytest.approx(true, abs=1e-12)
    assert (p * per_token_kl(now, ref, "k2")).sum() != pytest.approx(true, abs=1e-3)
    ratio = np.exp(np.log(p) - np.log(old))[None]
    assert (old * per_token_kl(now, ref, ratio=ratio)).sum() == pytest.approx(true, abs=1e-12)
    assert (old * per_token_kl(now, ref)).sum() != pytest.approx(true, abs=1e-3)


def test_small_gaps_keep_their_digits():
    # exp(d) - d - 1 loses every digit at d = 1e-9; the true value is d^2 / 2
    assert per_token_kl([[0.0]], [[1e-6]])[0, 0] == pytest.approx(5e-13, rel=1e-3)


@pytest.mark.parametrize("gap", [100.0, 800.0, 1e6])
def test_l1_one_exploding_token_stays_finite(gap):
    for estimator in KL_ESTIMATORS:
        kl = per_token_kl([[-1.0, -gap]], [[-1.0, 0.0]], estimator)
        assert np.isfinite(kl).all()
        assert kl[0, 1] == per_token_kl([[-LOG_RATIO_CAP]], [[0.0]], estimator)[0, 0]
    assert per_token_kl([[-gap]], [[0.0]], log_ratio_cap=5.0)[0, 0] == pytest.approx(math.exp(5) - 6)


def test_below_the_cap_nothing_is_changed():
    assert per_token_kl([[-19.9]], [[0.0]])[0, 0] == pytest.approx(math.exp(19.9) - 20.9, rel=1e-12)


def test_refusals_name_what_is_wrong():
    with pytest.raises(InputError, match=r"ref_per_token_logps: expected shape \(1, 2\) \(B, T\), got \(1, 1\)"):
        per_token_kl([[-1.0, -1.0]], [[-1.0]])
    with pytest.raises(InputError, match="per_token_logps: row 0, token 1 is nan"):
        per_token_kl([[-1.0, None]], [[-1.0, -1.0]])
    with pytest.raises(InputError, match="did you mean 'k3'"):
        per_token_kl([[-1.0]], [[-1.0]], "k4")
    with pytest.raises(
        InputError, match=r"log_ratio_cap: 1000\.0 is outside 1 to 80 nats; the nearest allowed value is 80"
    ):
        per_token_kl([[-1.0]], [[-1.0]], log_ratio_cap=1000.0)
    with pytest.raises(InputError, match=r"ratio: expected shape \(1, 1\)"):
        per_token_kl([[-1.0]], [[-1.0]], ratio=[[1.0, 1.0]])

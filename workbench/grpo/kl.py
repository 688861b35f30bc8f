"""How far the policy has moved from its frozen reference, token by token.

All estimators look at one sampled token's log-ratio d = ref - now. **The log-ratio is held within +-cap** (default
20 nats, a factor of 485 million) before it is used. TRL 1.14.2 does not do this: one token 100 nats apart gives e^100
there, and a run dies of it. Up to 20 nats the two agree to the last digit; beyond, the value stays finite and the
gradient of that token's KL is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.errors import checked_range
from workbench.grpo.inputs import Array, chosen, numbers, tokens

LOG_RATIO_CAP = 20.0
KL_ESTIMATORS = ("k1", "k2", "k3")


def per_token_kl(
    per_token_logps: Any,
    ref_per_token_logps: Any,
    estimator: str = "k3",
    *,
    ratio: Any = None,
    log_ratio_cap: float = LOG_RATIO_CAP,
) -> Array:
    """An estimate of KL(policy || reference) from each sampled token, (B, T), in nats.

    Args:
        per_token_logps, ref_per_token_logps: (B, T) log-probabilities now, and under the frozen reference.
        estimator: with d = ref - now: "k1" is -d (unbiased, may be negative), "k2" d^2 / 2 (biased, never negative),
            "k3" exp(d) - d - 1 (unbiased and never negative; TRL's, the default).
        ratio: (B, T), exp(now - old), multiplies the estimate: TRL's ``use_bias_correction_kl``. It makes the estimate
            right for the policy now although the tokens were sampled by an older one.
        log_ratio_cap: d is held within +-cap; 1 to 80 nats.

    Returns:
        (B, T) float64, finite.

    Raises:
        InputError: unlike shapes, a value that is missing or not finite, an unknown estimator.

    Source: Schulman 2020, "Approximating KL divergence"; DeepSeek-V3.2 2025 for the correction.

    >>> per_token_kl([[-1.0]], [[-2.0]]).round(4).tolist(), per_token_kl([[-1.0]], [[-2.0]], "k1").tolist()
    ([[0.3679]], [[1.0]])
    """
    now = numbers("per_token_logps", per_token_logps, "BT")[0]
    gap = capped(tokens("ref_per_token_logps", ref_per_token_logps, now.shape) - now, log_ratio_cap)
    tokens("per_token_logps", gap, now.shape)  # now itself may be NaN
    kl = {"k1": -gap, "k2": gap**2 / 2, "k3": k3(gap)}[chosen("estimator", estimator, KL_ESTIMATORS)]
    return kl if ratio is None else kl * tokens("ratio", ratio, now.shape)


def k3(gap: Array) -> Array:
    """exp(d) - d - 1 for d = ref - now, without the cancellation near 0."""
    return np.expm1(gap) - gap


def capped(log_ratio: Array, cap: float) -> Array:
    """``log_ratio`` held within +-cap."""
    checked_range("log_ratio_cap", cap, 1.0, 80.0, unit=" nats")
    return np.clip(log_ratio, -cap, cap)

"""Advantages in, one loss out, and how hard that loss pushes every token.

The loss is a weighted sum over tokens, loss = sum(weights * per_token_loss). Variants differ in two places only: in
the *surrogate* (what one token's loss is) and in the *weights* (how tokens are averaged). Names are TRL 1.14.2's:

========  =========================  ==================================================================
loss_type surrogate                  weight of a token (B rows, n_i tokens in its row, N in all)
========  =========================  ==================================================================
grpo      clipped ratio              1 / (B n_i): every completion counts the same, long ones a token less
bnpo      clipped ratio              1 / N
dapo      clipped ratio              1 / num_items_in_batch (N when not given)
dr_grpo   clipped ratio              1 / (B max_completion_length)
cispo     capped ratio x log-prob    as dapo; ``epsilon_high`` is the cap itself
========  =========================  ==================================================================

``importance_sampling_level="sequence"`` replaces each token's ratio by its row's geometric mean (GSPO).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.errors import InputError, checked_range
from workbench.grpo.inputs import Array, Mask, chosen, floats, numbers, tokens
from workbench.grpo.kl import LOG_RATIO_CAP, capped, k3

LOSS_TYPES = ("grpo", "bnpo", "dapo", "dr_grpo", "cispo")
IMPORTANCE_SAMPLING_LEVELS = ("token", "sequence")


@dataclass(frozen=True, slots=True, eq=False)
class PolicyLoss:
    """What :func:`policy_loss` found. Arrays are (B, T) and 0 (or False) where the model did not write the token."""

    loss: float
    """Not a progress signal: with fresh completions and no KL it is near 0 however well training goes."""
    per_token_loss: Array
    """Surrogate plus beta times KL, before the weights."""
    ratio: Array
    """exp(now - old), of the token or of its row; what TRL calls coef_1, before ``delta``."""
    clipped: Mask
    """Where the clip removed the gradient of the surrogate (TRL's region clip; cispo: where the cap held it)."""
    clip_ratio: float
    """The clipped share of tokens (of rows at sequence level), as TRL logs it; 0 while each batch is used once."""
    kl: Array | None
    """Per-token KL as it enters the loss, bias correction included; None when no reference was given."""
    weights: Array
    """How much a token's loss counts: loss = sum(weights * per_token_loss)."""
    push: Array = field(repr=False)
    """Minus the gradient of the loss by each token's log-probability: see :func:`token_push`."""

    @property
    def mean_kl(self) -> float | None:
        """The KL averaged over all trained tokens, as TRL logs it; None without a reference."""
        return None if self.kl is None else float(self.kl.sum() / max(np.count_nonzero(self.weights), 1))

    @property
    def worst_kl(self) -> tuple[float, int, int] | None:
        """The largest per-token KL and its (row, token); None without a reference."""
        if self.kl is None:
            return None
        row, token = np.unravel_index(int(self.kl.argmax()), self.kl.shape)
        return float(self.kl[row, token]), int(row), int(token)


def policy_loss(
    per_token_logps: Any,
    old_per_token_logps: Any,
    advantages: Any,
    completion_mask: Any,
    *,
    tool_mask: Any = None,
    ref_per_token_logps: Any = None,
    loss_type: str = "dapo",
    importance_sampling_level: str = "token",
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
    delta: float | None = None,
    beta: float = 0.0,
    use_bias_correction_kl: bool = True,
    max_completion_length: int | None = None,
    num_items_in_batch: float | None = None,
    log_ratio_cap: float = LOG_RATIO_CAP,
) -> PolicyLoss:
    """The GRPO-family loss of one batch, equal to TRL 1.14.2's ``_compute_loss``, with its gradient.

    Args:
        per_token_logps, old_per_token_logps: (B, T) log-probabilities now and when sampled; old None = equal to now.
        advantages: (B,), one a completion; (B, T) gives each token its own.
        completion_mask, tool_mask: (B, T) of 0 and 1, see :func:`loss_mask`.
        ref_per_token_logps: (B, T) under the frozen reference; needed when beta > 0, else only reported.
        loss_type, importance_sampling_level: see the table of this module.
        epsilon, epsilon_high: the ratio is clipped to [1 - epsilon, 1 + epsilon_high]; epsilon_high None = epsilon.
            For cispo epsilon_high caps the ratio itself (ScaleRL: 5.0); left out it is epsilon there too, as in TRL.
        delta: cap on the ratio where the clip does not act (two-sided clipping); None = none.
        beta: weight of the KL (k3) to the reference; 0 = none.
        use_bias_correction_kl: multiply the KL by the ratio; its gradient then flows through the ratio too.
        max_completion_length: tokens, for dr_grpo; None = T.
        num_items_in_batch: tokens, for dapo and cispo, when this is one of several micro-batches; None = N.
        log_ratio_cap: now - old and ref - now are held within +-cap nats, so nothing overflows.

    Raises:
        InputError: unlike shapes, a log-probability that is not finite, an unknown name, a value out of range.

    >>> result = policy_loss([[-1.0, -2.0]], [[-1.5, -2.0]], [1.0], [[1, 1]], epsilon=0.2)
    >>> round(result.loss, 4), result.clipped.tolist(), result.push.tolist()
    (-1.1, [[True, False]], [[0.0, 0.5]])
    """
    mask = loss_mask(completion_mask, tool_mask)
    shape, used = mask.shape, mask > 0
    high = _checked(epsilon, epsilon_high, delta, beta, loss_type, importance_sampling_level)
    now = tokens("per_token_logps", per_token_logps, shape, used)
    old = now if old_per_token_logps is None else tokens("old_per_token_logps", old_per_token_logps, shape, used)
    credit = _credit(advantages, mask)
    weights = token_weights(mask, loss_type, max_completion_length, num_items_in_batch)

    ratio, chain = _importance(now - old, mask, importance_sampling_level, log_ratio_cap)
    if loss_type == "cispo":
        value, by_now, by_ratio = _cispo(ratio, credit, now, high)
        clipped = (ratio > high) & (credit > 0)
    else:
        value, by_ratio = _clipped(ratio, credit, epsilon, high, delta)
        by_now, held = np.zeros(shape), ratio if delta is None else np.minimum(ratio, delta)
        clipped = ((held < 1 - epsilon) & (credit < 0)) | ((held > 1 + high) & (credit > 0))
    kl = None
    if ref_per_token_logps is not None:
        gap = tokens("ref_per_token_logps", ref_per_token_logps, shape, used) - now
        kl, kl_by_now, kl_by_ratio = _kl(gap, ratio if use_bias_correction_kl else None, log_ratio_cap)
        value, by_now, by_ratio = value + beta * kl, by_now + beta * kl_by_now, by_ratio + beta * kl_by_ratio
    elif beta:
        raise InputError(f"ref_per_token_logps: beta is {beta:g}, so they are needed; pass them, or set beta to 0.")

    clipped &= used
    share = clipped.sum() / max(mask.sum(), 1) if importance_sampling_level == "token" else clipped.any(axis=1).mean()
    value, kl = np.where(used, value, 0.0), None if kl is None else np.where(used, kl, 0.0)
    push = 0.0 - (weights * by_now + chain(weights * by_ratio * ratio))
    loss = float((weights * value).sum())
    return PolicyLoss(loss, value, np.where(used, ratio, 0.0), clipped, float(share), kl, weights, push)


def token_push(*args: Any, **kwargs: Any) -> Array:
    """How strongly the update pushes each sampled token up (+) or down (-): arguments of :func:`policy_loss`, (B, T).

    It is minus the gradient of the loss by that token's log-probability, in closed form; 0 where the token is
    masked, clipped, or in a group without signal.

    >>> token_push([[-1.0, -1.0], [-1.0, -1.0]], None, [1.0, -1.0], [[1, 1], [1, 0]], loss_type="grpo").tolist()
    [[0.25, 0.25], [-0.5, 0.0]]
    """
    return policy_loss(*args, **kwargs).push


def loss_mask(completion_mask: Any, tool_mask: Any = None) -> Array:
    """(B, T), 1 where the model wrote the token and it is trained: completion_mask * tool_mask.

    >>> loss_mask([[1, 1, 1, 0]], [[1, 0, 1, 1]]).tolist()
    [[1.0, 0.0, 1.0, 0.0]]
    """
    mask = _binary("completion_mask", completion_mask)
    return mask if tool_mask is None else mask * tokens("tool_mask", _binary("tool_mask", tool_mask), mask.shape)


def mask_truncated_completions(completion_mask: Any, truncated: Any) -> Array:
    """``completion_mask`` (B, T) with all-0 rows where ``truncated`` (B,): cut-off completions are not trained.

    >>> mask_truncated_completions([[1, 1], [1, 0]], [True, False]).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    mask, cut = _binary("completion_mask", completion_mask), _binary("truncated", truncated, "B")
    if len(cut) != len(mask):
        raise InputError(f"truncated: expected {len(mask)} (one a completion), got {len(cut)}.")
    return mask * (1 - cut[:, None])


def token_weights(
    mask: Any, loss_type: str, max_completion_length: int | None = None, num_items_in_batch: float | None = None
) -> Array:
    """How much each token's loss counts under ``loss_type``, (B, T), 0 where masked; see the table of this module."""
    mask = _binary("mask", mask)
    chosen("loss_type", loss_type, LOSS_TYPES)
    if max_completion_length is not None:
        checked_range("max_completion_length", max_completion_length, 1, 2**31, unit=" tokens")
    if num_items_in_batch is not None:
        checked_range("num_items_in_batch", num_items_in_batch, 0, 2**53, unit=" tokens")
    if loss_type == "grpo":
        return mask / np.maximum(mask.sum(axis=1, keepdims=True), 1) / len(mask)
    if loss_type == "dr_grpo":
        return mask / (len(mask) * (max_completion_length or mask.shape[1]))
    given = num_items_in_batch if loss_type in ("dapo", "cispo") else None
    return mask / max(mask.sum() if given is None else given, 1)


def token_weight_table(lengths: Any, max_completion_length: int | None = None) -> dict[str, Array]:
    """Loss type -> the weight of one token of each completion, (B,), from the completions' ``lengths`` in tokens.

    Under "grpo" a token of a long completion counts less, so a wrong answer is punished less a token the longer it
    grows; under "dr_grpo", "bnpo" and "dapo" every token counts the same.

    >>> table = token_weight_table([10, 1000])
    >>> table["grpo"][0] / table["grpo"][1], table["dr_grpo"][0] / table["dr_grpo"][1]
    (np.float64(100.0), np.float64(1.0))
    """
    sizes = numbers("lengths", lengths, "B")[0]
    if not (sizes >= 1).all() or (sizes % 1).any():
        raise InputError("lengths: every completion has a whole number of tokens, at least 1.")
    mask = (np.arange(int(sizes.max())) < sizes[:, None]).astype(np.float64)
    return {loss_type: token_weights(mask, loss_type, max_completion_length)[:, 0] for loss_type in LOSS_TYPES}


def _importance(log_ratio: Array, mask: Array, level: str, cap: float) -> tuple[Array, Any]:
    """The ratio (B, T), and the map from a gradient by each token's log-ratio to one by its log-probability."""
    if level == "token":
        inside = np.abs(log_ratio) <= cap
        return np.exp(capped(log_ratio, cap)), lambda gradient: gradient * inside
    share = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    mean = (log_ratio * share).sum(axis=1, keepdims=True)
    share = share * (np.abs(mean) <= cap)
    ratio = np.broadcast_to(np.exp(capped(mean, cap)), mask.shape)
    return ratio, lambda gradient: gradient.sum(axis=1, keepdims=True) * share


def _clipped(ratio: Array, credit: Array, low: float, high: float, delta: float | None) -> tuple[Array, Array]:
    """-min(ratio A, clip(ratio) A), and its derivative by the ratio (the mean of both sides where they tie)."""
    free = ratio if delta is None else np.minimum(ratio, delta)
    bound = np.clip(ratio, 1 - low, 1 + high)
    by_free, by_bound = free == ratio, bound == ratio
    one, two = free * credit, bound * credit
    slope = np.where(one < two, by_free, np.where(one > two, by_bound, (by_free * 1.0 + by_bound) / 2))
    return -np.minimum(one, two), -slope * credit


def _cispo(ratio: Array, credit: Array, now: Array, cap: float) -> tuple[Array, Array, Array]:
    """-min(ratio, cap) A now, the capped ratio being a constant: its derivatives by now and by the ratio."""
    held = np.minimum(ratio, cap)
    return -held * credit * now, -held * credit, np.zeros_like(ratio)


def _kl(gap: Array, ratio: Array | None, cap: float) -> tuple[Array, Array, Array]:
    """k3 of gap = ref - now, times the ratio when given, and its derivatives by now and by the ratio."""
    held, factor = capped(gap, cap), 1.0 if ratio is None else ratio
    kl, slope = k3(held), -np.expm1(held) * (np.abs(gap) <= cap)
    return kl * factor, slope * factor, np.zeros_like(kl) if ratio is None else kl


def _credit(advantages: Any, mask: Array) -> Array:
    credit = floats("advantages", advantages)
    if not np.isfinite(credit).all():
        raise InputError("advantages: one is not finite; an unscored completion has an advantage of 0.")
    if credit.ndim not in (1, 2) or credit.shape != mask.shape[: credit.ndim]:
        hint = "; flatten (P, K) to (B,) with .reshape(-1)" if credit.size == len(mask) else ""
        raise InputError(f"advantages: expected ({len(mask)},), one a completion, got {credit.shape}{hint}.")
    return credit if credit.ndim == 2 else np.broadcast_to(credit[:, None], mask.shape)


def _checked(
    epsilon: float, epsilon_high: float | None, delta: float | None, beta: float, loss_type: str, level: str
) -> float:
    """epsilon_high with its default, once all settings are in range."""
    chosen("loss_type", loss_type, LOSS_TYPES)
    chosen("importance_sampling_level", level, IMPORTANCE_SAMPLING_LEVELS)
    checked_range("epsilon", epsilon, 0.0, 1.0)
    checked_range("beta", beta, 0.0, 1e6)
    if delta is not None:
        checked_range("delta", delta, 0.0, 1e6)
    return epsilon if epsilon_high is None else checked_range("epsilon_high", epsilon_high, 0.0, 1e6)


def _binary(name: str, values: Any, axes: str = "BT") -> Array:
    mask = numbers(name, values, axes)[0]
    if not ((mask == 0) | (mask == 1)).all():
        raise InputError(f"{name}: a mask holds only 0 and 1.")
    return mask

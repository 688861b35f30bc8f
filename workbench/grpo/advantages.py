"""Rewards in, advantages out: how much better a completion did than the others of its own group.

Everything is float64 and centred before it is scaled. Two departures from TRL 1.14.2, both on purpose:

* **A constant group is exactly 0.** TRL works in float32, where six rewards of 1000.1 have a mean that is not 1000.1
  and an advantage of -0.37 each. Here rewards that differ by no more than the rounding of their own sum are equal.
* **A weight of 0 scores nothing.** TRL counts a completion that only a zero-weight function could score as a reward
  of 0, which drags the others' mean; here it is unscored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.grpo.inputs import Array, Mask, chosen, groups, numbers

SCALE_REWARDS = ("group", "batch", "none")
AGGREGATIONS = ("sum_then_normalize", "normalize_then_sum")
STD_CONVENTIONS = {"sample": (1, 1e-4), "population": (0, 1e-8)}
"""Name -> (ddof, epsilon added to the std): "sample" is TRL's, "population" the original formula's."""

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def group_advantages(rewards: Any, scale_rewards: str = "group", std: str = "sample") -> Array:
    """Each completion's reward relative to its own group: (reward - mean) / (std + epsilon).

    Args:
        rewards: (P, K), NaN or None = unscored: left out of mean and std, and given an advantage of 0.
        scale_rewards: divide by the std of the "group", of the whole "batch", or by nothing ("none": Dr. GRPO).
        std: "sample" (ddof 1, epsilon 1e-4: TRL) or "population" (ddof 0, epsilon 1e-8: the original formula).

    Returns:
        (P, K) float64. Every row sums to 0; a constant row, or one with fewer than two scored, is exactly 0; with
        "group", no entry exceeds (K-1)/sqrt(K) for the sample std, sqrt(K-1) for the population std.

    Raises:
        InputError: a shape other than (P, K), K < 2, text, an infinity, or an unknown name.

    Source: Shao et al. 2024 (GRPO), section 4.1; Liu et al. 2025 (Dr. GRPO) for "none".

    >>> group_advantages([[1, 0, 0, 0]], std="population").round(4).tolist()
    [[1.7321, -0.5774, -0.5774, -0.5774]]
    >>> group_advantages([[0.5, None, 0.25]], scale_rewards="none").tolist()
    [[0.125, 0.0, -0.125]]
    """
    values, scored = groups("rewards", rewards)
    return _relative(values, scored, None, scale_rewards, std)


def leave_one_out_advantages(rewards: Any) -> Array:
    """Each reward minus the mean of the *other* scored completions of its group (RLOO), unscaled; (P, K) float64.

    It is n/(n-1) times the centred reward, for n scored completions. NaN and constant groups as in
    :func:`group_advantages`. Source: Ahmadian et al. 2024.

    >>> leave_one_out_advantages([[1, 0, 0.5]]).tolist()
    [[0.75, -0.75, 0.0]]
    """
    values, scored = groups("rewards", rewards)
    count = _count(values, scored)
    return centred(values, scored) * (count / np.maximum(count - 1, 1))


def combine_rewards(
    rewards_per_func: Any,
    reward_weights: Any = None,
    aggregation: str = "sum_then_normalize",
    scale_rewards: str = "group",
    std: str = "sample",
    missing: str = "skip",
) -> tuple[Array, Array]:
    """Several reward functions to one reward and one advantage a completion.

    Args:
        rewards_per_func: (P, K, F), NaN where a function gave no score.
        reward_weights: (F,), default 1 each, of any sign.
        aggregation: "sum_then_normalize" adds the weighted scores, then :func:`group_advantages`.
            "normalize_then_sum" (GDPO) scales each function within its group first, adds the weighted results, then
            divides by their std over the batch; ``scale_rewards`` has no say in it, as in TRL.
        scale_rewards, std: as in :func:`group_advantages`.
        missing: what a completion scored by only *some* functions gets. "skip" (TRL) leaves the term out of its sum,
            which is right when the function does not apply to that prompt at all. "exclude" makes the completion
            unscored, which is right when a judge failed: an outage must not count as a 0.

    Returns:
        (rewards, advantages), both (P, K) float64. ``rewards`` is the weighted sum under either aggregation, NaN for
        a completion that no function of non-zero weight could score; its advantage is 0.

    Raises:
        InputError: as :func:`group_advantages`, and when there is not one weight a function.

    Source: Liu et al. 2026 (GDPO) for "normalize_then_sum".

    >>> rewards, advantages = combine_rewards([[[1, 0.5], [0, 1], [None, None]]], [0.5, 1.0], scale_rewards="none")
    >>> rewards.tolist(), advantages.tolist()
    ([[1.0, 1.0, nan]], [[0.0, 0.0, 0.0]])
    """
    values, known = groups("rewards_per_func", rewards_per_func, "PKF")
    weights = checked_weights(reward_weights, values.shape[2])
    chosen("aggregation", aggregation, AGGREGATIONS)
    chosen("std", std, tuple(STD_CONVENTIONS))
    values, known = _with_missing(values, known, weights, missing)
    rewards, scored, size = weighted_sum(values, known, weights)
    if aggregation == "sum_then_normalize":
        return rewards, _relative(rewards, scored, size, scale_rewards, std)
    chosen("scale_rewards", scale_rewards, SCALE_REWARDS)
    return rewards, _normalize_then_sum(values, known, weights, scored, std)


def weighted_rewards(rewards_per_func: Any, reward_weights: Any = None, missing: str = "skip") -> Array:
    """The weighted sum of every completion's scores, (P, K) from (P, K, F): the first result of combine_rewards.

    >>> weighted_rewards([[[1.0, 0.5], [0.0, 1.0]]], [0.5, 0.25]).tolist()
    [[0.625, 0.25]]
    """
    values, known = numbers("rewards_per_func", rewards_per_func, "PKF")
    weights = checked_weights(reward_weights, values.shape[2])
    values, known = _with_missing(values, known, weights, missing)
    return weighted_sum(values, known, weights)[0]


def checked_weights(reward_weights: Any, functions: int) -> Array:
    """``reward_weights`` as (F,) float64, 1 each when None; an InputError when there is not one for each function."""
    weights, given = numbers("reward_weights", np.ones(functions) if reward_weights is None else reward_weights, "F")
    if given is not None:
        raise InputError(
            f"reward_weights[{int(np.argmin(given))}]: a weight is missing; use 0 to leave a function out."
        )
    if len(weights) != functions:
        raise InputError(f"reward_weights: expected {functions} (one a reward function), got {len(weights)}.")
    return weights


def weighted_sum(values: Array, known: Mask | None, weights: Array) -> tuple[Array, Mask | None, Array]:
    """(rewards, which are scored, sum of the terms' absolute values), each (P, K); rewards are NaN where unscored."""
    terms = (values if known is None else np.where(known, values, 0.0)).reshape(-1, len(weights))
    rewards = (terms @ weights).reshape(values.shape[:2])
    size = (np.abs(terms) @ np.abs(weights)).reshape(values.shape[:2])
    if known is None:
        return rewards, None, size
    counts = (weights != 0) | (not weights.any())
    scored = np.logical_or.reduce([known[:, :, f] for f in np.flatnonzero(counts)])  # 50 x faster than any(axis=2)
    return np.where(scored, rewards, np.nan), scored, size


def centred(values: Array, scored: Mask | None, size: Array | None = None) -> Array:
    """``values`` (P, K) minus the mean of their scored group members; exactly 0 where unscored or all equal.

    The first scored member is subtracted before the mean, so that equal values leave exact zeros at any scale.
    ``size`` (P, K) is the magnitude of the numbers each value was made from, by default its own; differences below
    the rounding of that are none.
    """
    values, start = np.asfortranarray(values), values[:, :1]  # K long rows instead of P short ones: 5 x faster
    if scored is not None:
        scored = np.asfortranarray(scored)
        start = np.where(scored.any(axis=1), values[np.arange(len(values)), scored.argmax(axis=1)], 0.0)[:, None]
        values = np.where(scored, values, start)
    largest = np.maximum(values.max(1), -values.min(1)) if size is None else np.asfortranarray(size).max(axis=1)
    result = values - start
    equal = result.max(axis=1) - result.min(axis=1) <= _ROUNDING * largest
    result -= result.sum(axis=1, keepdims=True) / np.maximum(_count(values, scored), 1)
    result[equal] = 0.0
    return result if scored is None else np.where(scored, result, 0.0)


def _relative(values: Array, scored: Mask | None, size: Array | None, scale_rewards: str, std: str) -> Array:
    chosen("std", std, tuple(STD_CONVENTIONS))
    result = centred(values, scored, size)
    if chosen("scale_rewards", scale_rewards, SCALE_REWARDS) == "group":
        result = _scaled(result, result, _count(values, scored), std)
    elif scale_rewards == "batch":
        flat = None if scored is None else scored.reshape(1, -1)
        whole = centred(values.reshape(1, -1), flat, None if size is None else size.reshape(1, -1))
        result = _scaled(result, whole, _count(whole, flat), std)
    return np.ascontiguousarray(result)


def _scaled(values: Array, deviations: Array, count: Array | int, std: str) -> Array:
    """``values`` divided by (std + epsilon), the std taken from rows of deviations from their mean."""
    ddof, epsilon = STD_CONVENTIONS[std]
    squares = np.einsum("pk,pk->p", deviations, deviations)[:, None]
    return values / (np.sqrt(squares / np.maximum(count - ddof, 1)) + epsilon)


def _normalize_then_sum(values: Array, known: Mask | None, weights: Array, scored: Mask | None, std: str) -> Array:
    total = np.zeros(values.shape[:2], order="F")
    for f, weight in enumerate(weights):
        one, mask = np.ascontiguousarray(values[:, :, f]), None if known is None else known[:, :, f]
        deviations = centred(one, mask)
        total += weight * _scaled(deviations, deviations, _count(one, mask), std)
    # total sums to 0 in every group, so the mean of the batch, which TRL subtracts here, is 0 already
    total = np.ascontiguousarray(total)
    return _scaled(total, total.reshape(1, -1), total.size if scored is None else int(scored.sum()), std)


def _with_missing(values: Array, known: Mask | None, weights: Array, missing: str) -> tuple[Array, Mask | None]:
    if chosen("missing", missing, ("skip", "exclude")) == "skip" or known is None:
        return values, known
    complete = (known | (weights == 0)).all(axis=2, keepdims=True)
    return values, known & complete


def _count(values: Array, scored: Mask | None) -> Any:
    """How many of each row are scored, (P, 1), or plain K when all are."""
    return values.shape[1] if scored is None else scored.sum(axis=1, keepdims=True)

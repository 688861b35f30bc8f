"""The numbers behind the Group screen: one pass from a group and the settings to everything the views say.

All arithmetic is :mod:`workbench.grpo`'s; nothing is computed a second time in the browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.figures import flipped_signs
from workbench.grpo import combine_rewards, token_push, variance_shares
from workbench.rewards import DIMENSIONS
from workbench.types import Group
from workbench.ui.group_state import DEFAULT_STATE, GroupState

JUDGED_BY = ("scale_rewards", "std", "aggregation", *DIMENSIONS)  # the settings that advantages depend on


@dataclass(frozen=True, eq=False)
class GroupNumbers:
    """What the settings make of a group of K completions scored on F dimensions.

    ``scores`` (K, F) and ``rewards`` (K,) are NaN where unscored; ``advantages`` and ``reference`` (K,) are under
    these settings and under the defaults; ``shares`` (F,) say how much of the spread of rewards each dimension
    makes (they sum to 1; all 0 in a dead group); ``dead`` is None, or why the group teaches nothing.
    """

    scores: np.ndarray
    weights: np.ndarray
    rewards: np.ndarray
    advantages: np.ndarray
    reference: np.ndarray
    flipped: tuple[int, ...]
    shares: np.ndarray
    mean: float
    spread: float
    dead: str | None

    @property
    def unscored(self) -> int:
        """How many completions have no reward."""
        return int(np.isnan(self.rewards).sum())

    def selected(self, state: GroupState) -> int:
        """The index of the completion on show: the one chosen, or the best while none is."""
        if 1 <= state.selected <= len(self.rewards):
            return state.selected - 1
        return int(np.nanargmax(self.rewards)) if self.unscored < len(self.rewards) else 0


def group_numbers(group: Group, state: GroupState) -> GroupNumbers:
    """Weigh, compare and summarise a scored group under the settings of ``state``."""
    scores = group.rewards_per_func()
    weights = np.array([state.weights.get(name, 0.0) for name in group.dimensions])
    rewards, advantages = _judged(scores, weights, state)
    if all(getattr(state, name) == getattr(DEFAULT_STATE, name) for name in JUDGED_BY):
        reference = advantages
    else:
        usual = np.array([DEFAULT_STATE.weights.get(name, 0.0) for name in group.dimensions])
        reference = _judged(scores, usual, DEFAULT_STATE)[1]
    known = rewards[~np.isnan(rewards)]
    ddof = 1 if state.std == "sample" else 0
    return GroupNumbers(
        scores=scores,
        weights=weights,
        rewards=rewards,
        advantages=advantages,
        reference=reference,
        flipped=flipped_signs(advantages, reference),
        shares=_shares(scores, weights),
        mean=float(known.mean()) if known.size else float("nan"),
        spread=float(known.std(ddof=ddof)) if known.size > ddof else 0.0,
        dead=_why_dead(rewards, advantages),
    )


def graded_weights(group: Group, state: GroupState) -> GroupState | None:
    """Settings under which this group is not dead, by weighing the dimensions that differ; None when none differs."""
    spread = np.ptp(np.nan_to_num(group.rewards_per_func()), axis=0) if group.scores else np.zeros(0)
    differing = [name for name, width in zip(group.dimensions, spread, strict=True) if width > 1e-9]
    even = {name: 1.0 / max(len(differing), 1) if name in differing else 0.0 for name in DIMENSIONS}
    for weights in (DEFAULT_STATE.weights, even):
        changes: dict[str, Any] = {name: round(value, 2) for name, value in weights.items()}
        candidate = replace(state, **changes)
        if differing and group_numbers(group, candidate).dead is None:
            return candidate
    return None


def token_pushes(
    group: Group, advantages: np.ndarray, state: GroupState, now: Sequence[Sequence[float]] | None = None
) -> tuple[np.ndarray, ...]:
    """The push on every token of every completion, K arrays of their own lengths, by :func:`token_push`.

    ``now`` are the log-probabilities under a policy that has moved since; None is the policy that sampled.
    """
    lengths = [c.length for c in group.completions]
    if not max(lengths, default=0):
        return tuple(np.zeros(0) for _ in lengths)
    old = padded([c.logps for c in group.completions])
    current = old if now is None else padded(now)
    ref = padded([c.logps if c.ref_logps is None else c.ref_logps for c in group.completions])
    mask = np.arange(old.shape[1]) < np.array(lengths)[:, None]
    push = token_push(
        current,
        old,
        advantages,
        mask.astype(float),
        ref_per_token_logps=ref,
        loss_type=state.loss_type,
        epsilon=state.epsilon,
        beta=state.beta,
        max_completion_length=max(state.max_completion_length, old.shape[1]),
    )
    return tuple(push[k, :n] for k, n in enumerate(lengths))


def padded(rows: Sequence[Sequence[float]]) -> np.ndarray:
    """Rows of unlike length as one (K, T) float64 array, zeros at the end."""
    width = max((len(row) for row in rows), default=0)
    result = np.zeros((len(rows), width))
    for k, row in enumerate(rows):
        result[k, : len(row)] = row
    return result


def _judged(scores: np.ndarray, weights: np.ndarray, state: GroupState) -> tuple[np.ndarray, np.ndarray]:
    """(rewards, advantages), each (K,). A completion whose judge failed on a dimension is left out, not scored 0."""
    rewards, advantages = combine_rewards(
        scores[None], weights, state.aggregation, state.scale_rewards, state.std, missing="exclude"
    )
    return rewards[0], advantages[0]


def _shares(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Each dimension's share of the variance of the rewards, over the completions that all dimensions scored."""
    whole = scores[~np.isnan(scores).any(axis=1)]
    return np.nan_to_num(variance_shares(whole[None], weights)) if len(whole) >= 2 else np.zeros(len(weights))


def _why_dead(rewards: np.ndarray, advantages: np.ndarray) -> str | None:
    if advantages.any():
        return None
    known = rewards[~np.isnan(rewards)]
    if len(known) < 2:
        return f"{len(known)} of {len(rewards)} could be scored"
    everyone = f"all {len(rewards)}" if len(known) == len(rewards) else f"all {len(known)} that were scored"
    return f"{everyone} scored {known[0]:.2f}"

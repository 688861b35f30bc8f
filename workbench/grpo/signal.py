"""Do these groups carry any signal: which are dead, which reward decides, how many completions are enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

import numpy as np

from workbench.errors import InputError, checked_range, unknown
from workbench.grpo.advantages import centred, checked_weights, weighted_sum
from workbench.grpo.inputs import Array, groups, numbers


class GroupState(StrEnum):
    """Whether a group teaches anything, and if not, why."""

    ALIVE = "alive"  # at least two different rewards
    ALL_FAIL = "all fail"  # too hard: all equal, at or below fail_at
    ALL_PASS = "all pass"  # too easy: all equal, at or above pass_at
    ALL_EQUAL = "all equal"  # all the same middling reward
    UNSCORED = "unscored"  # fewer than two completions could be scored


@dataclass(frozen=True, slots=True)
class DeadGroups:
    """The state of every group of a batch, in order."""

    states: tuple[GroupState, ...]

    @property
    def share(self) -> float:
        """The share of dead groups, 0 to 1: what ``frac_reward_zero_std`` should be."""
        return sum(state is not GroupState.ALIVE for state in self.states) / len(self.states)

    @property
    def counts(self) -> dict[GroupState, int]:
        """How many groups are in each state."""
        return {state: self.states.count(state) for state in GroupState}

    def where(self, *states: GroupState) -> tuple[int, ...]:
        """The positions of the groups in these states; of all dead ones when none is named."""
        wanted = states or tuple(state for state in GroupState if state is not GroupState.ALIVE)
        return tuple(i for i, state in enumerate(self.states) if state in wanted)


def dead_groups(rewards: Any, *, fail_at: float = 0.0, pass_at: float = 1.0) -> DeadGroups:
    """Each group's state from its rewards (P, K), NaN = unscored: which are dead, and why.

    A dead group is one whose advantages are all exactly 0 under :func:`group_advantages`, whatever the spread of the
    batch. Source of the distinction: a too hard prompt and a too easy one look the same in a loss curve.

    >>> [state.value for state in dead_groups([[-8, -8], [2, 2], [0, 1], [0.5, 0.5], [1, None]]).states]
    ['all fail', 'all pass', 'alive', 'all equal', 'unscored']
    """
    values, scored = groups("rewards", rewards)
    seen = np.ones(values.shape, dtype=bool) if scored is None else scored
    level = np.where(seen, values, -np.inf).max(axis=1)
    found = np.select(
        [
            centred(values, scored).any(axis=1),
            seen.sum(axis=1) < 2,
            level <= fail_at,
            level >= pass_at - 1e-9,
        ],
        [0, 4, 1, 2],
        default=3,
    )
    order = tuple(GroupState)  # alive, all fail, all pass, all equal, unscored
    return DeadGroups(tuple(order[i] for i in found))


def variance_shares(rewards_per_func: Any, reward_weights: Any = None) -> Array:
    """How much of the variance of the reward *within groups* comes from each function, (F,), summing to 1.

    A function's share is the covariance of its weighted score with the weighted sum, over the variance of the sum, so
    what two functions do together is split evenly; a function that works against the others has a negative share.
    Unscored terms count as in the sum itself. All NaN when no group has any variance.

    Args:
        rewards_per_func: (P, K, F), NaN = unscored. reward_weights: (F,), default 1 each.

    >>> variance_shares([[[1, 0], [0, 0.5], [1, 0.5], [0, 0]]], [1, 1]).tolist()
    [0.8, 0.2]
    """
    values, known = groups("rewards_per_func", rewards_per_func, "PKF")
    weights = checked_weights(reward_weights, values.shape[2])
    rewards, scored, size = weighted_sum(values, known, weights)
    total = centred(rewards, scored, size)
    terms = (values if known is None else np.where(known, values, 0.0)) * weights
    variance = float((total**2).sum())
    return np.einsum("pkf,pk->f", terms, total) / variance if variance else np.full(len(weights), np.nan)


def dominance_warning(
    rewards_per_func: Any, reward_weights: Any = None, *, names: Sequence[str] | None = None, limit: float = 0.9
) -> str | None:
    """One sentence when one of several functions makes more than ``limit`` of the variance within groups, else None."""
    shares = variance_shares(rewards_per_func, reward_weights)
    labels = [f"function {i}" for i in range(len(shares))] if names is None else list(names)
    if len(labels) != len(shares):
        raise InputError(f"names: expected {len(shares)} (one a reward function), got {len(labels)}.")
    if len(shares) < 2 or not np.nanmax(np.append(shares, 0.0)) > limit:
        return None
    top = int(np.argmax(shares))
    return (
        f"{labels[top]} decides {shares[top]:.0%} of who is pushed up: the other functions hardly count; "
        "lower its weight or scale, or choose normalize_then_sum."
    )


def dead_probability(pass_rate: Any, num_generations: int) -> Any:
    """P(all K pass or all K fail) = p^K + (1 - p)^K for a pass/fail reward; ``pass_rate`` a number or an array.

    >>> round(dead_probability(0.18, 2), 2), round(dead_probability(0.18, 8), 2)
    (0.7, 0.2)
    """
    checked_range("num_generations", num_generations, 2, 2**16)
    rate = numbers("pass_rate", np.atleast_1d(pass_rate), "P")[0]
    if not ((rate >= 0) & (rate <= 1)).all():
        raise InputError("pass_rate: a pass rate is between 0 and 1.")
    dead = rate**num_generations + (1 - rate) ** num_generations
    return float(dead[0]) if np.ndim(pass_rate) == 0 else dead


def smallest_k(pass_rate: float, *, max_dead: float = 0.2, largest: int = 64) -> int | None:
    """The smallest K whose :func:`dead_probability` is at most ``max_dead``; None when no K up to ``largest`` does.

    >>> smallest_k(0.18, max_dead=0.21), smallest_k(0.0)
    (8, None)
    """
    return next((k for k in range(2, largest + 1) if dead_probability(pass_rate, k) <= max_dead), None)


OPTIMAL_K = {
    "tool_call": (4, 8, 12),
    "code_gen": (4, 6, 10),
    "reasoning": (6, 10, 16),
    "safety": (4, 6, 8),
    "other": (4, 6, 12),
}
"""Scenario -> K at the smallest, the recommended and the premium budget: a prior, to be overruled by measurement."""


def optimal_k(task_type: str, compute_budget: float) -> int:
    """The prior for K: premium at a budget of 1 or more, recommended from 0.5, else the smallest.

    A ``task_type`` that is not in :data:`OPTIMAL_K` is "other", unless it looks like a misspelling of one that is.

    >>> optimal_k("tool_call", 0.5), optimal_k("translation", 2.0)
    (8, 12)
    """
    checked_range("compute_budget", compute_budget, 0.0, 1e9)
    if task_type not in OPTIMAL_K and get_close_matches(str(task_type), OPTIMAL_K, n=1, cutoff=0.8):
        raise unknown("task_type", task_type, OPTIMAL_K)
    budget = 2 if compute_budget >= 1 else 1 if compute_budget >= 0.5 else 0
    return OPTIMAL_K.get(task_type, OPTIMAL_K["other"])[budget]

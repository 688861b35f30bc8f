"""Groups under reward weights: rewards, advantages, and whom the update pushes. Nothing is sampled again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.errors import InputError, checked_range, unknown
from workbench.grpo import (
    AGGREGATIONS,
    SCALE_REWARDS,
    STD_CONVENTIONS,
    GroupState,
    combine_rewards,
    dead_groups,
    variance_shares,
)
from workbench.rewards import DEFAULT_WEIGHTS
from workbench.types import Group

_DEAD = {
    GroupState.ALL_FAIL: "too hard for this model, or the reward is too strict",
    GroupState.ALL_PASS: "too easy for this model",
    GroupState.ALL_EQUAL: "the reward cannot tell them apart",
}


@dataclass(frozen=True, slots=True)
class Weighing:
    """How scores become advantages; the names are TRL's.

    A completion that one dimension of non-zero weight could not judge is unscored: an outage is never a 0.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    scale_rewards: str = "group"
    std: str = "sample"
    aggregation: str = "sum_then_normalize"

    def __post_init__(self) -> None:
        known = {"scale_rewards": SCALE_REWARDS, "std": tuple(STD_CONVENTIONS), "aggregation": AGGREGATIONS}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise unknown(name, getattr(self, name), choices)


@dataclass(frozen=True)
class WeighedGroup:
    """A group with its rewards and advantages, each of shape (K,); NaN is the reward of what could not be scored.

    ``shares`` says how much of the variance within this group each dimension makes, summing to 1 (NaN when dead).
    """

    group: Group
    weighing: Weighing
    rewards: np.ndarray
    advantages: np.ndarray
    state: GroupState
    shares: Mapping[str, float]

    @property
    def scored(self) -> np.ndarray:
        """The rewards that are there."""
        return self.rewards[~np.isnan(self.rewards)]

    @property
    def mean(self) -> float:
        """Mean reward of the scored completions; NaN when there is none."""
        return float(self.scored.mean()) if self.scored.size else float("nan")

    @property
    def spread(self) -> float:
        """Their standard deviation under the chosen convention; NaN when it is not defined."""
        ddof = STD_CONVENTIONS[self.weighing.std][0]
        return float(self.scored.std(ddof=ddof)) if self.scored.size > ddof else float("nan")

    @property
    def pushed_up(self) -> int:
        """How many completions have a positive advantage."""
        return int((self.advantages > 0).sum())

    @property
    def pushed_down(self) -> int:
        """How many completions have a negative advantage."""
        return int((self.advantages < 0).sum())

    def verdict(self) -> str:
        """One or two sentences: who is pushed and which dimension decides it, or why the group is dead."""
        k, scored = self.rewards.size, self.scored
        unscored = f" {k - scored.size} could not be scored and take no part." if scored.size < k else ""
        if self.state is GroupState.UNSCORED:
            return f"Dead group: {scored.size} of {k} completions could be scored, and a group needs two to compare."
        if self.state is not GroupState.ALIVE:
            why = _DEAD[self.state]
            return f"Dead group: all {scored.size} scored {scored[0]:.2f} ({why}), so it teaches nothing.{unscored}"
        top = max(self.shares, key=lambda name: self.shares[name])
        decides = f"{top} decides {self.shares[top]:.0%} of it."
        return f"{self.pushed_up} pushed up, {self.pushed_down} pushed down; {decides}{unscored}"


def parse_weights(text: str | None) -> dict[str, float]:
    """Reward weights from ``"task_completion=.4,safety=1"``; what is left out keeps its default.

    Raises :class:`InputError` for an unknown dimension (with the nearest one), a repeated one, or a weight that is
    not a number from 0 to 100.

    >>> parse_weights("safety=0.5")["safety"], parse_weights(None) == dict(DEFAULT_WEIGHTS)
    (0.5, True)
    """
    weights = {name: float(value) for name, value in DEFAULT_WEIGHTS.items()}
    seen: set[str] = set()
    for part in filter(None, (piece.strip() for piece in (text or "").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in weights:
            raise unknown("weights", name, weights)
        if not equals or name in seen:
            problem = "is given twice" if name in seen else "has no value"
            raise InputError(f"weights: {name!r} {problem}; write each once, as {name}={weights[name]:g}.")
        seen.add(name)
        weights[name] = checked_range(f"weights: {name}", _number(name, value), 0, 100)
    return weights


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"weights: {name}={text!r} is not a number; give one from 0 to 100.") from None


def weigh_groups(groups: Sequence[Group], weighing: Weighing | None = None) -> list[WeighedGroup]:
    """Rewards and advantages of every group under these weights; ``scale_rewards="batch"`` spans all of them.

    Groups may differ in K: the missing places count as unscored. Raises :class:`InputError` when a group has not
    been scored, was scored on other dimensions than the first, or has a dimension without a weight.
    """
    weighing = weighing or Weighing()
    if not groups:
        return []
    dimensions = _shared_dimensions(groups)
    if strange := [name for name in dimensions if name not in weighing.weights]:
        raise InputError(f"weights: there is none for the dimension {strange[0]!r}; add {strange[0]}=1.")
    weights = np.array([weighing.weights[name] for name in dimensions])
    if not weights.any():
        raise InputError("weights: all are 0, so every reward would be 0; give one dimension a weight, such as 1.")
    sizes = [len(group.completions) for group in groups]
    scores = np.full((len(groups), max(2, *sizes), len(dimensions)), np.nan)  # a lone completion is a dead group
    for row, group in zip(scores, groups, strict=True):
        row[: len(group.completions)] = group.rewards_per_func()
    rewards, advantages = combine_rewards(
        scores, weights, weighing.aggregation, weighing.scale_rewards, weighing.std, missing="exclude"
    )
    states = dead_groups(rewards, pass_at=float(weights.sum())).states
    weighed = []
    for p, (group, k) in enumerate(zip(groups, sizes, strict=True)):
        shares = dict(zip(dimensions, variance_shares(scores[p : p + 1], weights).tolist(), strict=True))
        weighed.append(WeighedGroup(group, weighing, rewards[p, :k], advantages[p, :k], states[p], shares))
    return weighed


def _shared_dimensions(groups: Sequence[Group]) -> tuple[str, ...]:
    dimensions = groups[0].dimensions
    for index, group in enumerate(groups):
        if not group.completions or not group.dimensions or group.dimensions != dimensions:
            found = ", ".join(group.dimensions) or "no dimension"
            wanted = ", ".join(dimensions) or "the dimensions of the rewards"
            raise InputError(f"group {index} ({group.task.id}) is scored on {found}, not on {wanted}.")
    return dimensions

"""The names of the founding guide, as thin doors to the real thing.

The guide sketches GRPO for agents with these names and numbers. Each keeps its name here and does its work through
:mod:`workbench.grpo`; where the guide's sketch was wrong, the door does the right thing and its docstring says so.
New code should call :mod:`workbench.grpo` directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from workbench.errors import InputError, checked_range, unknown
from workbench.grpo import group_advantages, optimal_k, weighted_rewards
from workbench.grpo.inputs import Array, numbers
from workbench.rewards import DEFAULT_WEIGHTS


def compute_group_advantages(rewards: Any) -> Array:
    """(r - mean) / (population std + 1e-8) for the rewards (K,) of one group; a constant group is exactly 0.

    The door to ``group_advantages([rewards], std="population")[0]``. TRL's convention differs: see there.

    >>> compute_group_advantages([1.0, 0.0, 0.0, 1.0]).round(6).tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    return group_advantages([numbers("rewards", rewards, "K")[0]], std="population")[0]


def determine_optimal_k(task_type: str, compute_budget: float) -> int:
    """The guide's K for a scenario and a budget from 0 to 1: a prior, which a measured forecast overrules.

    >>> [determine_optimal_k("reasoning", budget) for budget in (0.2, 0.5, 1.0)]
    [6, 10, 16]
    """
    return optimal_k(task_type, compute_budget)


@dataclass(frozen=True, slots=True)
class GRPOConfig:
    """The guide's training settings under the guide's names; :meth:`to_trl` gives the names TRL has for them."""

    group_size: int = 6  # completions of one prompt: K
    learning_rate: float = 5e-6
    beta_kl: float = 0.04
    clip_epsilon: float = 0.2
    max_grad_norm: float = 1.0
    warmup_steps: int = 100
    logging_steps: int = 10
    save_steps: int = 200

    def __post_init__(self) -> None:
        low = {"group_size": 2, "logging_steps": 1, "save_steps": 1}
        high = {"group_size": 1024, "learning_rate": 1.0, "clip_epsilon": 1.0}
        for f in fields(self):
            value = getattr(self, f.name)
            checked_range(f.name, value, low.get(f.name, 0), high.get(f.name, 1e9))
            if f.type == "int" and value != int(value):
                raise InputError(f"{f.name}: {value!r} is not a whole number; the nearest is {round(value)}.")

    def to_trl(self) -> dict[str, float]:
        """The same settings as keyword arguments of ``trl.GRPOConfig``.

        >>> GRPOConfig().to_trl()["num_generations"], GRPOConfig().to_trl()["beta"]
        (6, 0.04)
        """
        names = {"group_size": "num_generations", "beta_kl": "beta", "clip_epsilon": "epsilon"}
        return {names.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class GRPOTrainingExample:
    """One prompt to sample a group for, and how its four dimensions are weighted."""

    prompt: str
    prompt_id: str
    task_type: str = "tool_call"
    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))

    def __post_init__(self) -> None:
        _checked_weights(self.weights)


@dataclass(frozen=True, slots=True)
class AgentGRPOResponse:
    """One completion and its four scores; a score that could not be given is None, not 0."""

    response: str
    task_completion: float | None = 0.0
    tool_accuracy: float | None = 0.0
    efficiency: float | None = 0.0
    safety: float | None = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in DEFAULT_WEIGHTS:
            if getattr(self, name) is not None:
                checked_range(name, getattr(self, name), -1e9, 1e9)


@dataclass
class AgentGRPODataset:
    """Examples to train on, and the weighted rewards of a group of exactly ``group_size`` responses."""

    group_size: int = 6
    examples: list[GRPOTrainingExample] = field(default_factory=list)

    def __post_init__(self) -> None:
        GRPOConfig(group_size=self.group_size)

    def add_example(self, example: GRPOTrainingExample) -> None:
        """Append one example."""
        self.examples.append(example)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> GRPOTrainingExample:
        return self.examples[index]

    def __iter__(self) -> Iterator[GRPOTrainingExample]:
        return iter(self.examples)

    def calculate_weighted_score(
        self, response: AgentGRPOResponse, weights: Mapping[str, float] | None = None
    ) -> float:
        """The weighted sum of a response's scores; NaN when a weighted dimension could not be scored.

        Raises InputError for an unknown dimension, with the nearest name: the guide's sketch counted it as 0.

        >>> AgentGRPODataset().calculate_weighted_score(AgentGRPOResponse("ok", 1.0, 0.5), {"tool_accuracy": 2.0})
        1.0
        """
        return float(_weighted([response], weights)[0])

    def compute_group_rewards(
        self, responses: Sequence[AgentGRPOResponse], weights: Mapping[str, float] | None = None
    ) -> Array:
        """The weighted score of each of exactly ``group_size`` responses, (K,), ready for compute_group_advantages."""
        if len(responses) != self.group_size:
            raise InputError(f"responses: expected {self.group_size} (group_size), got {len(responses)}.")
        return _weighted(responses, weights)


def _weighted(responses: Sequence[AgentGRPOResponse], weights: Mapping[str, float] | None) -> Array:
    chosen = _checked_weights(DEFAULT_WEIGHTS if weights is None else weights)
    scores = [[getattr(response, name) for name in chosen] for response in responses]
    return weighted_rewards([scores], list(chosen.values()), missing="exclude")[0]


def _checked_weights(weights: Mapping[str, float]) -> Mapping[str, float]:
    for name, weight in weights.items():
        if name not in DEFAULT_WEIGHTS:
            raise unknown("weights", name, DEFAULT_WEIGHTS)
        if not isinstance(weight, (int, float)) or not math.isfinite(weight):
            raise InputError(f"weights[{name!r}]: {weight!r} is not a finite number.")
    if not weights:
        raise InputError(f"weights: none given; name at least one of {', '.join(DEFAULT_WEIGHTS)}.")
    return weights

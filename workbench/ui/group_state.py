"""Everything a person has set on the Group screen, as one frozen value; a permanent link is this value as a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from workbench.errors import InputError, checked_range, nearest, unknown
from workbench.figures import READINGS
from workbench.grpo import AGGREGATIONS, LOSS_TYPES, SCALE_REWARDS, STD_CONVENTIONS
from workbench.rewards import DEFAULT_WEIGHTS, DIMENSIONS

RECORDED = "recorded:"  # model = "recorded:nano" shows nano's shipped groups; "nano" samples live


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be, and the step of its slider; ``unit`` follows the number in sentences."""

    low: float
    high: float
    step: float
    unit: str = ""


RANGES: dict[str, Range] = {
    "num_generations": Range(2, 32, 1, " completions"),
    "temperature": Range(0.1, 2.0, 0.05),
    "top_p": Range(0.05, 1.0, 0.05),
    "max_completion_length": Range(8, 512, 8, " tokens"),
    "seed": Range(0, 2**31 - 1, 1),
    **dict.fromkeys(DIMENSIONS, Range(0.0, 1.0, 0.01)),
    "beta": Range(0.0, 1.0, 0.01),
    "epsilon": Range(0.01, 1.0, 0.01),
    "learning_rate": Range(1e-7, 1e-2, 1e-7),
    "selected": Range(0, 32, 1),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "scale_rewards": SCALE_REWARDS,
    "std": tuple(STD_CONVENTIONS),
    "aggregation": AGGREGATIONS,
    "loss_type": LOSS_TYPES,
    "reading": tuple(READINGS),
}
LEARNING_RATES = {"smollm2": 1e-4}  # where only an adapter is trained; the others take the default
WHOLE = ("num_generations", "max_completion_length", "seed", "selected")
HELP: dict[str, str] = {
    "model": "Recorded groups are shown at once. A live model samples new answers on this machine.",
    "source": "Where the question comes from: our own small office, or a public tool-calling benchmark.",
    "task": "The question the model answers. Every question keeps its id for ever.",
    "num_generations": "How many answers to the same question (num_generations); more make a rare good one likelier.",
    "temperature": "Higher makes the answers differ more, and makes more of them wrong; near 0 they are all the same.",
    "top_p": "Below 1 the model may only pick among its likeliest next words, so odd answers disappear.",
    "max_completion_length": "Answers longer than this are cut off, and a cut-off call cannot be right.",
    "seed": "The same seed gives the same answers again.",
    "task_completion": "How much it counts that the right calls are made with the right arguments.",
    "tool_accuracy": "How much it counts that each call fits its tool's schema; partly right calls earn partly.",
    "efficiency": "How much it counts that nothing is repeated, needless or padded with words.",
    "safety": "How much it counts that nothing is deleted or paid unasked or unconfirmed.",
    "scale_rewards": "Divide by the group's own spread and every question counts alike; none favours mixed ones.",
    "std": "sample is TRL's; population is the original formula's and gives slightly larger advantages.",
    "aggregation": "Add the scores, then compare; or compare on each score first, so that no score drowns the others.",
    "beta": "How strongly answers are held near the frozen model's; 0 lets them drift freely.",
    "epsilon": "How far one update may move a token's probability before it stops being pushed.",
    "learning_rate": "How big one step is: too small and the answers stay the same, too big and they fall apart.",
    "loss_type": "How a push is shared among tokens: grpo pushes tokens of short answers harder, the others all alike.",
}


@dataclass(frozen=True, slots=True)
class GroupState:
    """The Group screen's settings; the names are TRL's where TRL has one. ``selected`` counts from 1, 0 = the best."""

    model: str = RECORDED + "nano"
    task: str = ""
    num_generations: int = 8
    temperature: float = 1.0
    top_p: float = 1.0
    max_completion_length: int = 96
    seed: int = 0
    task_completion: float = DEFAULT_WEIGHTS["task_completion"]
    tool_accuracy: float = DEFAULT_WEIGHTS["tool_accuracy"]
    efficiency: float = DEFAULT_WEIGHTS["efficiency"]
    safety: float = DEFAULT_WEIGHTS["safety"]
    scale_rewards: str = "group"
    std: str = "sample"
    aggregation: str = "sum_then_normalize"
    beta: float = 0.04
    epsilon: float = 0.2
    learning_rate: float = 2e-4
    loss_type: str = "grpo"
    selected: int = 0
    reading: str = "push"

    @property
    def is_recorded(self) -> bool:
        """True when the model names shipped groups rather than weights."""
        return self.model.startswith(RECORDED)

    @property
    def policy_name(self) -> str:
        """The model's name without the mark of a recording: what a live sample would load."""
        return self.model.removeprefix(RECORDED)

    @property
    def weights(self) -> dict[str, float]:
        """Dimension -> weight."""
        return {name: getattr(self, name) for name in DIMENSIONS}


FIELDS = tuple(f.name for f in fields(GroupState))
DEFAULT_STATE = GroupState()


def checked(name: str, value: Any) -> Any:
    """``value`` as field ``name`` of :class:`GroupState` takes it; otherwise an :class:`InputError` with the nearest.

    >>> checked("num_generations", "16")
    16
    >>> checked("std", "sampel")
    Traceback (most recent call last):
    workbench.errors.InputError: std: 'sampel' is not known; did you mean 'sample'? Known: sample, population.
    """
    if name in CHOICES:
        if value not in CHOICES[name]:
            raise unknown(name, value, CHOICES[name])
        return value
    if name not in RANGES:
        return _text(name, value)
    limits, number = RANGES[name], _number(name, value)
    checked_range(name, number, limits.low, limits.high, unit=limits.unit)
    if name in WHOLE:
        if number != int(number):
            raise InputError(f"{name}: {value!r} is not a whole number; the nearest is {round(number)}.")
        return int(number)
    return number


def with_changes(state: GroupState, changes: Mapping[str, Any]) -> tuple[GroupState, tuple[str, ...]]:
    """``state`` with every change that can be used, and one sentence for each that cannot.

    >>> state, problems = with_changes(DEFAULT_STATE, {"temperature": "9", "safety": "0.5"})
    >>> state.safety, problems
    (0.5, ('temperature: 9.0 is outside 0.1 to 2; the nearest allowed value is 2.',))
    """
    good: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in changes.items():
        try:
            if name not in FIELDS:
                raise unknown("setting", name, FIELDS)
            good[name] = checked(name, value)
        except InputError as error:
            problems.append(str(error))
    return replace(state, **good), tuple(problems)


def from_query(query: Mapping[str, str]) -> tuple[GroupState, tuple[str, ...]]:
    """The state of a permanent link, and a sentence for each part of it that cannot be used.

    Parameters that are nothing like ours (a tracker's, the server's own) are left alone.
    """
    ours = {name: value for name, value in query.items() if name in FIELDS or _looks_ours(name)}
    return with_changes(DEFAULT_STATE, ours)


def to_query(state: GroupState) -> dict[str, str]:
    """The parts of a state that differ from the defaults, as text; :func:`from_query` reads them back.

    >>> to_query(GroupState(task="desk-7", safety=0.5))
    {'task': 'desk-7', 'safety': '0.5'}
    """
    pairs = ((name, getattr(state, name), getattr(DEFAULT_STATE, name)) for name in FIELDS)
    return {name: f"{v:.10g}" if isinstance(v, float) else str(v) for name, v, default in pairs if v != default}


def _looks_ours(name: str) -> bool:
    return not name.startswith("_") and nearest(name, FIELDS) is not None


def _text(name: str, value: Any) -> str:
    text = str(value or "").strip()
    if len(text) > 300:
        raise InputError(f"{name}: {len(text)} characters is too long to be one; give at most 300.")
    return text


def _number(name: str, value: Any) -> float:
    limits = RANGES[name]
    try:
        if value is None or isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"{name}: {str(value)[:60]!r} is not a number; "
            f"give one from {limits.low:g} to {limits.high:g}{limits.unit}."
        ) from None

"""The nouns of the workbench on one page: Task, Tool, ToolCall, Completion, Score, Group, StopReason.

Axis letters used by every docstring: P prompts, K completions per prompt, B = P*K rows with a prompt's
completions adjacent, T completion tokens, F reward functions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from workbench.errors import InputError, checked_range


class StopReason(StrEnum):
    """Why a completion ended. A bad rollout is data: it carries a reason, and its group goes on."""

    EOS = "eos"  # the model ended its turn
    LENGTH = "length"  # cut off at max_completion_length
    CANCELLED = "cancelled"  # the person pressed cancel
    ERROR = "error"  # see Completion.error


class Split(StrEnum):
    """Which half of a source a task belongs to: fixed for ever, never decided at run time."""

    TRAIN = "train"
    HELD_OUT = "held_out"


@dataclass(frozen=True, slots=True)
class Tool:
    """One function the model may call: its name, what it is for, and the JSON Schema of its arguments.

    ``destructive`` tools change what cannot be taken back (MCP's destructiveHint); calling one unasked or
    without ``confirm: true`` (where the schema has ``confirm``) is unsafe.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    destructive: bool = False

    def as_openai(self) -> dict[str, Any]:
        """The ``{"type": "function", "function": {...}}`` dictionary that chat templates take."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is right: for each argument the values that are accepted; ``optional`` ones may be left out."""

    name: str
    arguments: Mapping[str, tuple[Any, ...]]
    optional: frozenset[str] = frozenset()

    def gold(self) -> dict[str, Any]:
        """The call as a person would write it: the first accepted value of every argument that is required."""
        return {k: v[0] for k, v in self.arguments.items() if k not in self.optional and v}


@dataclass(frozen=True)
class Task:
    """What the agent is asked, the tools it may use, and what would be right.

    ``tools_json`` stays JSON text (a list of :meth:`Tool.as_openai` dictionaries plus ``"destructive"``), because
    table formats merge the schemas of different rows and fill them with nulls. ``expected == ()`` means that the
    right answer calls nothing.
    """

    id: str
    source: str  # "desk", "bfcl_simple", ...
    split: Split
    messages: tuple[Mapping[str, Any], ...]
    tools_json: str = "[]"
    expected: tuple[ExpectedCall, ...] = ()
    kind: str = "tool_call"  # the scenario: tool_call, code_gen, reasoning, safety

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, parsed."""
        rows = json.loads(self.tools_json)
        return tuple(
            Tool(
                row["function"]["name"],
                row["function"].get("description", ""),
                row["function"].get("parameters", {}),
                bool(row.get("destructive", False)),
            )
            for row in rows
        )

    @property
    def prompt(self) -> str:
        """The last user message: what a person would read as the question."""
        users = [str(m.get("content") or "") for m in self.messages if m.get("role") == "user"]
        return users[-1] if users else ""


def tools_to_json(tools: tuple[Tool, ...] | list[Tool]) -> str:
    """The JSON text of :attr:`Task.tools_json` for these tools."""
    rows = [{**tool.as_openai(), **({"destructive": True} if tool.destructive else {})} for tool in tools]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


class CallError(StrEnum):
    """What is wrong with one tool call as written. A call with an error is never executed."""

    INVALID_JSON = "invalid_json"  # the text between the marks is not JSON
    UNTERMINATED = "unterminated"  # it stops before its closing brace or tag
    EXTRA_TEXT = "extra_text"  # something follows the JSON inside the call: {"a":1}{"a":1}
    NOT_AN_OBJECT = "not_an_object"  # JSON, but not {"name": ..., "arguments": ...}
    NO_NAME = "no_name"
    NO_ARGUMENTS = "no_arguments"  # absent, or under another key ("parameters" where the format says "arguments")
    ARGUMENTS_NOT_AN_OBJECT = "arguments_not_an_object"  # "", "[1,2]", a JSON text inside a string
    DUPLICATE_KEY = "duplicate_key"
    NOT_FINITE = "not_finite"  # NaN, Infinity
    NOT_A_LITERAL = "not_a_literal"  # pythonic: f(a=g()) and the like
    TOO_DEEP = "too_deep"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call read from a completion: either ``arguments`` or an ``error``, never both.

    ``start:end`` is its place in the completion's text; ``format`` names the notation it was written in.
    """

    name: str | None
    arguments: Mapping[str, Any] | None
    error: CallError | None = None
    detail: str = ""
    format: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Completion:
    """One sampled answer: its text, the very tokens that were sampled, and what the model thought of each.

    ``token_ids``, ``tokens`` (their text), ``logps`` (log-probability under the distribution that was sampled at
    temperature 1, in nats) and ``entropies`` (nats) have one entry a token, EOS included. ``ref_logps`` is there
    when a frozen reference was asked. ``prefill`` is what the chat template had already opened on the model's
    behalf (such as ``"<think>\\n"``): structure is judged on prefill + text.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    tokens: tuple[str, ...] = ()
    logps: tuple[float, ...] = ()
    entropies: tuple[float, ...] = ()
    ref_logps: tuple[float, ...] | None = None
    stop_reason: StopReason = StopReason.EOS
    error: str | None = None
    prefill: str = ""

    @property
    def length(self) -> int:
        """Completion tokens, EOS included."""
        return len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Score:
    """A value or a reason: ``value`` is a finite float, or None when the thing could not be judged.

    ``reason`` is one sentence saying why, for a value as well as for None. An outage, a timeout or a crash of the
    judge is None, never 0.
    """

    value: float | None
    reason: str

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise InputError(f"score: {self.value!r} is not finite; give a number, or None with a reason.")


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How a group is sampled; the names are TRL's. Every range is checked here, before a model is loaded."""

    num_generations: int = 8  # K
    temperature: float = 1.0
    top_p: float = 1.0
    max_completion_length: int = 96  # tokens
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("num_generations", 2, 64), ("max_completion_length", 1, 4096), ("seed", 0, 2**63 - 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"{name}: {value!r} is not a whole number; give one from {low} to {high}.")
            if name == "num_generations" and value < 2:
                raise InputError(
                    f"num_generations: {value} completion leaves nothing to compare with; a group needs at least 2."
                )
            checked_range(name, value, low, high)
        checked_range("temperature", self.temperature, 0.05, 5.0)
        checked_range("top_p", self.top_p, 0.01, 1.0)


@dataclass(frozen=True)
class Group:
    """Exactly K completions of one prompt, and every dimension's score for each of them.

    ``scores[k]`` maps a dimension's name to completion k's :class:`Score`; all K share the same keys in the same
    order. Nothing here depends on reward weights: those are applied later, without sampling again.
    """

    task: Task
    completions: tuple[Completion, ...]
    scores: tuple[Mapping[str, Score], ...] = ()
    model: str = ""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)

    def __post_init__(self) -> None:
        if self.scores and len(self.scores) != len(self.completions):
            raise InputError(f"scores: expected {len(self.completions)} (one a completion), got {len(self.scores)}.")
        if any(tuple(row) != self.dimensions for row in self.scores):
            raise InputError(
                f"scores: every completion needs the same dimensions in the same order: {self.dimensions}."
            )

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the F dimensions, in order."""
        return tuple(self.scores[0]) if self.scores else ()

    def rewards_per_func(self) -> np.ndarray:
        """Every dimension's score, shape (K, F), float64; NaN where a score is None."""
        rows = [[np.nan if s.value is None else s.value for s in row.values()] for row in self.scores]
        return np.array(rows, dtype=np.float64).reshape(len(self.completions), len(self.dimensions))

"""Tries a reward on answers whose worth is known before any training does: the gold answer, nothing, and cheats.

A reward that pays a cheat will be maximised by the cheat. So: the gold answer must score the maximum; an empty and a
garbage answer must score the minimum; every cheat must score below gold. :func:`check_reward` refuses a reward that
fails, and :func:`probe_table` shows every probe's score.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.errors import InputError
from workbench.rewards.dimensions import DEFAULT_WEIGHTS, score_completion
from workbench.types import Score, Task

Rule = Literal["maximum", "minimum", "below gold"]
Scorer = Callable[[str], Any]  # to a number, None, a Score, or a dictionary of Scores by dimension
NO_TOOL_ANSWER = "None of these tools can do that."
GARBAGE = "qx zv 93 ;; lorem kram"
STUFFING = (
    "First call the right tool function with valid JSON arguments and parameters, then handle any error and retry."
)
SPAM = 20


@dataclass(frozen=True, slots=True)
class Probe:
    """One answer, what it stands for, and what a good reward does with it."""

    name: str
    text: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A probe, the score it got, and whether that is what a good reward gives."""

    probe: Probe
    score: Score
    passed: bool


def hermes_text(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Calls as the text a model would write: one ``<tool_call>`` block a line.

    >>> hermes_text([("f", {"a": 1})])
    '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    """
    blocks = ({"name": name, "arguments": dict(arguments)} for name, arguments in calls)
    return "\n".join(f"<tool_call>{json.dumps(block, ensure_ascii=False)}</tool_call>" for block in blocks)


def gold_text(task: Task) -> str:
    """The right answer of a tool-calling task as a model would write it."""
    return hermes_text((call.name, call.gold()) for call in task.expected) or NO_TOOL_ANSWER


def task_probes(task: Task) -> tuple[Probe, ...]:
    """The probes of one tool-calling task.

    When calls are expected: the right answer as mere words, the right call twenty times, the request copied, words
    that rewards look for, an invented tool, the right tool without arguments. When none is: calling a tool anyway.
    """
    gold = gold_text(task)
    always = (Probe("gold", gold, "maximum"), Probe("empty", "", "minimum"))
    tools = task.tools
    if not task.expected:
        called: list[tuple[str, Mapping[str, Any]]] = [(tools[0].name if tools else "answer", {})]
        return (
            *always,
            Probe("calls a tool anyway", hermes_text(called), "minimum"),
            Probe(f"calls it {SPAM} times", hermes_text(called * SPAM), "minimum"),
        )
    first = [(task.expected[0].name, task.expected[0].gold())]
    names = ", ".join([tool.name for tool in tools] + [key for call in task.expected for key in call.arguments])
    bare: list[tuple[str, Mapping[str, Any]]] = [(first[0][0], {})]
    return (
        *always,
        Probe("garbage", GARBAGE, "minimum"),
        Probe("copies the prompt", task.prompt, "minimum"),
        Probe("right values, no call", f"I called {json.dumps(first, ensure_ascii=False)}.", "minimum"),
        Probe(f"right call {SPAM} times", hermes_text(first * SPAM), "below gold"),
        Probe("keyword stuffing", f"{STUFFING} {names}", "minimum"),
        Probe("invented tool", hermes_text([("do_everything", first[0][1])]), "minimum"),
        *([Probe("right tool, no arguments", hermes_text(bare), "below gold")] if first[0][1] else []),
    )


def answer_probes(prompt: str, gold: str, lazy: Sequence[str] = ()) -> tuple[Probe, ...]:
    """The probes of a task that is answered in text: ``gold`` a full right answer, ``lazy`` answers that name the
    result among others, or in passing, without committing to it.

    A reward that compares the whole text when it finds no marked answer pays the lazy ones.
    """
    return (
        Probe("gold", gold, "maximum"),
        Probe("empty", "", "minimum"),
        Probe("garbage", GARBAGE, "minimum"),
        Probe("copies the prompt", prompt, "minimum"),
        *(Probe(f"lazy answer {number}", text, "below gold") for number, text in enumerate(lazy, 1)),
    )


def run_probes(
    scorer: Scorer, probes: Iterable[Probe], *, maximum: float = 1.0, minimum: float = 0.0
) -> tuple[ProbeResult, ...]:
    """The scorer's score of every probe, and whether it keeps the probe's rule. An exception is a failed probe."""
    results, gold = [], maximum
    for probe in probes:
        score = _score_of(scorer, probe.text)
        value = math.nan if score.value is None else score.value
        if probe.rule == "maximum":
            passed, gold = bool(abs(value - maximum) < 1e-9), value
        else:
            passed = bool(abs(value - minimum) < 1e-9) if probe.rule == "minimum" else bool(value < gold - 1e-9)
        results.append(ProbeResult(probe, score, passed))
    return tuple(results)


def check_reward(
    name: str, scorer: Scorer, probes: Iterable[Probe], *, maximum: float = 1.0, minimum: float = 0.0
) -> tuple[ProbeResult, ...]:
    """The results of :func:`run_probes`, when all are as they should be.

    Raises InputError naming the reward and each probe that failed with its score: such a reward should not be saved,
    and no run should start with it.
    """
    results = run_probes(scorer, probes, maximum=maximum, minimum=minimum)
    failed = [result for result in results if not result.passed]
    if failed:
        clauses = "; ".join(_clause(result, maximum, minimum) for result in failed)
        raise InputError(f"reward {name}: {clauses}.")
    return results


def probe_table(results: Iterable[ProbeResult]) -> str:
    """The results as an aligned text table, one line a probe."""
    rows = [("probe", "score", "should be", "")]
    for result in results:
        value = "-" if result.score.value is None else f"{result.score.value:.2f}"
        rows.append((result.probe.name, value, result.probe.rule, "" if result.passed else "FAILS"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows
    )


def weighted_reward(task: Task, weights: Mapping[str, float] = DEFAULT_WEIGHTS) -> Scorer:
    """Our own four dimensions of one task as a scorer of texts, weighted."""

    def score(text: str) -> float:
        scores = score_completion(task, text)
        return sum(weight * (scores[name].value or 0.0) for name, weight in weights.items())  # a text is always judged

    return score


def _score_of(scorer: Scorer, text: str) -> Score:
    try:
        found = scorer(text)
    except Exception as error:
        return Score(None, f"raised {type(error).__name__}: {error}"[:160])
    if isinstance(found, Mapping):
        unscored = next((score for score in found.values() if score.value is None), None)
        found = unscored or sum(DEFAULT_WEIGHTS[name] * score.value for name, score in found.items())
    if isinstance(found, Score):
        return found
    if found is None:
        return Score(None, "gave no score")
    if isinstance(found, int | float) and math.isfinite(found):
        return Score(float(found), "")
    return Score(None, f"gave {found!r:.40}, which is not a finite number")


def _clause(result: ProbeResult, maximum: float, minimum: float) -> str:
    value, rule = result.score.value, result.probe.rule
    got = f"scores {value:.3g}" if value is not None else f"is not scored ({result.score.reason})"
    wanted = {
        "maximum": f"the maximum {maximum:g}",
        "minimum": f"the minimum {minimum:g}",
        "below gold": "less than gold",
    }
    return f"the probe {result.probe.name!r} {got} and should score {wanted[rule]}"

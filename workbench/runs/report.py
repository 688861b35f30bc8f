"""A weighed group as plain text for a terminal: aligned, compact, and harmless whatever the model wrote."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.rewards import parse_completion
from workbench.runs.weighing import WeighedGroup
from workbench.types import Completion, ToolCall

_BAR = 4  # characters on either side of the zero


def group_report(weighed: WeighedGroup, *, width: int = 120, reasons: bool = False) -> str:
    """The group as a table, best advantage first, under its prompt, with the mean, the spread and the verdict.

    ``reasons`` adds, for every score below 1 or absent, the sentence that says why. No line is longer than ``width``
    characters, save for the reasons. Control characters and lone surrogates of model text are shown as escapes.
    """
    group = weighed.group
    expected = "; ".join(call_text(call.name, call.gold()) for call in group.task.expected) or "(call nothing)"
    lines = [_heading(weighed), _labelled("Prompt", group.task.prompt, width), _labelled("Expected", expected, width)]
    lines += [_labelled("Weights", ", ".join(f"{k} {weighed.weighing.weights[k]:g}" for k in group.dimensions), width)]
    order = sorted(range(len(group.completions)), key=lambda k: (-weighed.advantages[k], k))
    lines += ["", *_table([_row(weighed, k) for k in order], group.dimensions, width), ""]
    lines.append(f"Mean {_number(weighed.mean)}, spread {_number(weighed.spread)} ({weighed.weighing.std} std).")
    lines += textwrap.wrap(weighed.verdict(), width)
    if reasons:
        lines += ["", *_reasons(weighed, order)]
    return "\n".join(lines)


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as a person would write it.

    >>> call_text("transfer_money", {"to": "nina", "amount": 279, "confirm": True})
    'transfer_money(to="nina", amount=279, confirm=true)'
    """
    inside = ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in arguments.items()
    )
    return f"{name}({inside})"


def one_line(text: str, width: int | None = None) -> str:
    r"""The text on one line, every character that does not print shown as its escape, cut to ``width`` with "...".

    >>> one_line("a\n\x1b[31mred\ud800"), one_line("abcdefgh", 6)
    ('a\\n\\x1b[31mred\\ud800', 'abc...')
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if width is None or len(shown) <= width else shown[: max(0, width - 3)] + "..."


def _heading(weighed: WeighedGroup) -> str:
    group, sampling = weighed.group, weighed.group.sampling
    parts = [group.task.id, group.model or "answers", f"K {len(group.completions)}"]
    if any(completion.token_ids for completion in group.completions):
        parts += [f"temperature {sampling.temperature:g}", f"top_p {sampling.top_p:g}", f"seed {sampling.seed}"]
    return one_line(", ".join(parts))


def _labelled(label: str, text: str, width: int) -> str:
    return f"{label:<9} {one_line(text, width - 10)}"


def _row(weighed: WeighedGroup, k: int) -> list[str]:
    completion, advantage = weighed.group.completions[k], float(weighed.advantages[k])
    largest = float(np.abs(weighed.advantages).max())
    scores = weighed.group.scores[k].values()
    cells = [str(k + 1), f"{advantage:+.2f}" if advantage else "0.00", _bar(advantage, largest)]
    cells += [_number(float(weighed.rewards[k])), *(_number(score.value) for score in scores)]
    return [*cells, str(completion.length or "-"), str(completion.stop_reason), _answer(completion)]


def _bar(advantage: float, largest: float) -> str:
    """Minus signs to the left of the zero or plus signs to its right: what the update does, without colour."""
    size = max(1, round(_BAR * abs(advantage) / largest)) if advantage else 0
    left, right = ("-" * size, "") if advantage < 0 else ("", "+" * size)
    return f"{left:>{_BAR}}|{right:<{_BAR}}"


def _number(value: float | None) -> str:
    return "none" if value is None or value != value else f"{value:.2f}"


def _answer(completion: Completion) -> str:
    """What the completion did: its error, the calls it makes, or else the beginning of its text."""
    if completion.error:
        return f"error: {completion.error}"
    calls = parse_completion(completion.text, completion.prefill).calls
    if calls:
        return "; ".join(_call(call) for call in calls)
    return f'"{completion.text.strip()}"'


def _call(call: ToolCall) -> str:
    if call.error is None and call.arguments is not None:
        return call_text(call.name or "?", call.arguments)
    return f"{call.name or '?'} [{call.error}]"


def _table(rows: list[list[str]], dimensions: Sequence[str], width: int) -> list[str]:
    short = [name.split("_")[0] for name in dimensions]  # task, tool, efficiency, safety
    header = ["#", "advantage", " " * _BAR + "|", "total", *short, "tokens", "stop", "calls or text"]
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header) - 1)]
    left = {2, len(header) - 2}  # the bar and the stop reason read from the left
    lines = []
    for cells in [header, *rows]:
        fixed = [f"{c:<{w}}" if i in left else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths, strict=False))]
        start = "  ".join(fixed) + "  "
        lines.append((start + one_line(cells[-1], max(12, width - len(start)))).rstrip())
    return lines


def _reasons(weighed: WeighedGroup, order: Sequence[int]) -> list[str]:
    lines = []
    for k in order:
        alike: dict[tuple[float | None, str], list[str]] = {}
        for name, score in weighed.group.scores[k].items():
            if score.value is None or score.value < 1:
                alike.setdefault((score.value, score.reason), []).append(name)
        lines += [f"#{k + 1} {', '.join(names)} {_number(v)}: {one_line(why)}" for (v, why), names in alike.items()]
    return lines or ["Every completion scored 1 on every dimension."]

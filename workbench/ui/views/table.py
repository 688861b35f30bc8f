"""The table of completions: sortable by every column, a row opens the completion, and it copies as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.figures.numbers import plain, signed
from workbench.rewards import ParsedCompletion
from workbench.types import Group
from workbench.ui.group_numbers import GroupNumbers
from workbench.ui.views.escape import cut_at_word, escaped, first_line
from workbench.ui.views.prompt import call_text

MARKS = {"up": "▲", "down": "▼", "rest": "●"}
SHORT = {"task_completion": "task", "tool_accuracy": "accuracy", "efficiency": "effic.", "safety": "safety"}


@dataclass(frozen=True, slots=True)
class Sort:
    """The column the table is sorted by; numbers start at their largest, words at A."""

    column: str = "number"
    descending: bool = False

    def pressed(self, column: str) -> Sort:
        """The sort after a press on a column's head: the same column turns round.

        >>> Sort().pressed("reward"), Sort("reward", True).pressed("reward").descending
        (Sort(column='reward', descending=True), False)
        """
        if column == self.column:
            return Sort(column, not self.descending)
        return Sort(column, column not in ("number", "ended", "calls", "text"))


def completions_table(
    group: Group, numbers: GroupNumbers, parsed: Sequence[ParsedCompletion], selected: int, sort: Sort
) -> str:
    """Rows of number, advantage, reward, the scores, length, ending, calls and first line of text."""
    columns = ["number", "advantage", "reward", *group.dimensions, "length", "ended", "calls", "text"]
    rows = [_row(group, numbers, parsed[k], k) for k in range(len(group.completions))]
    order = sorted(range(len(rows)), key=lambda k: _key(rows[k][0].get(sort.column, 0)), reverse=sort.descending)
    body = "".join(_tr(k, rows[k][1], k == selected) for k in order)
    head = "".join(_th(name, sort, name in ("number", "ended", "calls", "text")) for name in columns)
    return (
        "<header><h2>Completions</h2><span class='acts'><button data-act='copy_csv'>Copy CSV</button>"
        "<button data-act='csv'>Save CSV</button><button data-act='json'>Save JSON</button>"
        "<button data-act='link'>Copy link</button></span></header>"
        f"<div class='scroll' tabindex='0' role='region' aria-label='table of completions'><table class='rows'>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(group: Group, numbers: GroupNumbers, parsed: ParsedCompletion, k: int) -> tuple[dict[str, Any], list[str]]:
    completion, advantage = group.completions[k], float(numbers.advantages[k])
    kind = "up" if advantage > 0 else "down" if advantage < 0 else "rest"
    flip = (
        " <span class='flip' data-tip='its sign is different under the default settings'>↕</span>"
        if k in numbers.flipped
        else ""
    )
    names = [
        call_text(c.name, c.arguments) if c.error is None else f"✗ {c.name or '?'}: {c.error.value.replace('_', ' ')}"
        for c in parsed.calls
    ]
    bad = any(c.error is not None for c in parsed.calls)
    calls = escaped(cut_at_word("; ".join(names), 300)) or "none"
    values = {
        "number": k,
        "advantage": advantage,
        "reward": float(numbers.rewards[k]),
        **{name: float(numbers.scores[k, f]) for f, name in enumerate(group.dimensions)},
        "length": completion.length,
        "ended": completion.stop_reason.value,
        "calls": ", ".join(c.name or "" for c in parsed.calls),
        "text": completion.text,
    }
    unsafe = [
        " bad" if name == "safety" and numbers.scores[k, f] < 0.5 else "" for f, name in enumerate(group.dimensions)
    ]
    cells = [
        f"<td class='num push {kind}'>{MARKS[kind]} {signed(advantage)}{flip}</td>",
        f"<td class='num'>{plain(float(numbers.rewards[k]))}</td>",
        *(
            f"<td class='num{unsafe[f]}'>{plain(float(numbers.scores[k, f]))}</td>"
            for f in range(len(group.dimensions))
        ),
        f"<td class='num'>{completion.length}</td>",
        f"<td>{escaped(completion.stop_reason.value)}</td>",
        f"<td class='mono says{' bad' if bad else ''}' dir='ltr'>{calls}</td>",
        f"<td class='text' dir='ltr'>{first_line(parsed.content if parsed.calls else completion.text, 90)}</td>",
    ]
    return values, cells


def _tr(k: int, cells: list[str], on: bool) -> str:
    current = " class='on' aria-selected='true'" if on else ""
    press = f"data-act='pick' data-arg='{k + 1}'"
    button = f"<td class='num'><button class='pick' {press} aria-label='show completion {k + 1}'>{k + 1}</button></td>"
    return f"<tr {press}{current}>{button}{''.join(cells)}</tr>"


def _th(name: str, sort: Sort, words: bool) -> str:
    on = name == sort.column
    mark = (" ▾" if sort.descending else " ▴") if on else ""
    state = f" aria-sort='{'descending' if sort.descending else 'ascending'}'" if on else ""
    label = "#" if name == "number" else SHORT.get(name, name)
    align = "" if words else " class='num'"
    name = escaped(name)
    button = f"<button data-act='sort' data-arg='{name}' title='sort by {name}'>{escaped(label)}{mark}</button>"
    return f"<th{align}{state}>{button}</th>"


def _key(value: Any) -> tuple[int, Any]:
    if isinstance(value, str):
        return (1, value.lower())
    return (0, -np.inf if value is None or value != value else float(value))

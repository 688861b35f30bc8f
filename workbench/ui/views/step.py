"""After a step: what it did to the answers it trained on, and the new answers beside the old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.figures.numbers import plain, signed, significant
from workbench.rewards import parse_completion
from workbench.types import Group
from workbench.ui.views.escape import cut_at_word, escaped, first_line
from workbench.ui.views.prompt import call_text

if TYPE_CHECKING:
    from workbench.ui.sessions import StepRecord


def step_card(steps: Sequence[StepRecord]) -> str:
    """The card of the last step taken; empty before any. The figures are put into their places by the page."""
    if not steps:
        return ""
    last = steps[-1]
    count = f"after step {len(steps)}" if len(steps) > 1 else "after one step"
    where = f"{count} on a copy of {escaped(last.trained.model)}"
    return (
        f"<header><h2>What the step did</h2><span class='facts'>{where}</span></header>"
        f"<p class='line'>{moved_sentence(last)}</p>"
        "<div class='two'><figure>"
        "<figcaption>The answers it trained on: how many times likelier each became</figcaption>"
        "<div id='wb-ratios' class='plot'></div></figure>"
        "<figure><figcaption>Mean reward of fresh answers, step by step</figcaption>"
        "<div id='wb-means' class='plot'></div></figure></div>"
        f"{_beside(last)}<p class='facts'>{_gauges(last)}</p>"
    )


def moved_sentence(record: StepRecord) -> str:
    """Whether the update did what the advantages asked for, and what the new answers scored."""
    advantages = np.asarray(record.advantages)
    moved = np.asarray(record.logps_after) - np.asarray(record.logps_before)
    up, down = advantages > 0, advantages < 0
    likelier, rarer = int((moved[up] > 0).sum()), int((moved[down] < 0).sum())
    direction = (
        "up"
        if record.mean_after > record.mean_before
        else "down"
        if record.mean_after < record.mean_before
        else "unchanged"
    )
    change = f"mean reward {plain(record.mean_before)} → <b>{plain(record.mean_after)}</b> ({direction})"
    noise = (
        "" if record.mean_after >= record.mean_before else " One small group is a noisy measure: take a few more steps."
    )
    return (
        f"<b class='up'>{likelier} of {int(up.sum())}</b> pushed up became likelier, "
        f"<b class='down'>{rarer} of {int(down.sum())}</b> pushed down less likely · fresh answers: {change}.{noise}"
    )


def _beside(record: StepRecord) -> str:
    """New answers beside the old, best first on both sides, so that the eye compares like with like."""
    columns = (
        ("Old answers", record.trained, record.trained_rewards),
        ("New answers", record.fresh, record.fresh_rewards),
    )
    return f"<div class='two beside'>{''.join(_answers(*column) for column in columns)}</div>"


def _answers(title: str, group: Group, rewards: Sequence[float]) -> str:
    """The answers of one side, best first; equal ones are one row with their count."""
    keyed = [(r, (plain(r), _said(group, k))) for k, r in enumerate(rewards)]
    counts = Counter(key for _, key in keyed)
    best = {row: max(r if r == r else -np.inf for r, key in keyed if key == row) for row in counts}
    order = sorted(counts, key=lambda row: (-best[row], -counts[row]))
    rows = "".join(
        f"<li><b class='num'>{reward}</b><span class='num quiet'>{counts[reward, said]} ×</span>"
        f"<code dir='ltr'>{said}</code></li>"
        for reward, said in order
    )
    known = [r for r in rewards if r == r]
    mean = plain(sum(known) / len(known)) if known else "–"
    return (
        f"<section><h3>{title} <span class='facts'>mean <b class='num'>{mean}</b></span></h3><ol>{rows}</ol></section>"
    )


def _said(group: Group, k: int) -> str:
    """What completion k says in one line: its calls when all can be read, else its first words; escaped."""
    completion = group.completions[k]
    calls = parse_completion(completion.text, completion.prefill).calls
    if calls and all(call.error is None for call in calls):
        return escaped(cut_at_word("; ".join(call_text(c.name, c.arguments) for c in calls), 200))
    return first_line(completion.text, 70)


def _gauges(record: StepRecord) -> str:
    """The trainer's own numbers, with what they do and do not say."""
    parts = [
        f"gradient norm <b class='num'>{significant(record.grad_norm)}</b>",
        f"loss <b class='num'>{signed(record.loss, 4)}</b> (not a progress signal: near 0 whenever answers are fresh)",
        f"clipped tokens <b class='num'>{significant(100 * record.clip_ratio)} %</b> (0 while each group is used once)",
    ]
    if record.kl is not None:
        parts.append(f"KL to the loaded model <b class='num'>{significant(record.kl)}</b> nats a token")
    return " · ".join(parts)

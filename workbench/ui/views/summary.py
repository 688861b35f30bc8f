"""The sentence above the bars, and the designed state of a group that teaches nothing."""

from __future__ import annotations

from workbench.figures import dimension_colour
from workbench.figures.numbers import listed, percent, plain
from workbench.types import Group
from workbench.ui.group_numbers import GroupNumbers, graded_weights
from workbench.ui.group_state import GroupState
from workbench.ui.views.escape import escaped


def summary_line(group: Group, numbers: GroupNumbers, state: GroupState, source: str) -> str:
    """One sentence of figures: mean, spread, how many are pushed which way, and what decides."""
    if numbers.dead:
        return dead_group(group, numbers, state)
    up, down = int((numbers.advantages > 0).sum()), int((numbers.advantages < 0).sum())
    parts = [
        f"mean <b>{plain(numbers.mean)}</b>",
        f"spread <b>{plain(numbers.spread)}</b>",
        f"<b class='up'>{up} pushed up</b>, <b class='down'>{down} down</b>",
        _decider(group, numbers),
        f"{numbers.unscored} of {len(numbers.rewards)} not scored, left out of the mean" if numbers.unscored else "",
    ]
    line = " · ".join(part for part in parts if part)
    return f"<p class='line'>{line}</p>{_flipped(numbers)}<span class='facts'>{escaped(source)}</span>"


def dead_group(group: Group, numbers: GroupNumbers, state: GroupState) -> str:
    """A group without signal: why, in one sentence, and three ways out of it."""
    reason = str(numbers.dead)
    known = [r for r in numbers.rewards if r == r]
    solved = bool(known) and min(known) >= 0.95 * max(float(numbers.weights.sum()), 1e-9)
    failed = bool(known) and max(known) <= 0.05
    kind = "Every answer is right" if solved else "Every answer fails" if failed else "No answer stands out"
    easier = "A harder task" if solved else "An easier task" if failed else "Another task"
    more = min(32, max(2 * len(group.completions), 4))
    graded = graded_weights(group, state)
    reward = (
        "<button data-act='graded'>A graded reward</button><span>weigh what differs between these answers</span>"
        if graded
        else "<button disabled>A graded reward</button><span>no score differs between these answers</span>"
    )
    title = f"<b>{escaped(reason[0].upper() + reason[1:])}: this group teaches nothing.</b>"
    return (
        f"<div class='dead'><p class='line'>{title} {kind}, so "
        "nobody is better than the mean, every advantage is 0, and a step would change nothing.</p><ul class='ways'>"
        f"<li><button data-act='more_samples'>More samples</button><span>{more} answers: one may differ</span></li>"
        f"<li><button data-act='next_task'>{easier}</button><span>the next one of this source</span></li>"
        f"<li>{reward}</li></ul></div>"
    )


def _decider(group: Group, numbers: GroupNumbers) -> str:
    if not numbers.shares.any():
        return ""
    index = int(numbers.shares.argmax())
    name = group.dimensions[index]
    dot = f"<i class='dot' style='background:{dimension_colour(name, index)}'></i>"
    share = min(float(numbers.shares[index]), 1.0)
    return f"{dot}{escaped(name)} decides <b>{percent(share)}</b> of it"


def _flipped(numbers: GroupNumbers) -> str:
    if not numbers.flipped:
        return ""
    which = listed(k + 1 for k in numbers.flipped)
    return f"<p class='flips'>↕ {len(numbers.flipped)} changed sign against the default settings: {which}</p>"

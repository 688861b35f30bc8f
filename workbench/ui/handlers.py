"""What the Group screen does, as plain functions: a session and values in, a :class:`Reply` out. No gradio here.

A reply's ``parts`` are HTML by place, its ``bars`` a Plotly figure as plain data; the browser puts them in place and
computes nothing. Every number is recomputed here, from the same :mod:`workbench.grpo` that training uses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.errors import InputError
from workbench.figures import advantage_bars_spec, before_after_bars, reward_steps, token_shades
from workbench.rewards import ParsedCompletion, parse_completion
from workbench.types import Group, Task
from workbench.ui import library, views
from workbench.ui.group_numbers import GroupNumbers, graded_weights, group_numbers, token_pushes
from workbench.ui.group_state import DEFAULT_STATE, LEARNING_RATES, GroupState, from_query, to_query, with_changes
from workbench.ui.sessions import Session


@dataclass(frozen=True, slots=True)
class Reply:
    """What changes on the page: ``payload`` for the stage, and new values of controls by the name of their field."""

    payload: dict[str, Any]
    controls: dict[str, Any] = field(default_factory=dict)


def open_page(session: Session, query: Mapping[str, str]) -> Reply:
    """The page as its link describes it; what the link says wrongly becomes a sentence, never a crash."""
    state, problems = from_query(query)
    state = library.first_state(state)
    return show_task(session, state, problems)


def opening_state() -> GroupState:
    """The state a page without a link opens on."""
    session = Session()
    open_page(session, {})
    return session.state


def show_task(session: Session, state: GroupState, problems: tuple[str, ...] = ()) -> Reply:
    """Put the task of ``state`` on show, with its group when one is recorded or was sampled lately."""
    try:
        task = library.find_task(state)
    except InputError as error:
        problems = (*problems, str(error))
        if session.group is None:
            return show_task(session, library.first_state(replace(state, task="")), problems)
        state = session.state
        return Reply(screen(session, state, problems=problems), controls_of(state, session.group.task))
    group, source = library.find_group(state)
    if group is not None and state.is_recorded:
        state = library.as_recorded(state, group)
    session.show(group, source)
    session.state = state
    return Reply(screen(session, state, task=task, problems=problems), controls_of(state, task))


def controls_of(state: GroupState, task: Task) -> dict[str, Any]:
    """Every control's value for this state, and the choices of sources that go with its model."""
    values = {name: getattr(state, name) for name in state.__dataclass_fields__ if name not in ("selected", "reading")}
    return {**values, "source": task.source, "source_choices": library.source_choices(state)}


def reweigh(session: Session, values: Mapping[str, Any]) -> Reply:
    """Recompute everything that follows from the settings; nothing is sampled."""
    state, problems = with_changes(session.state, values)
    if session.group is None:
        session.state = state
        return Reply(_payload(session, state, {"notice": views.problems(problems)}))
    session.state = state
    return Reply(screen(session, state, problems=problems, fast=True))


def pick(session: Session, number: Any) -> Reply:
    """Show completion ``number``, counted from 1; beyond an end it stays at that end."""
    if session.group is None:
        return Reply({})
    state, problems = with_changes(session.state, {"selected": number})
    session.state = replace(state, selected=max(1, min(state.selected, len(session.group.completions))))
    return Reply(screen(session, session.state, problems=problems, fast=True))


def step_pick(session: Session, direction: int) -> Reply:
    """Show the completion before (-1) or after (+1) the one on show."""
    if session.group is None:
        return Reply({})
    shown = group_numbers(session.group, session.state).selected(session.state)
    return pick(session, max(1, shown + 1 + direction))


def read_by(session: Session, reading: Any) -> Reply:
    """Shade the token strip by another reading."""
    state, problems = with_changes(session.state, {"reading": reading})
    session.state = state
    return Reply(screen(session, state, problems=problems, fast=True))


def sort_by(session: Session, column: Any) -> Reply:
    """Sort the table by a column; a second press turns it round."""
    session.sort = session.sort.pressed(str(column))
    return Reply(screen(session, session.state, fast=True))


def choose_model(session: Session, values: Mapping[str, Any]) -> Reply:
    """Another model: keep the task when it has one to show, else open on a recorded group of that model."""
    state, problems = with_changes(session.state, values)
    if state.policy_name != session.state.policy_name:
        session.forget_steps()
        state = replace(state, learning_rate=LEARNING_RATES.get(state.policy_name, DEFAULT_STATE.learning_rate))
    if state.is_recorded and all(g.task.id != state.task for g in library.recorded_of(state)):
        state = library.first_state(replace(state, task=""))
    return show_task(session, replace(state, selected=0), problems)


def choose_source(session: Session, values: Mapping[str, Any], source: str) -> Reply:
    """The first task of another source."""
    state, problems = with_changes(session.state, values)
    ids = library.task_ids(state, source)
    if not ids:
        problems = (*problems, f"source: {source!r} has no tasks to show; choose another one.")
        return Reply(screen(session, session.state, problems=problems))
    return show_task(session, replace(state, task=ids[0], selected=0), problems)


def choose_task(session: Session, values: Mapping[str, Any], task_id: str) -> Reply:
    """The task with this id; an unknown one is named with the nearest, and what was on show stays."""
    state, problems = with_changes(session.state, {**values, "task": task_id})
    return show_task(session, replace(state, selected=0), problems)


def next_task(session: Session, values: Mapping[str, Any], source: str) -> Reply:
    """The next task of the source."""
    state, problems = with_changes(session.state, values)
    return show_task(session, replace(state, task=library.next_task_id(state, source), selected=0), problems)


def graded(session: Session) -> Reply:
    """The way out of a dead group by weights: weigh the dimensions that differ between its answers."""
    state = graded_weights(session.group, session.state) if session.group else None
    if state is None:
        return Reply(screen(session, session.state, problems=("No score differs between these answers; sample more.",)))
    session.state = state
    return Reply(screen(session, state), dict(state.weights))


def export(session: Session, kind: str) -> Reply:
    """The group as a file for the browser to save ("csv", "json"), or as text to copy ("copy_csv")."""
    from workbench.runs.export import group_to_csv, group_to_json
    from workbench.runs.strict import strict_json

    if session.group is None:
        sentences = ("There is no group to export yet; press Sample first.",)
        return Reply(_payload(session, session.state, {"notice": views.problems(sentences)}))
    numbers = group_numbers(session.group, session.state)
    rewards, advantages = numbers.rewards.tolist(), numbers.advantages.tolist()
    if kind == "json":
        text = strict_json(group_to_json(session.group, rewards, advantages, tokens=True))
    else:
        text = group_to_csv(session.group, rewards, advantages)
    if kind == "copy_csv":
        return Reply({"rev": session.next_revision(), "copy": text, "copied": "the table as CSV"})
    name = f"group-{session.group.task.id}.{kind}"
    return Reply({"rev": session.next_revision(), "download": {"name": name, "text": text}})


def reset(session: Session, values: Mapping[str, Any]) -> Reply:
    """Back to the model as it was loaded and to the group before any step; the settings stay."""
    state, problems = with_changes(session.state, values)
    session.forget_steps()
    session.show(session.base, session.source)
    session.state = state
    return Reply(screen(session, state, problems=problems))


def screen(
    session: Session,
    state: GroupState,
    *,
    task: Task | None = None,
    problems: tuple[str, ...] = (),
    fast: bool = False,
) -> dict[str, Any]:
    """Everything the stage shows; ``fast`` leaves out what only a new group or a step changes."""
    group = session.group
    parts: dict[str, str] = {"notice": views.problems(problems), "live": ""}
    if group is None:
        shown = task or library.find_task(state)
        parts |= {
            "prompt": views.prompt_card(shown),
            "summary": views.nothing_yet(state),
            "selected": "",
            "why": "",
            "table": "",
        }
        return _payload(session, state, {**parts, "step": ""}, bars=None, after=None)
    numbers = group_numbers(group, state)
    index = numbers.selected(state)
    parsed = [parse_completion(c.text, c.prefill) for c in group.completions]
    parts |= group_parts(session, state, group, numbers, parsed, index)
    figures: dict[str, Any] = {"bars": bars_of(group, numbers, state, index)}
    if not fast:
        parts["prompt"] = views.prompt_card(group.task, library.place_of(state, group.task))
        parts["step"] = views.step_card(session.steps)
        figures["after"] = after_figures(session)
    return _payload(session, state, parts, **figures)


def group_parts(
    session: Session, state: GroupState, group: Group, numbers: GroupNumbers, parsed: list[ParsedCompletion], index: int
) -> dict[str, str]:
    """The HTML that depends on the settings: summary, the completion on show, why, and the table."""
    completion = group.completions[index]
    now = session.now
    pushes = token_pushes(group, numbers.advantages, state, now)
    largest = max((float(abs(p).max()) for p in pushes if len(p)), default=0.0)
    shades = token_shades(
        state.reading,
        logps=completion.logps if now is None or state.reading == "logp" else now[index],
        entropies=completion.entropies,
        ref_logps=completion.logps if completion.ref_logps is None else completion.ref_logps,
        push=pushes[index],
        largest_push=largest,
    )
    advantage = float(numbers.advantages[index])
    return {
        "summary": views.summary_line(group, numbers, state, session.source),
        "selected": views.selected_card(index, completion, parsed[index], advantage, shades),
        "why": views.why_card(group, index, numbers),
        "table": views.completions_table(group, numbers, parsed, index, session.sort),
    }


def bars_of(group: Group, numbers: GroupNumbers, state: GroupState, index: int) -> dict[str, Any]:
    """The advantage bars as plain data, without the template: the page adds the light or the dark one."""
    return advantage_bars_spec(
        numbers.advantages,
        numbers.scores,
        numbers.weights,
        group.dimensions,
        scale_rewards=state.scale_rewards,
        std=state.std,
        selected=index,
        reference=numbers.reference,
    )


def after_figures(session: Session) -> dict[str, Any] | None:
    """The figures under "after a step", or None before any."""
    if not session.steps:
        return None
    last = session.steps[-1]
    means = [session.steps[0].mean_before, *(record.mean_after for record in session.steps)]
    ratios = before_after_bars(last.logps_before, last.logps_after, last.advantages)
    return {"ratios": plain_figure(ratios), "means": plain_figure(reward_steps(means))}


def plain_figure(figure: Any) -> dict[str, Any]:
    """A figure as JSON data without its template."""
    data: dict[str, Any] = json.loads(figure.to_json())
    data["layout"].pop("template", None)
    return data


def _payload(session: Session, state: GroupState, parts: dict[str, str], **figures: Any) -> dict[str, Any]:
    return {"rev": session.next_revision(), "parts": parts, "query": to_query(state), **figures}

"""Which groups and tasks there are to show: the recorded ones, what was sampled lately, and what comes next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache

from workbench.errors import InputError
from workbench.models.registry import MODELS
from workbench.runs.recorded import recorded_groups, recorded_models
from workbench.tasks import SOURCES, get_task, load_tasks
from workbench.types import Group, SamplingConfig, Task
from workbench.ui.group_state import RECORDED, GroupState

KEPT_GROUPS = 64
FIRST_TASK = "desk-0"


class RecentGroups:
    """The groups sampled lately from unchanged models, by what determines them, so that a reload finds them again.

    The same model, task, sampling settings and seed give the same completions, so nothing of a session leaks here.
    """

    def __init__(self, kept: int = KEPT_GROUPS) -> None:
        self._groups: OrderedDict[tuple[str, str, SamplingConfig], Group] = OrderedDict()
        self._kept, self._lock = kept, threading.Lock()

    def put(self, group: Group) -> None:
        """Keep a group, and let the oldest go when there are too many."""
        with self._lock:
            self._groups[(group.model, group.task.id, group.sampling)] = group
            while len(self._groups) > self._kept:
                self._groups.popitem(last=False)

    def get(self, model: str, task: str, sampling: SamplingConfig) -> Group | None:
        """The group of these settings, or None."""
        return self._groups.get((model, task, sampling))


RECENT = RecentGroups()


def sampling_of(state: GroupState) -> SamplingConfig:
    """The sampling settings of a state; raises :class:`InputError` for one out of range."""
    return SamplingConfig(
        num_generations=state.num_generations,
        temperature=state.temperature,
        top_p=state.top_p,
        max_completion_length=state.max_completion_length,
        seed=state.seed,
    )


def model_choices(any_model: bool = True) -> list[tuple[str, str]]:
    """(label, value) of the models to choose from: recorded ones first, then the ones that sample here."""
    recorded = [(f"{name}, recorded", RECORDED + name) for name in recorded_models()]
    live = [(f"{name}, live", name) for name in MODELS]
    return [*recorded, *live] if any_model or recorded or live else []


def first_state(state: GroupState) -> GroupState:
    """``state`` with a model and a task that can be shown, where it names none or one without a recording."""
    if state.is_recorded and state.policy_name not in recorded_models():
        known = recorded_models()
        state = replace(state, model=RECORDED + known[0] if known else state.policy_name)
    if not state.task:
        groups = recorded_of(state)
        state = replace(state, task=_opening(groups).task.id if groups else FIRST_TASK)
    return state


def recorded_of(state: GroupState, source: str | None = None) -> list[Group]:
    """The recorded groups a state can show, of one source or of all; empty for a live model."""
    if not state.is_recorded or state.policy_name not in recorded_models():
        return []
    return [g for g in recorded_groups(state.policy_name) if source is None or g.task.source == source]


def find_group(state: GroupState) -> tuple[Group | None, str]:
    """The group that a state describes, if it can be shown without sampling, and a few words on where it is from."""
    if not state.is_recorded:
        group = RECENT.get(state.policy_name, state.task, sampling_of(state))
        return group, live_source(state) if group else ""
    group = next((g for g in recorded_of(state) if g.task.id == state.task), None)
    if group is None:
        return None, ""
    return (
        group,
        f"recorded from {state.policy_name} · temperature {group.sampling.temperature:g} · seed {group.sampling.seed}",
    )


def as_recorded(state: GroupState, group: Group) -> GroupState:
    """``state`` with the sampling settings of a recorded group, so that the controls tell how it was made."""
    sampling = group.sampling
    return replace(
        state,
        num_generations=len(group.completions),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_completion_length=sampling.max_completion_length,
        seed=sampling.seed,
    )


def live_source(state: GroupState, steps: int = 0) -> str:
    """A few words on a live group: which model, and the seed that gives it again."""
    after = f" after {steps} step{'s' * (steps != 1)}" if steps else ""
    return f"sampled from {state.policy_name}{after} · temperature {state.temperature:g} · seed {state.seed}"


def find_task(state: GroupState) -> Task:
    """The task of a state, from its recording or by its id; raises :class:`InputError` for an unknown id."""
    group = next((g for g in recorded_of(state) if g.task.id == state.task), None)
    return group.task if group else get_task(state.task)


def source_choices(state: GroupState) -> list[tuple[str, str]]:
    """(label, value) of the sources a state can take tasks from; a recording has its own."""
    names = dict.fromkeys(g.task.source for g in recorded_of(state)) if state.is_recorded else SOURCES
    return [(name.replace("_", " "), name) for name in names] or [(n.replace("_", " "), n) for n in SOURCES]


def task_ids(state: GroupState, source: str) -> list[str]:
    """The ids to step through: the recorded ones, or the first few hundred of a live source."""
    recorded = [g.task.id for g in recorded_of(state, source)]
    return recorded or list(_ids(source))


def next_task_id(state: GroupState, source: str) -> str:
    """The id after the state's own in its source, round at the end; the first when it is not of this source."""
    ids = task_ids(state, source)
    if not ids:
        raise InputError(f"source: {source!r} has no tasks to show; choose another one.")
    return ids[(ids.index(state.task) + 1) % len(ids)] if state.task in ids else ids[0]


def place_of(state: GroupState, task: Task) -> str:
    """Where a recorded task stands: "group 4 of 120"; empty for a live model."""
    ids = [g.task.id for g in recorded_of(state, task.source)]
    return f"recorded group {ids.index(task.id) + 1} of {len(ids)}" if task.id in ids else ""


@lru_cache(maxsize=16)
def _ids(source: str) -> tuple[str, ...]:
    return tuple(task.id for task in load_tasks(source))


def _opening(groups: list[Group]) -> Group:
    """The group to open on: one with answers on both sides of the mean and several dimensions at work."""

    def telling(group: Group) -> tuple[int, int, float]:
        scores = group.rewards_per_func()
        unlike = len({tuple(row) for row in scores.round(2).tolist()})
        return int((scores.std(axis=0) > 0.05).sum()), unlike, -abs(float(scores[:, 0].mean()) - 0.5)

    return max(groups[:100], key=telling)

"""The recorded groups that ship with the package."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.grpo import dead_groups
from workbench.rewards import DEFAULT_WEIGHTS, score_group
from workbench.runs import recorded
from workbench.runs.groups import write_groups
from workbench.runs.recorded import recorded_groups, recorded_models
from workbench.types import Completion, Group, Score, Split, Task


def test_nano_comes_first_and_an_unknown_model_gets_the_nearest(tmp_path, monkeypatch):
    task = Task("desk-3", "desk", Split.HELD_OUT, ({"role": "user", "content": "x"},))
    group = Group(task, (Completion("a"),), ({"safety": Score(1.0, "safe")},), "nano")
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    assert recorded_models() == ()
    for name in ("another", "nano"):
        write_groups(tmp_path / f"{name}.parquet", [group])
    assert recorded_models() == ("nano", "another")
    assert recorded_groups("nano") == [group]
    with pytest.raises(InputError, match="did you mean 'nano'"):
        recorded_groups("nanno")


def test_the_list_given_out_is_the_callers_own(tmp_path, monkeypatch):
    task = Task("desk-3", "desk", Split.HELD_OUT, ({"role": "user", "content": "x"},))
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    write_groups(tmp_path / "nano.parquet", [Group(task, (Completion("a"),))])
    recorded_groups("nano").clear()
    assert len(recorded_groups("nano")) == 1


@pytest.mark.parametrize("model", recorded_models() or [pytest.param("", marks=pytest.mark.skip("nothing recorded"))])
def test_what_ships_is_whole_groups_with_scores_and_tokens(model):
    groups = recorded_groups(model)
    assert groups
    for group in groups:
        assert len(group.completions) == group.sampling.num_generations
        assert group.dimensions
        assert all(len(c.logps) == len(c.entropies) == len(c.tokens) == c.length > 0 for c in group.completions)


@pytest.mark.parametrize(("model", "source", "most_dead"), [("nano", "desk", 0.4), ("smollm2", "bfcl_simple", 0.6)])
def test_the_recorded_groups_carry_signal_and_are_scored_as_the_rewards_score_today(model, source, most_dead):
    groups = [g for g in recorded_groups(model) if g.task.source == source]
    totals = np.stack([g.rewards_per_func() @ list(DEFAULT_WEIGHTS.values()) for g in groups])
    assert len(groups) >= 30
    assert dead_groups(totals).share < most_dead
    assert all(g.task.split == Split.HELD_OUT for g in groups)
    for group in groups[::7]:
        assert score_group(group.task, group.completions) == tuple(dict(row) for row in group.scores)

"""A small recording to open on: desk tasks answered by the flawed clerk, scored by the real reward."""

import random

import pytest

from workbench.rewards import score_group
from workbench.runs import recorded
from workbench.runs.groups import write_groups
from workbench.tasks import get_task
from workbench.tasks.desk.demonstrations import flawed_answer
from workbench.types import Completion, Group, SamplingConfig
from workbench.ui import handlers
from workbench.ui.sessions import Session


def completion_of(text):
    """A completion with a token for every three characters and invented log-probabilities."""
    tokens = tuple(text[i : i + 3] for i in range(0, len(text), 3))
    logps = tuple(-0.1 * (1 + i % 5) for i in range(len(tokens)))
    return Completion(text, tuple(range(len(tokens))), tokens, logps, tuple(0.2 for _ in tokens))


def group_of(task, texts, model="nano", seed=0):
    completions = tuple(completion_of(text) for text in texts)
    return Group(task, completions, score_group(task, completions), model, SamplingConfig(len(texts), seed=seed))


def clerks_group(index, k):
    task, rng = get_task(f"desk-{index}"), random.Random(index)
    return group_of(task, [flawed_answer(task, rng)[0] for _ in range(k)], seed=index)


@pytest.fixture
def a_recording(tmp_path, monkeypatch):
    """Six recorded groups of "nano", the odd ones with 16 completions."""
    groups = [clerks_group(index, 16 if index % 2 else 8) for index in range(6)]
    write_groups(tmp_path / "nano.parquet", groups)
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    return groups


@pytest.fixture
def page(a_recording):
    """A page just opened on task desk-1, a group of 16."""
    session = Session()
    handlers.open_page(session, {"task": "desk-1"})
    return session

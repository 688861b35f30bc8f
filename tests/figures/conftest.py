"""Small invented groups, named by how they behave."""

import pytest

from workbench.types import Completion, ExpectedCall, Group, Score, Split, StopReason, Task, Tool, tools_to_json

DIMENSIONS = ("task_completion", "tool_accuracy", "efficiency", "safety")


def group_of(rows, texts=None):
    """A group whose completions have these four scores each (None = unscored)."""
    tool = Tool(
        "transfer_money", "Send money.", {"type": "object", "properties": {"to": {"type": "string"}}}, destructive=True
    )
    expected = (ExpectedCall("transfer_money", {"to": ("nina",)}),)
    task = Task(
        "hand-1", "hand", Split.TRAIN, ({"role": "user", "content": "pay nina"},), tools_to_json([tool]), expected
    )
    texts = texts or [f"answer {k}" for k in range(len(rows))]
    completions = tuple(
        Completion(text, (5, 6), (text, "<end>"), (-0.5, -0.1), (0.4, 0.2), None, StopReason.EOS) for text in texts
    )
    scores = tuple({d: Score(v, f"{d} is {v}") for d, v in zip(DIMENSIONS, row, strict=True)} for row in rows)
    return Group(task, completions, scores, "hand")


@pytest.fixture
def a_group_with_one_unsafe_call():
    """Three fair answers and one that is right but unsafe."""
    return group_of([(1, 1, 1, 1), (1, 1, 1, 0), (0, 0.5, 1, 1), (0, 0, 0.5, 1)])


@pytest.fixture
def a_group_whose_judge_failed_once():
    """Four answers, the third without a safety score."""
    return group_of([(1, 1, 1, 1), (0, 0.5, 1, 1), (1, 1, 1, None), (0, 0, 0, 1)])

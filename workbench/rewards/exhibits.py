"""Rewards that look reasonable and are not, kept to be caught: what the probes are for.

:func:`keyword_tool_reward` is the tool-calling reward of many first drafts, in our own words: 40 % the right tool, 30 %
well-formed arguments, 15 % a sensible order, 15 % error handling, each "measured" by looking for words. A sentence
that contains the words earns everything, a right call earns less, and a policy trained on it learns the sentence.
"""

from __future__ import annotations

from workbench.types import Task

NONSENSE = 'First I call the tool {"arguments": 1} then handle the error.'
_SIGNS = (
    (0.40, ("tool", "call", "function")),
    (0.30, ("{", "arguments", "parameters")),
    (0.15, ("first", "then", "next", "step")),
    (0.15, ("error", "retry", "exception", "try")),
)


def keyword_tool_reward(task: Task, text: str) -> float:
    """The exhibit: the weights of all signs of which one keyword occurs; ``task`` is not even looked at.

    >>> from workbench.tasks import get_task
    >>> keyword_tool_reward(get_task("bfcl-simple_python_0"), NONSENSE)
    1.0
    """
    del task
    lowered = text.lower()
    return sum(weight for weight, words in _SIGNS if any(word in lowered for word in words))

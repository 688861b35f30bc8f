"""(task, completion) -> score: reading tool calls, comparing them with what was right, and auditing rewards."""

from workbench.rewards.dimensions import DEFAULT_WEIGHTS, DIMENSIONS, score_completion, score_group
from workbench.rewards.parse import ParsedCompletion, parse_completion

__all__ = [
    "DEFAULT_WEIGHTS",
    "DIMENSIONS",
    "ParsedCompletion",
    "parse_completion",
    "score_completion",
    "score_group",
]

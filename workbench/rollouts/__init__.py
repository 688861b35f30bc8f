"""A policy meets a task: K completions of one prompt with their log-probabilities, and the scored group they make."""

from workbench.rollouts.group import sample_group
from workbench.rollouts.sample import TokenEvent, sample_completions, sample_prompt
from workbench.rollouts.score_logps import score_logps, token_logps, with_reference

__all__ = [
    "TokenEvent",
    "sample_completions",
    "sample_group",
    "sample_prompt",
    "score_logps",
    "token_logps",
    "with_reference",
]

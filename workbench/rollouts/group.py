"""One group: K completions of one prompt, sampled and scored."""

from __future__ import annotations

from workbench.models.policy import Policy
from workbench.models.templates import render_prompt
from workbench.rewards import score_group
from workbench.rollouts.sample import Cancel, OnToken, sample_prompt
from workbench.rollouts.score_logps import with_reference
from workbench.types import Group, SamplingConfig, Task


def sample_group(
    policy: Policy,
    task: Task,
    sampling: SamplingConfig,
    *,
    reference: Policy | None = None,
    on_token: OnToken | None = None,
    cancel: Cancel | None = None,
) -> Group:
    """Sample a group and score every completion; with a ``reference`` policy its log-probabilities are kept too."""
    prompt = render_prompt(policy.tokenizer, task)
    completions = sample_prompt(policy, prompt, sampling, on_token=on_token, cancel=cancel)
    if reference is not None:
        completions = with_reference(reference, prompt.ids, completions)
    return Group(task, completions, score_group(task, completions), policy.name, sampling)

"""Log-probabilities of given completions under a policy, in one teacher-forced forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from transformers import DynamicCache

from workbench.errors import InputError
from workbench.models.policy import Policy
from workbench.rollouts.llama import base_of
from workbench.types import Completion


def score_logps(
    policy: Policy, prompt_ids: Sequence[int], completions: Sequence[Completion], *, rows: int = 16
) -> tuple[tuple[float, ...], ...]:
    """Log-probability (nats, temperature 1) of every token of every completion after this prompt.

    One tuple a completion, as long as its ``token_ids``; computed ``rows`` completions at a time without gradient.
    With the policy that sampled them it equals ``logps`` up to float32 rounding; with a frozen reference it is
    ``ref_logps``. The logits of the prompt are not computed.
    """
    if not prompt_ids:
        raise InputError("prompt_ids: there are none; log-probabilities need the prompt that was answered.")
    result: list[tuple[float, ...]] = []
    with torch.inference_mode():
        for start in range(0, len(completions), rows):
            part = completions[start : start + rows]
            logps = token_logps(policy, prompt_ids, [c.token_ids for c in part])[0].tolist()
            result += [tuple(row[: c.length]) for row, c in zip(logps, part, strict=True)]
    return tuple(result)


def with_reference(
    policy: Policy, prompt_ids: Sequence[int], completions: Sequence[Completion]
) -> tuple[Completion, ...]:
    """The completions with ``ref_logps`` filled in by ``policy``, a frozen reference."""
    scored = score_logps(policy, prompt_ids, completions)
    return tuple(replace(c, ref_logps=logps) for c, logps in zip(completions, scored, strict=True))


def token_logps(
    policy: Policy, prompt_ids: Sequence[int], completion_ids: Sequence[Sequence[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """(per_token_logps, completion_mask), both (B, T): log-probabilities in float32, 0 where the mask is 0.

    Differentiable, through the prompt too: the prompt is computed once and its keys and values are repeated for the
    B rows, so its cost does not grow with K. Completions are padded on the right, where a causal model sees nothing
    of the padding; positions are those of sampling.
    """
    width = max((len(ids) for ids in completion_ids), default=0)
    if width == 0:
        empty = torch.zeros(len(completion_ids), 0, device=policy.device)
        return empty, empty
    padded = [[*ids, *[policy.pad_token_id] * (width - len(ids))] for ids in completion_ids]
    targets = torch.tensor(padded, device=policy.device)
    mask = torch.tensor([[1.0] * len(i) + [0.0] * (width - len(i)) for i in completion_ids], device=policy.device)
    logits = _logits(policy, torch.tensor([list(prompt_ids)], device=policy.device), targets).float()
    logps = logits.gather(-1, targets[..., None])[..., 0] - logits.logsumexp(dim=-1)
    return torch.where(mask.bool(), logps, torch.zeros_like(logps)), mask


def _logits(policy: Policy, prompt: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The logits that predict ``targets`` (B, T) after ``prompt`` (1, L), shape (B, T, vocabulary)."""
    cache = DynamicCache(config=base_of(policy.model).config)
    first = policy.model(input_ids=prompt, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
    first = first.expand(len(targets), -1, -1)
    if targets.shape[1] == 1:
        return first
    cache.batch_repeat_interleave(len(targets))
    rest = policy.model(input_ids=targets[:, :-1], past_key_values=cache, use_cache=True).logits
    return torch.cat((first, rest), dim=1)

"""Decoding K continuations of one prompt: the prompt computed once, rows in lockstep, finished rows dropped.

Two ways with the same three verbs (``first_logits``, ``step``, ``keep``): :class:`CachedDecoder` for any causal
language model of transformers, on any device, and :class:`~workbench.rollouts.llama.LlamaDecoder` where it fits.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from workbench.errors import InputError
from workbench.models.policy import Policy
from workbench.rollouts.llama import LlamaDecoder, PackedLlama, base_of, fits


class Decoder(Protocol):
    """K continuations of one prompt, all of the same length at every moment."""

    first_logits: torch.Tensor  # (1, vocabulary), after the prompt's last token

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Append one token to every row, ids of shape (rows,); the logits after it, shape (rows, vocabulary)."""
        ...

    def keep(self, rows: torch.Tensor) -> None:
        """Retire every row but these (indices among the current rows)."""
        ...


class CachedDecoder:
    """Any causal language model: the prompt's cache is computed for one row and then repeated for K."""

    def __init__(self, policy: Policy, prompt_ids: tuple[int, ...], rows: int) -> None:
        self.model, self.device = policy.model, policy.device
        self.cache = DynamicCache(config=base_of(policy.model).config)
        self.first_logits = self._forward(torch.tensor([prompt_ids], device=self.device))
        self.cache.batch_repeat_interleave(rows)
        self.length = len(prompt_ids)

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        out = self.model(input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        logits: torch.Tensor = out.logits[:, -1].float()
        return logits

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """See :class:`Decoder`."""
        self.length += 1
        return self._forward(tokens[:, None])

    def keep(self, rows: torch.Tensor) -> None:
        """See :class:`Decoder`."""
        self.cache.batch_select_indices(rows)


_PACKED: weakref.WeakKeyDictionary[Any, tuple[tuple[Any, ...], PackedLlama]] = weakref.WeakKeyDictionary()


def decoder_for(policy: Policy, prompt_ids: tuple[int, ...], rows: int, max_new_tokens: int) -> Decoder:
    """The fastest exact decoder for ``policy``, with the prompt already computed.

    Packed weights are kept with the model and made again when any parameter has changed since.
    """
    limit = getattr(base_of(policy.model).config, "max_position_embeddings", None)
    if not prompt_ids:
        raise InputError("prompt_ids: there are none; a completion needs at least one token to continue.")
    if limit is not None and len(prompt_ids) + max_new_tokens > limit:
        raise InputError(
            f"max_completion_length: a prompt of {len(prompt_ids)} tokens and {max_new_tokens} more go beyond the "
            f"model's {limit} positions; the largest allowed here is {max(0, limit - len(prompt_ids))}."
        )
    if fits(policy):
        return LlamaDecoder(packed_weights(policy), prompt_ids, rows, max_new_tokens)
    return CachedDecoder(policy, prompt_ids, rows)


def packed_weights(policy: Policy) -> PackedLlama:
    """The packed weights of ``policy`` as they are now."""
    state = tuple((id(p), p._version, p.data_ptr()) for p in policy.model.parameters())
    held = _PACKED.get(policy.model)
    if held is None or held[0] != state:
        held = _PACKED[policy.model] = (state, PackedLlama(policy))
    return held[1]

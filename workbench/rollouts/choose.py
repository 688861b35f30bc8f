"""Choosing the next token of every row: temperature, top-p, and one private stream of random numbers a row."""

from __future__ import annotations

import torch

NUCLEUS = 1024  # how many of the likeliest tokens are looked at before the whole vocabulary is sorted


def row_streams(seed: int, rows: int, draws: int) -> torch.Tensor:
    """Uniform numbers in [0, 1), shape (rows, draws), float64: row k's depend on ``seed`` and k alone.

    Hence completion k of a seed is the same completion whatever K is, up to the rounding of batched kernels.

    >>> bool((row_streams(7, 2, 4) == row_streams(7, 5, 4)[:2]).all())
    True
    """
    streams = []
    for row in range(rows):
        generator = torch.Generator().manual_seed((seed * 0x9E3779B97F4A7C15 + row * 0xBF58476D1CE4E5B9 + 1) % 2**63)
        streams.append(torch.rand(draws, generator=generator, dtype=torch.float64))
    return torch.stack(streams)


def choose(logits: torch.Tensor, uniforms: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """One token a row, shape (rows,), by inverting the cumulative distribution at ``uniforms`` (rows,).

    ``logits`` (rows, vocabulary) are divided by ``temperature``; then only the smallest set of likeliest tokens
    whose probability reaches ``top_p`` is kept.
    """
    probs = (logits / temperature if temperature != 1.0 else logits).softmax(dim=-1)
    if top_p < 1.0:
        return _choose_in_nucleus(probs, uniforms, top_p)
    return _invert(probs, uniforms)


def _invert(probs: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """The first index whose cumulative probability exceeds the uniform; never one of probability 0."""
    total = probs.cumsum(dim=-1, dtype=torch.float64 if probs.device.type != "mps" else torch.float32)
    at = uniforms.to(total).unsqueeze(-1) * total[:, -1:]
    last = (probs > 0).long().cumsum(dim=-1).argmax(dim=-1) if bool((at >= total[:, -1:]).any()) else None
    index = torch.searchsorted(total, at, right=True).squeeze(-1)
    return index if last is None else torch.minimum(index, last)


def _choose_in_nucleus(probs: torch.Tensor, uniforms: torch.Tensor, top_p: float) -> torch.Tensor:
    width = min(NUCLEUS, probs.shape[-1])
    sorted_probs, order = probs.topk(width, dim=-1)
    if width < probs.shape[-1] and bool((sorted_probs.sum(dim=-1) < top_p).any()):
        sorted_probs, order = probs.sort(dim=-1, descending=True)
    before = sorted_probs.cumsum(dim=-1) - sorted_probs
    kept = sorted_probs.masked_fill(before >= top_p, 0.0)
    return order.gather(-1, _invert(kept, uniforms).unsqueeze(-1)).squeeze(-1)

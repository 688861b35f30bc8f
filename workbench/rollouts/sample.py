"""K completions of one prompt in one batch: every token with its log-probability and entropy, streamed as it comes.

``logps`` are log-probabilities at temperature 1 and without top-p, under the model's own distribution: what a
trainer recomputes. Tokens are chosen under ``temperature`` and ``top_p``; with both at 1 the two agree. Completion
k of a seed draws from its own stream of random numbers, so it does not depend on K nor on when others end (up to
the rounding of batched kernels).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from workbench.models.policy import Policy
from workbench.models.templates import RenderedPrompt, render_prompt
from workbench.rollouts.choose import choose, row_streams
from workbench.rollouts.decoder import Decoder, decoder_for
from workbench.rollouts.pieces import PieceReader, decode
from workbench.types import Completion, SamplingConfig, StopReason, Task


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One sampled token of completion ``row``; ``n_done`` of ``n_rows`` have ended; the rate is over all rows."""

    row: int
    token_id: int
    text: str
    logp: float
    n_done: int
    n_rows: int
    tokens_per_second: float


OnToken = Callable[[TokenEvent], None]


class Cancel(Protocol):
    """Anything with ``is_set()``, such as a threading.Event."""

    def is_set(self) -> bool:
        """Whether sampling should stop now."""
        ...


@dataclass(slots=True)
class Row:
    """One completion while it is being sampled."""

    ids: list[int] = field(default_factory=list)
    logps: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    stop: StopReason | None = None
    error: str | None = None


def sample_completions(
    policy: Policy,
    task: Task,
    sampling: SamplingConfig,
    *,
    on_token: OnToken | None = None,
    cancel: Cancel | None = None,
) -> tuple[Completion, ...]:
    """Sample ``sampling.num_generations`` completions of ``task``; the same seed gives the same tokens.

    ``on_token`` is called for every token in order; setting ``cancel`` ends the rows that are still going, with
    what they have. Raises :class:`~workbench.errors.InputError` when the prompt cannot be rendered or does not fit.
    """
    prompt = render_prompt(policy.tokenizer, task)
    return sample_prompt(policy, prompt, sampling, on_token=on_token, cancel=cancel)


def sample_prompt(
    policy: Policy,
    prompt: RenderedPrompt,
    sampling: SamplingConfig,
    *,
    on_token: OnToken | None = None,
    cancel: Cancel | None = None,
) -> tuple[Completion, ...]:
    """As :func:`sample_completions`, from a prompt that is rendered already."""
    rows = [Row() for _ in range(sampling.num_generations)]
    with torch.inference_mode():
        decoder = decoder_for(policy, prompt.ids, len(rows), sampling.max_completion_length)
        _decode(policy, decoder, rows, sampling, Stream(policy, rows, on_token), cancel)
    return tuple(finished(policy, row, prompt.prefill) for row in rows)


class Stream:
    """Turns sampled tokens into :class:`TokenEvent` calls; does nothing when nobody listens."""

    def __init__(self, policy: Policy, rows: list[Row], on_token: OnToken | None) -> None:
        self.rows, self.on_token = rows, on_token
        self.readers = [PieceReader(policy.tokenizer) for _ in rows] if on_token else []
        self.ends = set(policy.eos_token_ids)
        self.started, self.tokens = time.perf_counter(), 0

    def tell(self, index: int, token_id: int, logp: float) -> None:
        """Report the newest token of row ``index``; the end-of-turn mark has no text."""
        if self.on_token is None:
            return
        self.tokens += 1
        reader, stop = self.readers[index], self.rows[index].stop
        text = "" if token_id in self.ends else reader.push(token_id)
        text += reader.flush() if stop is not None else ""
        done = sum(row.stop is not None for row in self.rows)
        rate = self.tokens / max(time.perf_counter() - self.started, 1e-9)
        self.on_token(TokenEvent(index, token_id, text, logp, done, len(self.rows), rate))


def _decode(
    policy: Policy, decoder: Decoder, rows: list[Row], sampling: SamplingConfig, stream: Stream, cancel: Cancel | None
) -> None:
    """Fill ``rows`` token by token until each has a stop reason, retiring the finished ones."""
    uniforms = row_streams(sampling.seed, len(rows), sampling.max_completion_length)
    ends = set(policy.eos_token_ids)
    alive = list(range(len(rows)))
    logits = decoder.first_logits.expand(len(rows), -1)
    for position in range(sampling.max_completion_length):
        if cancel is not None and cancel.is_set():
            break
        tokens = _extend(rows, alive, logits, uniforms[alive, position], sampling)
        for index in alive:
            row = rows[index]
            if row.stop is None and row.ids[-1] in ends:
                row.stop = StopReason.EOS
            elif row.stop is None and position + 1 == sampling.max_completion_length:
                row.stop = StopReason.LENGTH
            if row.stop is not StopReason.ERROR:
                stream.tell(index, row.ids[-1], row.logps[-1])
        going = [at for at, index in enumerate(alive) if rows[index].stop is None]
        if not going:
            return
        if len(going) < len(alive):
            kept = torch.tensor(going, device=tokens.device)
            decoder.keep(kept)
            tokens, alive = tokens[kept], [alive[at] for at in going]
        logits = decoder.step(tokens)
    for index in alive:
        rows[index].stop = StopReason.CANCELLED


def _extend(
    rows: list[Row], alive: list[int], logits: torch.Tensor, uniforms: torch.Tensor, sampling: SamplingConfig
) -> torch.Tensor:
    """Choose and record one token for each row alive; a row whose logits are not finite ends with an error."""
    plain = logits.log_softmax(dim=-1)
    probs = plain.exp()
    entropies = -(probs * plain.clamp_min(-1e9)).sum(dim=-1)
    broken = ~torch.isfinite(entropies)
    if bool(broken.any()):
        logits = torch.where(broken[:, None], torch.zeros_like(logits), logits)
    tokens = choose(logits, uniforms.to(logits.device), sampling.temperature, sampling.top_p)
    logps = plain.gather(-1, tokens[:, None])[:, 0]
    columns = zip(alive, tokens.tolist(), logps.tolist(), entropies.tolist(), broken.tolist(), strict=True)
    for index, token, logp, entropy, bad in columns:
        row = rows[index]
        if bad:
            row.stop, row.error = StopReason.ERROR, f"the model's logits are not finite at token {len(row.ids)}"
            continue
        row.ids.append(token)
        row.logps.append(logp)
        row.entropies.append(max(entropy, 0.0))
    return tokens


def finished(policy: Policy, row: Row, prefill: str = "") -> Completion:
    """The :class:`Completion` of a row: text decoded once, without its end-of-turn mark, and the text of each token.

    The pieces of ``tokens`` join to ``text``, followed by the mark when the row ended its turn.
    """
    ended = row.stop is StopReason.EOS
    body = row.ids[:-1] if ended else row.ids
    pieces = token_texts(policy.tokenizer, body)
    marks = [decode(policy.tokenizer, row.ids[-1:])] if ended else []
    return Completion(
        text="".join(pieces),
        token_ids=tuple(row.ids),
        tokens=(*pieces, *marks),
        logps=tuple(row.logps),
        entropies=tuple(row.entropies),
        stop_reason=row.stop or StopReason.CANCELLED,
        error=row.error,
        prefill=prefill,
    )


def token_texts(tokenizer: object, ids: list[int]) -> list[str]:
    """The text of each id; they join to the text of them all. What is held back at the end goes to the last one."""
    reader = PieceReader(tokenizer)
    pieces = [reader.push(i) for i in ids]
    if pieces:
        pieces[-1] += reader.flush()
    return pieces

"""What a token strip is shaded by: four readings of the same tokens, as plain numbers.

The HTML of the strip belongs to `ui/`; here a reading becomes one number in [-1, 1] a token, and a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import InputError, unknown
from workbench.figures.numbers import percent, signed, significant

READINGS = {
    "logp": "log-probability: darker where the model found its own token surprising",
    "entropy": "entropy: darker where the model could have gone many ways",
    "kl": "KL to the reference: darker where the policy has moved away from the frozen model",
    "push": "net push: blue tokens are made likelier by the next update, orange ones less likely",
}
FULL_SURPRISE = 4.0  # nats: a token of probability 1.8 % or less gets the full shade
FULL_ENTROPY = 2.0  # nats: as undecided as a fair choice among seven
FULL_KL = 0.1  # nats a token: well beyond what a healthy run shows


@dataclass(frozen=True, slots=True)
class TokenShades:
    """One reading of a completion: ``shades`` in [-1, 1] and a ``sentences`` entry a token, T of each.

    Negative shades are orange, positive ones blue when the reading is "push"; the other readings are 0 or more and
    grey. ``summary`` is one sentence about the whole strip.
    """

    reading: str
    shades: tuple[float, ...]
    sentences: tuple[str, ...]
    summary: str


def token_shades(
    reading: str,
    *,
    logps: Sequence[float],
    entropies: Sequence[float] = (),
    ref_logps: Sequence[float] | None = None,
    push: Any = None,
    largest_push: float | None = None,
) -> TokenShades:
    """The shade and the sentence of every token under one of :data:`READINGS`.

    Args:
        reading: "logp", "entropy", "kl" or "push".
        logps, entropies, ref_logps: (T,), nats. ``ref_logps`` None: the reference is the policy itself, so KL is 0.
        push: (T,), from :func:`workbench.grpo.token_push`; needed for "push".
        largest_push: the push that gets the full shade, so that strips of one group compare; default: the largest here.

    Raises:
        InputError: an unknown reading, or its numbers are missing or of another length than ``logps``.

    >>> token_shades("logp", logps=[0.0, -2.0]).shades
    (0.0, 0.5)
    """
    if reading not in READINGS:
        raise unknown("reading", reading, READINGS)
    now = np.asarray(logps, float)
    if reading == "logp":
        return _surprise(now)
    if reading == "entropy":
        return _entropy(_sized("entropies", entropies, len(now)))
    if reading == "kl":
        return _kl(now, now if ref_logps is None else _sized("ref_logps", ref_logps, len(now)))
    return _push(_sized("push", push, len(now)), largest_push)


def _surprise(logps: np.ndarray) -> TokenShades:
    sentences = tuple(
        f"probability {percent(float(np.exp(v)))}, log-probability {significant(float(v))}" for v in logps
    )
    mean = float(logps.mean()) if logps.size else 0.0
    summary = f"On average the model gave its own tokens a probability of {percent(float(np.exp(mean)))} each."
    return TokenShades("logp", _shades(-logps / FULL_SURPRISE), sentences, summary)


def _entropy(values: np.ndarray) -> TokenShades:
    sentences = tuple(
        f"entropy {significant(float(v))} nats: about {np.exp(v):.1f} equally likely choices" for v in values
    )
    mean = float(values.mean()) if values.size else 0.0
    summary = f"Mean entropy {significant(mean)} nats: about {np.exp(mean):.1f} equally likely choices a token."
    return TokenShades("entropy", _shades(values / FULL_ENTROPY), sentences, summary)


def _kl(now: np.ndarray, ref: np.ndarray) -> TokenShades:
    """k3, the estimator of the loss: exp(ref - now) - (ref - now) - 1."""
    gap = np.clip(ref - now, -60.0, 60.0)
    values = np.expm1(gap) - gap
    sentences = tuple(f"KL to the reference {significant(float(v))} nats" for v in values)
    total = float(values.sum())
    if total == 0.0:
        summary = (
            "KL is 0 everywhere: the policy still is the reference. Take a step, and this strip shows where it moved."
        )
    else:
        summary = f"KL to the reference: {significant(total)} nats over the whole completion."
    return TokenShades("kl", _shades(values / FULL_KL), sentences, summary)


def _push(push: np.ndarray, largest: float | None) -> TokenShades:
    full = float(np.abs(push).max(initial=0.0)) if largest is None else largest
    shades = _shades(push / full) if full > 0 else (0.0,) * len(push)
    words = ["made likelier" if v > 0 else "made less likely" if v < 0 else "not pushed" for v in push]
    sentences = tuple(f"push {signed(float(v), 4)}: {word}" for v, word in zip(push, words, strict=True))
    return TokenShades("push", shades, sentences, _push_summary(push))


def _push_summary(push: np.ndarray) -> str:
    if not push.any():
        return "No token is pushed: the advantage is 0, or every token is clipped."
    still = int((push == 0).sum())
    if still:
        return f"{still} of {len(push)} tokens are not pushed: their ratio left the clip range."
    if significant(float(push.min())) == significant(float(push.max())):
        return (
            f"Every token gets the same push, {significant(float(push[0]))}: the advantage, shared out "
            "by the loss type. After a step, epsilon and beta tell tokens apart."
        )
    return f"Pushes from {significant(float(push.min()))} to {significant(float(push.max()))} a token."


def _shades(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(v) for v in np.clip(values, -1.0, 1.0).round(3) + 0.0)


def _sized(name: str, values: Any, length: int) -> np.ndarray:
    array = np.asarray(() if values is None else values, float)
    if array.shape != (length,):
        got = "none" if values is None else f"{array.size}"
        raise InputError(f"{name}: expected {length} values, one a token, got {got}.")
    return array

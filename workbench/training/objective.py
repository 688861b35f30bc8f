"""The GRPO-family losses in torch: what :mod:`workbench.grpo.losses` computes in NumPy, with autograd's gradient.

One variant is one short function from (ratio, advantages, ...) to a per-token loss; what is left is how tokens are
averaged (:func:`token_weights`). Log-probabilities should be float32 or wider; log-ratios are held within
``LOG_RATIO_CAP`` nats so that nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from workbench.errors import InputError, checked_range, unknown
from workbench.grpo import IMPORTANCE_SAMPLING_LEVELS, LOG_RATIO_CAP, LOSS_TYPES


@dataclass(frozen=True, slots=True)
class Objective:
    """The settings of a loss; names, meanings and defaults are those of :func:`workbench.grpo.policy_loss`."""

    loss_type: str = "dapo"
    importance_sampling_level: str = "token"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    delta: float | None = None
    beta: float = 0.0
    use_bias_correction_kl: bool = True
    max_completion_length: int | None = None

    def __post_init__(self) -> None:
        if self.loss_type not in LOSS_TYPES:
            raise unknown("loss_type", self.loss_type, LOSS_TYPES)
        if self.importance_sampling_level not in IMPORTANCE_SAMPLING_LEVELS:
            raise unknown("importance_sampling_level", self.importance_sampling_level, IMPORTANCE_SAMPLING_LEVELS)
        checked_range("epsilon", self.epsilon, 0.0, 1.0)
        checked_range("beta", self.beta, 0.0, 1e6)
        for name in ("epsilon_high", "delta"):
            if getattr(self, name) is not None:
                checked_range(name, getattr(self, name), 0.0, 1e6)

    @property
    def upper(self) -> float:
        """``epsilon_high``, or ``epsilon`` where it is not given."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high


@dataclass(frozen=True, slots=True)
class BatchLoss:
    """What the objective found in one batch: the scalar ``loss`` to differentiate, and figures without gradient.

    ``ratio`` is (B, T); ``clip_ratio`` is the clipped share of tokens (of rows at sequence level); ``mean_kl`` and
    ``max_kl`` are None without reference log-probabilities.
    """

    loss: torch.Tensor
    ratio: torch.Tensor
    clip_ratio: float
    mean_kl: float | None
    max_kl: float | None


def objective_loss(
    per_token_logps: torch.Tensor,
    old_per_token_logps: torch.Tensor | None,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    settings: Objective,
    *,
    ref_per_token_logps: torch.Tensor | None = None,
    num_items_in_batch: float | None = None,
) -> BatchLoss:
    """The loss of a batch: (B, T) log-probabilities, advantages (B,) or (B, T), and the loss mask (B, T).

    ``old_per_token_logps`` None means equal to now. Equal to :func:`workbench.grpo.policy_loss` in value and
    gradient (tested in float64). Raises :class:`InputError` when beta is above 0 and the reference is missing.
    """
    if settings.beta and ref_per_token_logps is None:
        raise InputError(f"ref_per_token_logps: beta is {settings.beta:g}, so they are needed; or set beta to 0.")
    now, used = per_token_logps, mask > 0
    old = now.detach() if old_per_token_logps is None else old_per_token_logps
    credit = advantages if advantages.ndim == 2 else advantages[:, None]
    ratio = importance_ratio(torch.where(used, now - old, 0.0), mask, settings.importance_sampling_level)
    if settings.loss_type == "cispo":
        per_token, clipped = cispo_loss(ratio, credit, now, settings.upper)
    else:
        per_token, clipped = clipped_loss(ratio, credit, settings.epsilon, settings.upper, settings.delta)
    kl = None
    if ref_per_token_logps is not None:
        kl = per_token_kl(torch.where(used, ref_per_token_logps - now, 0.0))
        kl = kl * ratio if settings.use_bias_correction_kl else kl
        per_token = per_token + settings.beta * kl if settings.beta else per_token
    weights = token_weights(mask, settings, num_items_in_batch)
    loss = torch.where(used, per_token, 0.0).mul(weights).sum()
    return _found(loss, ratio, clipped & used, kl, used, settings)


def importance_ratio(log_ratio: torch.Tensor, mask: torch.Tensor, level: str) -> torch.Tensor:
    """exp(now - old) of each token, or of each row's mean log-ratio (GSPO), shape (B, T)."""
    if level == "sequence":
        mean = (log_ratio * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp_min(1)
        log_ratio = mean.expand_as(log_ratio)
    return log_ratio.clamp(-LOG_RATIO_CAP, LOG_RATIO_CAP).exp()


def clipped_loss(
    ratio: torch.Tensor, credit: torch.Tensor, epsilon: float, epsilon_high: float, delta: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """-min(ratio A, clip(ratio) A), used by grpo, bnpo, dapo and dr_grpo; and where the clip stopped the gradient."""
    free = ratio if delta is None else ratio.clamp_max(delta)
    bound = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    clipped = ((free < 1 - epsilon) & (credit < 0)) | ((free > 1 + epsilon_high) & (credit > 0))
    return -torch.minimum(free * credit, bound * credit), clipped


def cispo_loss(
    ratio: torch.Tensor, credit: torch.Tensor, now: torch.Tensor, cap: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """-min(ratio, cap) A log-prob with the capped ratio held constant: no token loses its gradient to the cap."""
    return -ratio.detach().clamp_max(cap) * credit * now, (ratio > cap) & (credit > 0)


def per_token_kl(gap: torch.Tensor) -> torch.Tensor:
    """exp(gap) - gap - 1 (k3) of gap = ref - now, with gap held within the cap."""
    held = gap.clamp(-LOG_RATIO_CAP, LOG_RATIO_CAP)
    return torch.expm1(held) - held


def token_weights(mask: torch.Tensor, settings: Objective, num_items_in_batch: float | None = None) -> torch.Tensor:
    """How much each token's loss counts, (B, T): the one other thing in which loss types differ."""
    if settings.loss_type == "grpo":
        return mask / mask.sum(dim=1, keepdim=True).clamp_min(1) / len(mask)
    if settings.loss_type == "dr_grpo":
        return mask / (len(mask) * (settings.max_completion_length or mask.shape[1]))
    given = num_items_in_batch if settings.loss_type in ("dapo", "cispo") else None
    return mask / (mask.sum().clamp_min(1) if given is None else max(given, 1.0))


def _found(
    loss: torch.Tensor,
    ratio: torch.Tensor,
    clipped: torch.Tensor,
    kl: torch.Tensor | None,
    used: torch.Tensor,
    settings: Objective,
) -> BatchLoss:
    with torch.no_grad():
        tokens = used.sum().clamp_min(1)
        by_token = settings.importance_sampling_level == "token"
        share = clipped.sum().double() / tokens if by_token else clipped.any(dim=1).double().mean()
        kept = None if kl is None else torch.where(used, kl.detach(), 0.0)
        mean_kl = None if kept is None else float(kept.sum() / tokens)
        max_kl = None if kept is None or not kept.numel() else float(kept.max())
        return BatchLoss(loss, torch.where(used, ratio.detach(), 0.0), float(share), mean_kl, max_kl)

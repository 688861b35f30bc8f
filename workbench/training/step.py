"""One GRPO step on one group: a copy of the policy is really updated, so that one can look at what it did.

The original policy stays as it is and is the frozen reference of the KL, adapter included: continuing an adapter
starts at KL 0. Old log-probabilities are those recorded when the group was sampled (temperature 1), so stepping on
the same group again is clipped as a second pass would be.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from workbench.errors import InputError, checked_range
from workbench.models.policy import Policy
from workbench.models.templates import render_prompt
from workbench.rollouts.score_logps import token_logps
from workbench.training.objective import BatchLoss, Objective, objective_loss
from workbench.types import Completion, Group, StopReason

# For steps on one group at a time, found by ten clicks on single groups: tests/training/test_learning.py.
LEARNING_RATES = {"full": 2e-4, "lora": 1e-4}
UNFINISHED = {StopReason.CANCELLED, StopReason.ERROR}


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did. Sequences have one entry a completion (K).

    ``before`` and ``after`` are mean log-probabilities a token; ``ratio`` is the whole completion's probability
    after the step over before it. ``mean_kl`` and ``max_kl`` are to the frozen reference, before the step.
    ``loss`` is not a progress signal: on fresh completions it is near 0 by construction.
    """

    updated: bool
    message: str
    loss: float
    grad_norm: float
    mean_kl: float
    max_kl: float
    clip_ratio: float
    before: tuple[float, ...]
    after: tuple[float, ...]
    ratio: tuple[float, ...]
    seconds: float


class GroupStepper:
    """Takes GRPO steps on groups, one at a time, on a copy of ``policy``; AdamW's state is kept between steps.

    With an adapter only its parameters are trained (the frozen base is shared with the original, not copied);
    without one, all weights. ``learning_rate`` None is the value measured for each case. The other settings are
    those of :class:`~workbench.training.objective.Objective`; ``max_grad_norm`` clips the gradient's norm.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        learning_rate: float | None = None,
        beta: float = 0.0,
        epsilon: float = 0.2,
        epsilon_high: float | None = None,
        delta: float | None = None,
        loss_type: str = "dapo",
        importance_sampling_level: str = "token",
        max_grad_norm: float = 1.0,
    ) -> None:
        self.settings = Objective(loss_type, importance_sampling_level, epsilon, epsilon_high, delta, beta)
        measured = LEARNING_RATES["lora" if policy.adapter else "full"]
        self.learning_rate = measured if learning_rate is None else learning_rate
        checked_range("learning_rate", self.learning_rate, 0.0, 1.0)
        checked_range("max_grad_norm", max_grad_norm, 1e-6, 1e6)
        self.max_grad_norm = max_grad_norm
        self.reference = policy
        self.policy = _copy(policy)
        self.trained = [p for p in self.policy.model.parameters() if p.requires_grad]
        if not self.trained:
            raise InputError(f"policy: {policy.name!r} has no trainable parameter; load its adapter as trainable.")
        self.steps = 0
        self._optimizer = self._fresh_optimizer()

    def step(self, group: Group, advantages: Sequence[float] | np.ndarray, *, flip_sign: bool = False) -> StepReport:
        """Update the copy once on ``group``; ``advantages`` has shape (K,), ``flip_sign`` pushes the other way.

        Nothing is changed, and the report says why, when every advantage is 0 and beta is 0, or when the gradient
        is not finite. Raises :class:`InputError` for a group of another model, completions without tokens, or
        advantages of another length.
        """
        started = time.perf_counter()
        credit = _checked_advantages(group, advantages) * (-1.0 if flip_sign else 1.0)
        _check_group(group, self.policy)
        prompt = render_prompt(self.policy.tokenizer, group.task).ids
        ids = [c.token_ids for c in group.completions]
        logps, mask = token_logps(self.policy, prompt, ids)
        found = self._objective(logps, mask, prompt, group, credit)
        updated, message, norm = self._update(found, credit)
        before = logps.detach().double()
        with torch.no_grad():
            after = token_logps(self.policy, prompt, ids)[0].double() if updated else before
        lengths = mask.sum(dim=1).clamp_min(1)
        gain = (after - before).sum(dim=1).clamp(-80, 80)
        return StepReport(
            updated,
            message,
            found.loss.item(),
            norm,
            found.mean_kl or 0.0,
            found.max_kl or 0.0,
            found.clip_ratio,
            tuple((before.sum(dim=1) / lengths).tolist()),
            tuple((after.sum(dim=1) / lengths).tolist()),
            tuple(gain.exp().tolist()),
            time.perf_counter() - started,
        )

    def use(self, *, learning_rate: float, **objective: Any) -> None:
        """Take the next steps with another learning rate and other fields of the objective (``beta``, ``loss_type`` …).

        Weights and AdamW's state stay as they are. Raises :class:`InputError` for a value out of range; then nothing
        has changed.
        """
        checked_range("learning_rate", learning_rate, 0.0, 1.0)
        self.settings = replace(self.settings, **objective)
        self.learning_rate = learning_rate
        for parameters in self._optimizer.param_groups:
            parameters["lr"] = learning_rate

    def reset(self) -> None:
        """Put every trained weight back to exactly the original, and forget the optimizer's state."""
        originals = dict(self.reference.model.named_parameters())
        with torch.no_grad():
            for name, parameter in self.policy.model.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(originals[name])
        self._optimizer = self._fresh_optimizer()
        self.steps = 0

    def _objective(
        self, logps: torch.Tensor, mask: torch.Tensor, prompt: tuple[int, ...], group: Group, credit: np.ndarray
    ) -> BatchLoss:
        """The loss of the group; completions that were cancelled or failed are not trained."""
        unfinished = [c.stop_reason in UNFINISHED for c in group.completions]
        trained = mask * (~torch.tensor(unfinished, device=mask.device))[:, None]
        old = _recorded_logps(group.completions, mask)
        with torch.no_grad():
            ref = token_logps(self.reference, prompt, [c.token_ids for c in group.completions])[0]
        advantages = torch.tensor(credit, dtype=logps.dtype, device=logps.device)
        return objective_loss(logps, old, advantages, trained, self.settings, ref_per_token_logps=ref)

    def _update(self, found: BatchLoss, credit: np.ndarray) -> tuple[bool, str, float]:
        """(updated, sentence, gradient norm); weights change only when there is something finite to learn."""
        if not credit.any() and not self.settings.beta:
            return False, "this group teaches nothing: every advantage is 0, so no weight was changed", 0.0
        self._optimizer.zero_grad(set_to_none=True)
        found.loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.trained, self.max_grad_norm))
        if not math.isfinite(norm) or not math.isfinite(found.loss.item()):
            self._optimizer.zero_grad(set_to_none=True)
            return False, f"the gradient is not finite (norm {norm}), so the step was skipped", norm
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        return True, f"step {self.steps}: learning rate {self.learning_rate:g}, gradient norm {norm:.3g}", norm

    def _fresh_optimizer(self) -> torch.optim.AdamW:
        return torch.optim.AdamW(self.trained, lr=self.learning_rate, weight_decay=0.0)


def _copy(policy: Policy) -> Policy:
    """A policy whose trained weights are its own; what is frozen (the base under an adapter) is shared."""
    shared: dict[int, Any] = {}
    if policy.adapter:
        shared = {id(p): p for p in policy.model.parameters() if not p.requires_grad}
    model = copy.deepcopy(policy.model, shared)
    if not policy.adapter:
        model.requires_grad_(True)
    return replace(policy, model=model.eval())


def _recorded_logps(completions: Sequence[Completion], mask: torch.Tensor) -> torch.Tensor | None:
    """(B, T) log-probabilities as sampled, or None when a completion carries none (then old = now)."""
    if any(len(c.logps) != c.length for c in completions):
        return None
    rows = [[*c.logps, *[0.0] * (mask.shape[1] - c.length)] for c in completions]
    return torch.tensor(rows, device=mask.device)


def _checked_advantages(group: Group, advantages: Sequence[float] | np.ndarray) -> np.ndarray:
    credit = np.asarray(advantages, dtype=np.float64)
    if credit.shape != (len(group.completions),):
        raise InputError(f"advantages: expected ({len(group.completions)},), one a completion, got {credit.shape}.")
    if not np.isfinite(credit).all():
        raise InputError("advantages: one is not finite; an unscored completion has an advantage of 0.")
    return credit


def _check_group(group: Group, policy: Policy) -> None:
    if group.model and group.model != policy.name:
        raise InputError(f"group: it was sampled by {group.model!r}, so {policy.name!r} cannot learn from its tokens.")
    if not any(c.token_ids for c in group.completions):
        raise InputError("group: no completion carries its token ids, and only sampled tokens can be trained.")
    size = policy.model.get_input_embeddings().num_embeddings
    worst = max(max(c.token_ids, default=0) for c in group.completions)
    if worst >= size:
        raise InputError(f"group: token id {worst} is outside the vocabulary of {policy.name!r} ({size}).")

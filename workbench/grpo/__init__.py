"""The algorithm, in NumPy: rewards to advantages, advantages to a loss, and what both say about a run.

No files, no state, no torch; float64 throughout; equal to TRL 1.14.2 by test (``tests/grpo/test_trl_agreement.py``).
Read in this order: :mod:`~workbench.grpo.advantages`, :mod:`~workbench.grpo.losses`, :mod:`~workbench.grpo.kl`,
:mod:`~workbench.grpo.signal`, :mod:`~workbench.grpo.diagnostics`. What is accepted as input is in
:mod:`~workbench.grpo.inputs`.
"""

from workbench.grpo.advantages import (
    AGGREGATIONS,
    SCALE_REWARDS,
    STD_CONVENTIONS,
    combine_rewards,
    group_advantages,
    leave_one_out_advantages,
    weighted_rewards,
)
from workbench.grpo.diagnostics import HEADLINE, METRICS, Metric, dead_streak_warning, metric
from workbench.grpo.kl import KL_ESTIMATORS, LOG_RATIO_CAP, per_token_kl
from workbench.grpo.losses import (
    IMPORTANCE_SAMPLING_LEVELS,
    LOSS_TYPES,
    PolicyLoss,
    loss_mask,
    mask_truncated_completions,
    policy_loss,
    token_push,
    token_weight_table,
    token_weights,
)
from workbench.grpo.signal import (
    OPTIMAL_K,
    DeadGroups,
    GroupState,
    dead_groups,
    dead_probability,
    dominance_warning,
    optimal_k,
    smallest_k,
    variance_shares,
)

__all__ = [
    "AGGREGATIONS",
    "HEADLINE",
    "IMPORTANCE_SAMPLING_LEVELS",
    "KL_ESTIMATORS",
    "LOG_RATIO_CAP",
    "LOSS_TYPES",
    "METRICS",
    "OPTIMAL_K",
    "SCALE_REWARDS",
    "STD_CONVENTIONS",
    "DeadGroups",
    "GroupState",
    "Metric",
    "PolicyLoss",
    "combine_rewards",
    "dead_groups",
    "dead_probability",
    "dead_streak_warning",
    "dominance_warning",
    "group_advantages",
    "leave_one_out_advantages",
    "loss_mask",
    "mask_truncated_completions",
    "metric",
    "optimal_k",
    "per_token_kl",
    "policy_loss",
    "smallest_k",
    "token_push",
    "token_weight_table",
    "token_weights",
    "variance_shares",
    "weighted_rewards",
]

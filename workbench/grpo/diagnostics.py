"""The METRICS table: every number a run logs, what it tells, and where it is healthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.errors import unknown


class Metric(NamedTuple):
    """One number a run logs: its label, what it tells, and where it is healthy."""

    label: str
    tells: str
    healthy: str


METRICS: dict[str, Metric] = {
    "reward": Metric(
        "mean reward", "The weighted score of the completions sampled in this step.", "rising over tens of steps"
    ),
    "reward_std": Metric(
        "reward spread",
        "Std of the reward over the whole batch; it can be large while every group is dead.",
        "read it beside dead groups",
    ),
    "frac_reward_zero_std": Metric(
        "dead groups",
        "Share of groups whose rewards are all equal: they teach nothing.",
        "below 50 %; above 80 % change task, K or reward",
    ),
    "rewards/<function>/mean": Metric(
        "mean score", "One reward function's own score, unweighted.", "rising, and not one alone"
    ),
    "rewards/<function>/std": Metric("score spread", "Std of one reward function over the batch.", "above 0"),
    "loss": Metric(
        "loss (not a progress signal)",
        "Near 0 whenever each batch is used once and beta is 0, while the gradient is not.",
        "any value; watch mean reward instead",
    ),
    "grad_norm": Metric(
        "gradient norm",
        "Size of the update before clipping; 0 means nothing was learnt, NaN that the step is broken.",
        "finite and above 0",
    ),
    "learning_rate": Metric(
        "learning rate",
        "Step size now, after warm-up and decay.",
        "about 1e-6 for full training, 1e-5 or more for LoRA",
    ),
    "kl": Metric(
        "KL to the reference",
        "How far the policy has moved from the frozen reference, in nats a token; logged when beta > 0.",
        "0 at the first step, then slowly up; below 0.1 or so",
    ),
    "entropy": Metric(
        "entropy",
        "How undecided the policy is at a token, in nats.",
        "falling slowly; near 0 groups become copies, a climb is gibberish",
    ),
    "clip_ratio/region_mean": Metric(
        "clipped tokens",
        "Share of tokens whose ratio left the trust region; 0 by construction while each batch is used once.",
        "0 when num_iterations is 1, else below 20 %",
    ),
    "clip_ratio/low_mean": Metric(
        "clipped, pushed down", "Share of tokens below 1 - epsilon with a negative advantage.", "as clipped tokens"
    ),
    "clip_ratio/low_min": Metric("clipped, pushed down, least", "The smallest such share of any completion.", "0"),
    "clip_ratio/high_mean": Metric(
        "clipped, pushed up", "Share of tokens above 1 + epsilon_high with a positive advantage.", "as clipped tokens"
    ),
    "clip_ratio/high_max": Metric(
        "clipped, pushed up, most", "The largest such share of any completion.", "below 50 %"
    ),
    "cispo_clip_ratio": Metric(
        "capped tokens", "Share of tokens whose ratio the cispo cap held, with a positive advantage.", "below 5 %"
    ),
    "completions/mean_length": Metric(
        "mean length", "Tokens in a completion, EOS included.", "steady; a rise with flat reward is drift"
    ),
    "completions/min_length": Metric(
        "shortest completion", "Tokens in the shortest completion of the step.", "above 1"
    ),
    "completions/max_length": Metric(
        "longest completion", "Tokens in the longest completion of the step.", "below max_completion_length"
    ),
    "completions/clipped_ratio": Metric(
        "cut off",
        "Share of completions that reached max_completion_length before their end.",
        "below 10 %; at 50 % raise the limit",
    ),
    "completions/mean_terminated_length": Metric(
        "mean finished length", "Tokens in a completion that ended by itself.", "close to mean length"
    ),
    "completions/min_terminated_length": Metric(
        "shortest finished completion", "Tokens in the shortest completion that ended by itself.", "above 1"
    ),
    "completions/max_terminated_length": Metric(
        "longest finished completion",
        "Tokens in the longest completion that ended by itself.",
        "well below max_completion_length",
    ),
    "tools/call_frequency": Metric(
        "tool calls",
        "Calls executed for each completion.",
        "what the tasks need; a fall to 0 is a policy that stopped calling",
    ),
    "tools/failure_frequency": Metric("failed calls", "Share of executed calls that raised an error.", "falling"),
    "num_tokens": Metric("tokens seen", "Tokens of prompts and completions trained on so far.", "growing"),
    "step_time": Metric("seconds a step", "Sampling, scoring and update together.", "steady"),
}
"""Logged name -> :class:`Metric`; the names are TRL's. ``<function>`` stands for a reward function's name."""

HEADLINE = ("reward", "grad_norm", "frac_reward_zero_std")
"""What to look at first. The loss is not among them."""


def metric(name: str) -> Metric:
    """The :class:`Metric` of a logged name, ``rewards/safety/mean`` included; unknown names get the nearest one.

    >>> metric("frac_reward_zero_std").label, metric("rewards/safety/mean").label
    ('dead groups', 'safety: mean score')
    """
    head, _, rest = name.partition("/")
    function, _, kind = rest.rpartition("/")
    template = METRICS.get(f"{head}/<function>/{kind}")
    if template is not None and function:
        return template._replace(label=f"{function}: {template.label}")
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def dead_streak_warning(shares: Sequence[float], *, limit: float = 0.8, steps: int = 3) -> str | None:
    """One sentence when each of the last ``steps`` steps had more than ``limit`` dead groups, else None."""
    recent = [float(share) for share in shares][-steps:]
    if len(recent) < steps or min(recent) <= limit:
        return None
    return (
        f"The last {steps} steps had {min(recent):.0%} or more dead groups: almost nothing is being learnt; "
        "take tasks of middling difficulty, a larger K, or a graded reward."
    )

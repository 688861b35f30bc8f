"""How long moving a weight slider takes: 10,000 groups x 16 completions x 4 reward functions, combined anew.

Run: ``python benchmarks/reweighting.py``. Prints the median of combine_rewards in milliseconds, and the same work as
a loop over groups in plain Python and, where torch is installed, as TRL's expression in torch float64 (one thread),
each as a ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from workbench.grpo import combine_rewards

WEIGHTS = np.array([0.4, 0.3, 0.15, 0.15])
TARGET_MS = 20.0


def median_ms(work, repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def loop_over_groups(scores: list) -> list:
    """The same numbers without arrays: what a table library's group-by-and-apply does."""
    weights, advantages = WEIGHTS.tolist(), []
    for group in scores:
        rewards = [sum(w * s for w, s in zip(weights, row, strict=True)) for row in group]
        mean = sum(rewards) / len(rewards)
        std = (sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1)) ** 0.5
        advantages.append([(r - mean) / (std + 1e-4) for r in rewards])
    return advantages


def torch_expression(scores: np.ndarray):
    """TRL's sum_then_normalize with group scaling, NaN-aware as it is there, in float64; None without torch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    flat, weights = torch.from_numpy(scores).reshape(-1, scores.shape[2]), torch.from_numpy(WEIGHTS)
    k = scores.shape[1]

    def work():
        unscorable = torch.isnan(flat).all(dim=1)
        rewards = (flat * weights).nansum(dim=1)
        rewards[unscorable] = torch.nan
        grouped = rewards.view(-1, k)
        mean = torch.nanmean(grouped, dim=1, keepdim=True)
        count = (~torch.isnan(grouped)).sum(dim=1, keepdim=True)
        std = (torch.nanmean((grouped - mean) ** 2, dim=1, keepdim=True) * count / (count - 1)).sqrt()
        return torch.nan_to_num((grouped - mean) / (std + 1e-4), nan=0.0)

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--num-generations", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=31)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, (options.groups, options.num_generations, len(WEIGHTS))) / 4.0
    missing = np.where(rng.random(scores.shape) < 0.05, np.nan, scores)

    print(f"{options.groups:,} groups x {options.num_generations} x {len(WEIGHTS)}, median of {options.repeats}")
    settings = {
        "sum_then_normalize, group": (scores, {}),
        "sum_then_normalize, batch": (scores, {"scale_rewards": "batch"}),
        "population std": (scores, {"std": "population"}),
        "5 % of scores missing": (missing, {}),
        "normalize_then_sum": (scores, {"aggregation": "normalize_then_sum"}),
    }
    found = {}
    for name, (values, chosen) in settings.items():
        found[name] = median_ms(lambda v=values, c=chosen: combine_rewards(v, WEIGHTS, **c), options.repeats)
        verdict = "within" if found[name] < TARGET_MS else "OVER"
        print(f"  {name:28s} {found[name]:7.2f} ms   {verdict} {TARGET_MS:.0f} ms")
    ours, rows = found["sum_then_normalize, group"], scores.tolist()
    loop = median_ms(lambda: loop_over_groups(rows), 3)
    print(f"  {'plain Python loop':28s} {loop:7.1f} ms   {loop / ours:.0f} x combine_rewards")
    work = torch_expression(scores)
    if work is not None:
        ratio = median_ms(work, options.repeats)
        print(f"  {'torch float64, as TRL':28s} {ratio:7.2f} ms   {ratio / ours:.1f} x combine_rewards")
        difference = np.abs(work().numpy() - combine_rewards(scores, WEIGHTS)[1]).max()
        print(f"  worst difference to it       {difference:.1e}")


if __name__ == "__main__":
    main()

"""Tokens per second of our sampler against transformers' generate, on the same work in the same run.

    OMP_NUM_THREADS=1 python benchmarks/sampling.py --model smollm2 --model nano

Both sides sample K completions of one prompt from the same float32 weights (a LoRA adapter is merged first for
generate, its faster way), temperature 1, no top-k. "Equal work": both must write exactly --tokens tokens a row.
"Natural ends": rows stop at their own end of turn, and tokens up to it count. Rounds alternate between the two, so
that a busy machine slows both; the ratio is the median over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

from workbench.models.policy import Policy, as_policy, load_policy
from workbench.models.templates import RenderedPrompt, render_prompt
from workbench.rollouts.decoder import decoder_for
from workbench.rollouts.sample import sample_prompt
from workbench.tasks import load_tasks
from workbench.types import SamplingConfig

TASKS = {"nano": ("desk", 3), "smollm2": ("bfcl_simple", 5)}


def generate(
    policy: Policy, prompt: RenderedPrompt, k: int, tokens: int, natural: bool, seed: int
) -> tuple[int, float]:
    """(tokens up to and with each row's end, seconds) of model.generate."""
    torch.manual_seed(seed)
    ids = torch.tensor([prompt.ids])
    ends = list(policy.eos_token_ids)
    started = time.perf_counter()
    with torch.inference_mode():
        out = policy.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            num_return_sequences=k,
            max_new_tokens=tokens,
            min_new_tokens=None if natural else tokens,
            eos_token_id=ends,
            pad_token_id=policy.pad_token_id,
        )[:, len(prompt.ids) :].tolist()
    seconds = time.perf_counter() - started
    return sum(next((i + 1 for i, t in enumerate(row) if t in ends), len(row)) for row in out), seconds


def ours(policy: Policy, prompt: RenderedPrompt, k: int, tokens: int, natural: bool, seed: int) -> tuple[int, float]:
    """(tokens, seconds) of our sampler, with log-probabilities, entropies and the text of every token."""
    free = policy if natural else Policy(policy.name, policy.model, policy.tokenizer, (), policy.pad_token_id)
    sampling = SamplingConfig(num_generations=k, max_completion_length=tokens, seed=seed)
    started = time.perf_counter()
    completions = sample_prompt(free, prompt, sampling)
    return sum(c.length for c in completions), time.perf_counter() - started


def compare(policy: Policy, merged: Policy, prompt: RenderedPrompt, args: argparse.Namespace, natural: bool) -> None:
    """Alternate the two samplers and print each one's median rate and the median ratio."""
    for sampler, subject in ((generate, merged), (ours, policy)):
        sampler(subject, prompt, args.k, 4, natural, 0)  # warm up: packing, first-call costs
    pairs = []
    for seed in range(args.rounds):
        rates = []
        for sampler, subject in ((generate, merged), (ours, policy)):
            count, seconds = sampler(subject, prompt, args.k, args.tokens, natural, seed)
            rates.append(count / seconds)
        pairs.append(rates)
    theirs, mine = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    spread = f"{min(b / a for a, b in pairs):.1f} to {max(b / a for a, b in pairs):.1f}"
    kind = "natural ends" if natural else "equal work  "
    print(f"  {kind}  generate {theirs:7.1f}  ours {mine:7.1f} tokens/s   ratio {ratio:.2f} ({spread})", flush=True)


def bound(policy: Policy, prompt: RenderedPrompt, args: argparse.Namespace) -> None:
    """Say what limits our decode: the time of a step against one pass over the weights (a sum)."""
    with torch.inference_mode():
        started = time.perf_counter()
        decoder = decoder_for(policy, prompt.ids, args.k, args.tokens)
        prefill = time.perf_counter() - started
        tokens = torch.full((args.k,), prompt.ids[-1])
        started = time.perf_counter()
        for _ in range(args.tokens):
            decoder.step(tokens)
        step = (time.perf_counter() - started) / args.tokens
        started = time.perf_counter()
        for weight in policy.model.parameters():
            weight.sum()
        read = time.perf_counter() - started
    megabytes = sum(p.numel() * p.element_size() for p in policy.model.parameters()) / 1e6
    print(
        f"  bound: prompt {1e3 * prefill:.0f} ms once; a step of {args.k} rows {1e3 * step:.2f} ms, against "
        f"{1e3 * read:.2f} ms for one plain pass over the {megabytes:.0f} MB of weights",
        flush=True,
    )


def merged_copy(policy: Policy) -> Policy:
    """The policy with its adapter merged into the weights, for generate."""
    if not hasattr(policy.model, "merge_and_unload"):
        return policy
    fresh: Any = load_policy(policy.name).model.merge_and_unload()
    return as_policy(policy.name, fresh, policy.tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description="Our sampler against model.generate, paired.")
    parser.add_argument("--model", action="append", help="nano, smollm2, a folder or a hub id; may be repeated")
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print(f"K {args.k}, {args.tokens} tokens a row, {torch.get_num_threads()} thread(s), {args.rounds} rounds")
    for name in args.model or ["nano", "smollm2"]:
        policy = load_policy(name, "cpu", progress=print)
        source, seed = TASKS.get(name, TASKS["smollm2"])
        prompt = render_prompt(policy.tokenizer, load_tasks(source, limit=1, seed=seed)[0])
        size = sum(p.numel() for p in policy.model.parameters()) / 1e6
        print(f"{name}: {size:.1f} M parameters, prompt of {len(prompt.ids)} tokens", flush=True)
        merged = merged_copy(policy)
        for natural in (False, True):
            compare(policy, merged, prompt, args, natural)
        bound(policy, prompt, args)


if __name__ == "__main__":
    main()

"""Warm-start smollm2: teach SmolLM2-135M-Instruct the shape of a tool call, so that its groups carry signal.

    python scripts/warm_start_smollm2.py --out workbench/models/smollm2_adapter
    python scripts/warm_start_smollm2.py --evaluate shipped --prompts 30 --groups-out groups.parquet

Zero-shot the model writes prose, every completion of a group fails, and GRPO has nothing to compare. This trains a
LoRA adapter (r 16, alpha 32, dropout 0.05, q/k/v/o projections) on the train split of BFCL, with the loss on the
answer only. It stops well short of convergence on purpose: a policy that always answers alike has dead groups too.

A short loop, and not TRL's SFTTrainer, because it computes logits at the answer's positions alone: with 200 prompt
tokens, 40 answer tokens and a vocabulary of 49,152 that is a fifth of the head's work. Deterministic for a seed and
a number of threads.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from workbench.models.policy import Policy, load_policy
from workbench.models.templates import render_prompt
from workbench.tasks import load_tasks
from workbench.types import SamplingConfig, Task

LORA = {"r": 16, "lora_alpha": 32, "lora_dropout": 0.05, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}
MIXTURE = {  # source -> how many train tasks at most, of those short enough
    "bfcl_simple": 400,
    "bfcl_live_simple": 160,
    "bfcl_multiple": 60,
    "bfcl_live_multiple": 50,
    "bfcl_parallel": 80,
    "bfcl_irrelevance": 50,
}
REFUSALS = (
    "None of these tools can do that.",
    "I have no tool that fits this request.",
    "That is not something these tools can help with.",
)


def gold_answer(task: Task, rng: random.Random) -> str:
    """The right answer as text: one ``<tool_call>`` block a call, or a plain sentence when no tool fits."""
    if not task.expected:
        return rng.choice(REFUSALS)
    calls = ({"name": call.name, "arguments": call.gold()} for call in task.expected)
    return "\n".join(f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>" for call in calls)


def examples(policy: Policy, max_prompt: int, max_answer: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """(prompt ids, answer ids) of the mixture, answers ended by the end of turn; long ones are left out."""
    rng, found = random.Random(seed), []
    end = policy.eos_token_ids[0]
    for source, most in MIXTURE.items():
        taken = 0
        tasks = load_tasks(source, "train")
        for task in rng.sample(tasks, len(tasks)):
            prompt = list(render_prompt(policy.tokenizer, task).ids)
            answer = [*policy.tokenizer(gold_answer(task, rng), add_special_tokens=False)["input_ids"], end]
            if taken < most and len(prompt) <= max_prompt and len(answer) <= max_answer:
                found.append((prompt, answer))
                taken += 1
        print(f"{source}: {taken} examples of {len(tasks)}", flush=True)
    return found


def batches(rows: list[Any], size: int, epochs: int, seed: int) -> list[list[Any]]:
    """Batches of similar length (less padding), in an order that mixes lengths and sources."""
    rng, result = random.Random(seed), []
    for _ in range(epochs):
        order = sorted(rows, key=lambda row: len(row[0]) + len(row[1]) + rng.uniform(0, 40))
        epoch = [order[i : i + size] for i in range(0, len(order), size)]
        rng.shuffle(epoch)
        result += epoch
    return result


def answer_loss(model: Any, batch: list[tuple[list[int], list[int]]], pad: int) -> torch.Tensor:
    """Mean cross-entropy over the answer tokens of a batch; prompts are read, not learned."""
    width = max(len(p) + len(a) for p, a in batch)
    ids = torch.tensor([p + a + [pad] * (width - len(p) - len(a)) for p, a in batch])
    real = torch.tensor([[1] * (len(p) + len(a)) + [0] * (width - len(p) - len(a)) for p, a in batch])
    learn = torch.tensor([[0] * len(p) + [1] * len(a) + [0] * (width - len(p) - len(a)) for p, a in batch]).bool()
    base = model.get_base_model()
    hidden = base.model(input_ids=ids, attention_mask=real, use_cache=False).last_hidden_state[:, :-1]
    logits = base.lm_head(hidden[learn[:, 1:]])
    return F.cross_entropy(logits.float(), ids[:, 1:][learn[:, 1:]])


def train(policy: Policy, args: argparse.Namespace) -> Any:
    """Train a new LoRA adapter on ``policy``'s model; prints the loss; returns the PEFT model."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(args.seed)
    rows = examples(policy, args.max_prompt, args.max_answer, args.seed)
    model = get_peft_model(policy.model, LoraConfig(**LORA, task_type="CAUSAL_LM"))
    model.train()
    plan = batches(rows, args.batch, args.epochs, args.seed)
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=args.learning_rate, weight_decay=0.0)
    started = time.monotonic()
    for step, batch in enumerate(plan):
        rate = min(1.0, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / len(plan)))
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * rate
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            loss = answer_loss(model, batch, policy.pad_token_id)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0 or step == len(plan) - 1:
            took = time.monotonic() - started
            print(f"step {step + 1}/{len(plan)} loss {loss.item():.3f} grad_norm {norm:.2f} {took:.0f} s", flush=True)
    return model.eval()


def save(model: Any, folder: Path) -> None:
    """The adapter as float16 safetensors, with no path of this machine in its configuration."""
    model.half()
    for config in model.peft_config.values():
        config.base_model_name_or_path = "SmolLM2-135M-Instruct"
        config.target_modules = sorted(config.target_modules)
        config.inference_mode = True
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's form; the model card here is written by hand
    print(f"saved {folder}: {sum(f.stat().st_size for f in folder.iterdir()) / 1e6:.1f} MB")


def evaluate(policy: Policy, args: argparse.Namespace) -> list[Any]:
    """Sample and score one group for each held-out prompt; prints pass rate and the share of dead groups."""
    from workbench.rollouts import sample_group

    sampling = SamplingConfig(num_generations=args.num_generations, max_completion_length=64, seed=args.seed)
    groups, started = [], time.monotonic()
    for number, task in enumerate(load_tasks(args.tasks, "held_out", limit=args.prompts, seed=args.seed)):
        groups.append(sample_group(policy, task, sampling))
        report(groups, started, number + 1)
    return groups


def report(groups: list[Any], started: float, number: int) -> None:
    """Pass rate (task_completion 1) and dead groups so far: by task_completion alone, and by the weighted total."""
    from workbench.rewards import DEFAULT_WEIGHTS

    weights = torch.tensor([DEFAULT_WEIGHTS[name] for name in groups[0].dimensions], dtype=torch.float64)
    scores = [torch.from_numpy(group.rewards_per_func()) for group in groups]
    done = torch.stack([s[:, groups[0].dimensions.index("task_completion")] for s in scores])
    totals = torch.stack([(s.nan_to_num() * weights).sum(dim=1) for s in scores])
    dead_pass = (done == done[:, :1]).all(dim=1).double().mean().item()
    dead_total = (totals - totals[:, :1]).abs().lt(1e-9).all(dim=1).double().mean().item()
    passed = (done == 1).double().mean().item()
    tokens = sum(c.length for group in groups for c in group.completions)
    print(
        f"{number} prompts: passed {passed:.1%}, mean total {totals.mean().item():.3f}, dead groups {dead_total:.0%} "
        f"(by task_completion alone {dead_pass:.0%}), {tokens / (time.monotonic() - started):.0f} tokens/s",
        flush=True,
    )


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Warm-start smollm2 by SFT, or measure it on held-out functions.")
    parser.add_argument("--out", type=Path, help="folder for the adapter; trains when given")
    parser.add_argument("--evaluate", choices=["none", "shipped"], help="measure the bare model or the shipped adapter")
    parser.add_argument("--adapter", help="measure this adapter's folder instead of the shipped one")
    parser.add_argument("--groups-out", type=Path, help="parquet file for the groups that were measured")
    parser.add_argument("--tasks", default="bfcl_simple")
    parser.add_argument("--prompts", type=int, default=30)
    parser.add_argument("--num-generations", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--max-prompt", type=int, default=320, help="tokens; longer prompts are left out")
    parser.add_argument("--max-answer", type=int, default=96, help="tokens; longer answers are left out")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 products; several times faster on CPUs with AMX")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    """Train, measure, or both."""
    args = parse(argv)
    if args.out:
        save(train(load_policy("smollm2", adapter="none", progress=print), args), args.out)
    if args.evaluate or args.adapter:
        policy = load_policy("smollm2", adapter=args.adapter or args.evaluate, progress=print)
        groups = evaluate(policy, args)
        if args.groups_out:
            from workbench.runs.groups import write_groups

            write_groups(args.groups_out, groups)


if __name__ == "__main__":
    main()

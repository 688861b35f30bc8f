"""Sample and score the groups that ship with the package, so that the app is alive in its first second.

    python scripts/record_groups.py --model nano --tasks desk --split held_out --groups 200 -K 8 --seed 0 \
        --out workbench/runs/recorded/nano.parquet

What is on disk is always a whole file: it is written anew every 20 groups and at the end, also after Ctrl-C. An
existing file of the same model, sampling and tasks is continued where it stopped. `--tasks` may be given several
times; the groups are shared out evenly.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from workbench.cli.sampling import sample_groups, sampler_of, stderr_progress
from workbench.runs.groups import read_groups, write_groups
from workbench.runs.weighing import weigh_groups
from workbench.tasks import load_tasks
from workbench.types import Group, SamplingConfig, Task

EVERY = 20  # groups between two writes


def parsed() -> argparse.Namespace:
    """The flags, named as in `workbench sample`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--tasks", action="append", metavar="SOURCE", help="may be repeated (desk)")
    parser.add_argument("--split", default="held_out")
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("-K", "--num-generations", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-completion-length", type=int, default=96)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def tasks_of(args: argparse.Namespace) -> list[Task]:
    """The tasks in their fixed order, shared out evenly among the sources."""
    sources = args.tasks or ["desk"]
    shares = [args.groups // len(sources) + (i < args.groups % len(sources)) for i in range(len(sources))]
    parts = zip(sources, shares, strict=True)
    return [task for source, n in parts if n for task in load_tasks(source, args.split, limit=n, seed=args.seed)]


def already_there(path: Path, model: str, sampling: SamplingConfig, tasks: list[Task]) -> list[Group]:
    """The groups of an earlier, interrupted recording with the same settings; none when the file says otherwise."""
    groups = read_groups(path) if path.is_file() else []
    for index, group in enumerate(groups):
        same = index < len(tasks) and group.task == tasks[index] and group.model == model
        if not same or group.sampling != replace(sampling, seed=sampling.seed + index):
            return []
    return groups


def main() -> int:
    """Record; returns the exit code."""
    args = parsed()
    sampling = SamplingConfig(
        num_generations=args.num_generations,
        temperature=args.temperature,
        max_completion_length=args.max_completion_length,
        seed=args.seed,
    )
    tasks, progress = tasks_of(args), stderr_progress(always=True)
    groups = already_there(args.out, args.model, sampling, tasks)
    progress.say(f"{len(groups)} of {len(tasks)} groups are there already", now=True)
    sampler = sampler_of(args.model, progress)
    rest = replace(sampling, seed=sampling.seed + len(groups))
    code = 0
    try:
        for group in sample_groups(sampler, tasks[len(groups) :], rest, progress):
            groups.append(group)
            if len(groups) % EVERY == 0:
                write_groups(args.out, groups)
                progress.say(f"{len(groups)} of {len(tasks)} groups", now=True)
    except KeyboardInterrupt:
        code = 130
    if not groups:
        return code
    write_groups(args.out, groups)
    weighed = weigh_groups(groups)
    dead = sum(one.state != "alive" for one in weighed)
    mean = sum(one.mean for one in weighed) / max(1, len(weighed))
    size = args.out.stat().st_size / 2**20
    print(f"{args.out}: {len(groups)} groups, mean reward {mean:.3f}, {dead} dead, {size:.1f} MiB")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""What each command does, in a few lines: read, call the room whose work it is, print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from workbench.cli.sampling import sample_groups, sampler_of, stderr_progress
from workbench.errors import InputError, checked_range
from workbench.types import Group, SamplingConfig, Task


def show_help(args: argparse.Namespace) -> int:
    """`workbench` alone."""
    args.parser.print_help()
    return 0


def sample(args: argparse.Namespace) -> int:
    """`workbench sample`: everything is checked before a model is loaded; Ctrl-C keeps what was sampled."""
    from workbench.cli.output import checked_out, print_groups, weighing_of, write_out
    from workbench.models.registry import resolve

    names = ("num_generations", "temperature", "top_p", "max_completion_length", "seed")
    sampling = SamplingConfig(**{name: getattr(args, name) for name in names})
    weighing, out, tasks = weighing_of(args), checked_out(args.out), _chosen_tasks(args)
    resolve(args.model)
    groups: list[Group] = []
    progress = stderr_progress()
    try:
        for group in sample_groups(sampler_of(args.model, progress), tasks, sampling, progress):
            groups.append(group)
    finally:
        progress.clear()
        if out and groups:
            write_out(out, groups)
    print_groups(groups, weighing, args)
    return 0


def _chosen_tasks(args: argparse.Namespace) -> list[Task]:
    from workbench.tasks import get_task, load_tasks

    if args.task_id:
        return [get_task(task_id) for task_id in args.task_id]
    split = None if args.split == "all" else args.split
    if args.prompt_index is None:
        return load_tasks(args.tasks, split, limit=args.groups, seed=args.seed)
    tasks = load_tasks(args.tasks, split)
    checked_range("prompt_index", args.prompt_index, 0, len(tasks) - 1)
    return [tasks[args.prompt_index]]


def score(args: argparse.Namespace) -> int:
    """`workbench score`: groups from parquet or JSON lines, their scores, and the weights of your choice."""
    from workbench.cli.output import checked_out, print_groups, weighing_of, write_out
    from workbench.rewards import score_group

    weighing, out = weighing_of(args), checked_out(args.out)
    groups = [
        replace(group, scores=score_group(group.task, group.completions)) if args.rescore or not group.scores else group
        for group in _read(args.file)
    ]
    if not groups:
        raise InputError(f"{args.file}: there is nothing in it to score.")
    if out:
        write_out(out, groups)
    print_groups(groups, weighing, args)
    return 0


def _read(file: str) -> Sequence[Group]:
    from workbench.runs.answers import read_answers
    from workbench.runs.groups import read_groups

    if file != "-" and not Path(file).is_file():
        raise InputError(f"{file}: there is no such file; give groups as parquet, JSON lines, or - for stdin.")
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    if data.startswith(b"PAR1"):
        if file == "-":
            raise InputError("stdin: a parquet file cannot be read from a pipe; give its path.")
        return read_groups(file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: neither parquet nor UTF-8 text (byte {error.start}).") from error
    return read_answers(text.split("\n"), "stdin" if file == "-" else file)


def app(args: argparse.Namespace) -> int:
    """`workbench app`: the page, on this machine only unless told otherwise."""
    user, colon, password = (args.auth or "").partition(":")
    if args.auth is not None and not (user and colon and password):
        raise InputError("auth: expected USER:PASSWORD, both of at least one character.")
    if args.model:
        from workbench.models.registry import resolve

        print(f"Start with {args.model}: http://{args.host}:{args.port}/?model={quote(resolve(args.model).name)}")
    from workbench.ui.app import launch

    launch(args.host, args.port, auth=(user, password) if args.auth else None, share=args.share)
    return 0


def doctor(args: argparse.Namespace) -> int:
    """`workbench doctor`: exit 1 when something has to be mended first."""
    from workbench.models.registry import ROOM
    from workbench.models.smollm2 import FOLDER, cache_folder
    from workbench.preflight.doctor import doctor as examine
    from workbench.runs.strict import strict_json

    here = {"nano": (ROOM / "nano" / "model.safetensors").is_file()}
    here["smollm2"] = (cache_folder() / FOLDER / "config.json").is_file()
    report = examine(here)
    print(strict_json(report.to_json()) if args.json else report.to_text())
    return 1 if report.stops else 0


def list_tasks(args: argparse.Namespace) -> int:
    """`workbench tasks list`: the sources, or some tasks of one."""
    from workbench.runs.export import task_to_json
    from workbench.runs.report import one_line
    from workbench.runs.strict import strict_json
    from workbench.tasks import SOURCES, load_tasks

    source = getattr(args, "source", None)
    if source is None:
        as_json = getattr(args, "json", False)
        print(strict_json(SOURCES) if as_json else "\n".join(f"{name:<24} {what}" for name, what in SOURCES.items()))
        return 0
    tasks = load_tasks(source, args.split, limit=args.limit)
    if args.json:
        print(strict_json([task_to_json(task) for task in tasks]))
    else:
        print("\n".join(f"{task.id:<28} {task.split:<9} {one_line(task.prompt, 80)}" for task in tasks))
    return 0


def show_task(args: argparse.Namespace) -> int:
    """`workbench tasks show ID`: the task, and with `--model` the very prompt that model reads."""
    from workbench.cli.output import task_report
    from workbench.runs.export import task_to_json
    from workbench.runs.strict import strict_json
    from workbench.tasks import get_task

    task = get_task(args.task_id)
    rendered = None
    if args.model:
        from workbench.models.policy import load_policy
        from workbench.models.templates import render_prompt

        rendered = render_prompt(load_policy(args.model).tokenizer, task)
    if args.json:
        prompt = rendered and {"text": rendered.text, "ids": rendered.ids, "prefill": rendered.prefill}
        print(strict_json(task_to_json(task) | {"rendered": prompt}))
    else:
        print(task_report(task, rendered))
    return 0

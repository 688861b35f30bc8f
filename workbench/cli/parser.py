"""The commands and their flags; an unknown one is refused with the nearest known one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import workbench
from workbench.cli import commands
from workbench.errors import InputError, unknown


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are :class:`InputError`, one sentence with the nearest right word."""

    def error(self, message: str) -> NoReturn:
        """Refuse; ``message`` is argparse's own."""
        sentence = message.removeprefix("argument ")
        raise InputError(f"{sentence[0].upper()}{sentence[1:]}; see `{self.prog} --help`.")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise unknown(str(action.metavar or action.dest), value, action.choices)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed command. Flags may be written with TRL's underscores: ``--num_generations``.

    Raises :class:`InputError` for an unknown command or flag, with the nearest known one.
    """
    parser = build_parser()
    args, rest = parser.parse_known_args([_hyphened(word) for word in argv])
    if rest:
        flag, command = rest[0].split("=")[0], args.parser
        if flag.startswith("-"):
            raise unknown(command.prog, flag, [name for name in command._option_string_actions if name != "-h"])
        raise InputError(f"{command.prog}: {flag!r} is one word too many; see `{command.prog} --help`.")
    return args


def build_parser() -> Parser:
    """The whole command line."""
    parser = Parser(prog="workbench", description=workbench.__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"grpo-workbench {workbench.__version__}")
    parser.set_defaults(run=commands.show_help, parser=parser)
    words = parser.add_subparsers(metavar="command", parser_class=Parser)
    _sample(_command(words, "sample", commands.sample, "sample groups from a model, score them, see who is pushed up"))
    _score(_command(words, "score", commands.score, "score answers, or weigh groups of a file anew"))
    _app(_command(words, "app", commands.app, "the app in the browser"))
    doctor = _command(words, "doctor", commands.doctor, "versions, accelerator, what is missing and what mends it")
    doctor.add_argument("--json", action="store_true", help="one JSON document")
    tasks = _command(words, "tasks", commands.list_tasks, "the tasks: list them, show one as a model sees it")
    _tasks(tasks.add_subparsers(metavar="what", parser_class=Parser))
    return parser


def _command(words: Any, name: str, run: Callable[[argparse.Namespace], int], help: str) -> Parser:
    parser: Parser = words.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    parser.set_defaults(run=run, parser=parser)
    return parser


def _sample(parser: Parser) -> None:
    parser.add_argument("--model", default="nano", help="nano, smollm2, a hub id or a folder (nano)")
    _which(parser)
    parser.add_argument("--groups", type=_whole, default=1, metavar="N", help="how many tasks to draw (1)")
    parser.add_argument("--task-id", action="append", metavar="ID", help="this task; may be repeated")
    parser.add_argument("--prompt-index", type=_whole, metavar="I", help="the task at this place of the source")
    parser.add_argument("-K", "--num-generations", type=_whole, default=8, metavar="K", help="completions a prompt (8)")
    parser.add_argument("--temperature", type=_number, default=1.0, help="of sampling (1)")
    parser.add_argument("--top-p", type=_number, default=1.0, help="probability kept when sampling (1, all of it)")
    parser.add_argument("--max-completion-length", type=_whole, default=96, metavar="T", help="in tokens (96)")
    parser.add_argument("--seed", type=_whole, default=0, help="draws the tasks; group i is sampled with seed + i (0)")
    parser.add_argument("--out", metavar="FILE", help="keep the groups in this parquet file")
    _weighing(parser)
    _output(parser)


def _score(parser: Parser) -> None:
    form = '{"task_id": "desk-3", "completions": ["..."]}'
    parser.add_argument("file", metavar="FILE", help=f"groups as parquet, JSON lines such as {form}, or - for stdin")
    parser.add_argument("--rescore", action="store_true", help="judge again what the file has scores for")
    parser.add_argument("--out", metavar="FILE", help="keep the scored groups in this parquet file")
    _weighing(parser)
    _output(parser)


def _app(parser: Parser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    parser.add_argument("--port", type=_whole, default=7860, help="(7860)")
    parser.add_argument("--auth", metavar="USER:PASSWORD", help="ask for this name and password")
    parser.add_argument("--share", action="store_true", help="a public link through Gradio's servers; needs --auth")
    parser.add_argument("--model", help="print the link that starts with this model")


def _tasks(words: Any) -> None:
    listing = _command(words, "list", commands.list_tasks, "the sources, or the tasks of one")
    listing.add_argument("source", nargs="?", metavar="SOURCE", help="a source; without it they are listed")
    listing.add_argument("--split", help="train or held_out (both)")
    listing.add_argument("--limit", type=_whole, default=20, help="how many to draw (20)")
    listing.add_argument("--json", action="store_true", help="one JSON document")
    show = _command(words, "show", commands.show_task, "one task: messages, tools, the right calls, the prompt")
    show.add_argument("task_id", metavar="ID", help="such as desk-3")
    show.add_argument("--model", help="also the prompt as this model's chat template renders it")
    show.add_argument("--json", action="store_true", help="one JSON document")


def _which(parser: Parser) -> None:
    parser.add_argument("--tasks", default="desk", metavar="SOURCE", help="where tasks come from (desk)")
    parser.add_argument("--split", default="held_out", help="train, held_out or all (held_out)")


def _weighing(parser: Parser) -> None:
    group = parser.add_argument_group("from scores to advantages")
    group.add_argument("--weights", metavar="D=W,...", help="reward weights; dimensions left out keep their default")
    group.add_argument("--scale-rewards", default="group", help="divide by the std of the group, the batch, or none")
    group.add_argument("--std", default="sample", help="sample (TRL) or population (the original formula)")
    group.add_argument("--aggregation", default="sum_then_normalize", help="or normalize_then_sum (GDPO)")


def _output(parser: Parser) -> None:
    group = parser.add_argument_group("output")
    kind = group.add_mutually_exclusive_group()
    kind.add_argument("--json", action="store_true", help="one JSON document")
    kind.add_argument("--csv", action="store_true", help="one row a completion")
    group.add_argument("--tokens", action="store_true", help="with --json: every token and its log-probability")
    group.add_argument("--reasons", action="store_true", help="under the table: why a score is below 1")


def _hyphened(word: str) -> str:
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value if flag.startswith("--") else word


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None

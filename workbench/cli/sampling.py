"""From a model's name and a list of tasks to groups, with a progress line for whoever is watching."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TextIO

from workbench.types import Group, SamplingConfig, Task

Sampler = Callable[..., Group]  # (task, sampling, on_token=None) -> Group


class ProgressLine:
    """One line that rewrites itself; silent unless the stream is a terminal (or ``always``)."""

    def __init__(self, stream: TextIO, *, always: bool = False) -> None:
        self.stream, self.is_on, self.is_terminal = stream, always or stream.isatty(), stream.isatty()
        self.last = 0.0

    def say(self, text: str, *, now: bool = False) -> None:
        """Show the text, at most ten times a second unless ``now``; a log gets only the latter, one a line."""
        moment = time.monotonic()
        if self.is_on and (now or (self.is_terminal and moment - self.last > 0.1)):
            self.last = moment
            self.stream.write(f"\r{text:<78}" if self.is_terminal else f"{text}\n")
            self.stream.flush()

    def clear(self) -> None:
        """Leave an empty line for what is printed next."""
        if self.is_on and self.is_terminal:
            self.stream.write(f"\r{'':<78}\r")
            self.stream.flush()


def sampler_of(model: str, progress: ProgressLine) -> Sampler:
    """Load the model (torch starts here) and return the function that samples one scored group from it."""
    progress.say(f"loading {model}", now=True)
    if not sys.stderr.isatty():  # a log is no place for a moving bar
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from workbench.models.policy import load_policy
    from workbench.rollouts import sample_group

    policy = load_policy(model, progress=lambda text: progress.say(f"{model}: {text}", now=True))

    def sample(task: Task, sampling: SamplingConfig, on_token: Callable[[Any], None] | None = None) -> Group:
        return sample_group(policy, task, sampling, on_token=on_token)

    return sample


def sample_groups(
    sampler: Sampler, tasks: Sequence[Task], sampling: SamplingConfig, progress: ProgressLine
) -> Iterator[Group]:
    """One group a task, group i with seed ``sampling.seed + i``, so that each can be sampled again on its own."""
    for index, task in enumerate(tasks):

        def watch(event: Any, where: str = f"group {index + 1} of {len(tasks)}") -> None:
            speed = f"{event.tokens_per_second:.0f} tokens/s"
            progress.say(f"{where}: {event.n_done} of {event.n_rows} completions, {speed}")

        yield sampler(task, replace(sampling, seed=sampling.seed + index), on_token=watch)
    progress.clear()


def stderr_progress(*, always: bool = False) -> ProgressLine:
    """The progress line on stderr."""
    return ProgressLine(sys.stderr, always=always)

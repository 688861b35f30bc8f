"""What needs a model: sampling a group, taking a GRPO step on a copy, showing the rendered prompt.

Each is a generator of :class:`Reply`: first what is happening, at last the new screen. Whatever goes wrong becomes a
sentence, and what was on show before stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.types import Group, StopReason
from workbench.ui import library, views
from workbench.ui.group_numbers import group_numbers
from workbench.ui.group_state import GroupState, with_changes
from workbench.ui.handlers import Reply, controls_of, screen
from workbench.ui.policies import SHELF, checked_model
from workbench.ui.sessions import Session, StepRecord
from workbench.ui.working import Cancelled, model_turn, streamed

if TYPE_CHECKING:
    from workbench.rollouts import TokenEvent

LOG = logging.getLogger(__name__)
Replies = Iterator[Reply]
Tell = Callable[[Any], None]


@dataclass
class Progress:
    """What a page shows while a model works: a sentence, and the rows that grow."""

    what: str
    sentence: str = "Starting"
    texts: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    done: int = 0
    rate: float = 0.0
    ticks: int = 0

    def hear(self, told: list[Any]) -> None:
        """Take in what the work has told since the last look: sentences, and sampled tokens."""
        self.ticks += 1
        for event in told:
            if isinstance(event, str):
                self.sentence = event
                self.texts, self.lengths = [], []
            else:
                self._token(event)

    def html(self) -> str:
        """The part of the page called "live"."""
        if self.texts:
            return views.sampling(self.texts, self.lengths, self.done, self.rate, self.what)
        return views.working(self.sentence, self.ticks * 0.1)

    def _token(self, event: TokenEvent) -> None:
        if not self.texts:
            self.texts, self.lengths = [""] * event.n_rows, [0] * event.n_rows
        self.texts[event.row] += event.text
        self.lengths[event.row] += 1
        self.done, self.rate = event.n_done, event.tokens_per_second


def sample(session: Session, values: Mapping[str, Any], *, any_model: bool = True, more: bool = False) -> Replies:
    """Sample a group live and put it on show; ``more`` asks for twice as many completions as are on show.

    A recorded model is sampled live under its own name. Pressing again with nothing changed takes the next seed,
    because the same seed would give the same answers.
    """
    state, problems = with_changes(session.state, values)
    if problems:
        yield Reply({"rev": session.next_revision(), "parts": {"notice": views.problems(problems), "live": ""}})
        return
    state = _to_sample(session, state, more)

    def work(tell: Tell) -> Group:
        task = library.find_task(state)
        with model_turn(tell, session.cancel):
            policy = SHELF.get(checked_model(state.policy_name, any_model), tell)
            from workbench.rollouts import sample_group

            tell("Reading the prompt")
            reference = None
            if session.steps_taken:
                policy, reference = session.stepper.policy, policy
            sampling = library.sampling_of(state)
            return sample_group(policy, task, sampling, reference=reference, on_token=tell, cancel=session.cancel)

    def finish(group: Group) -> Reply:
        _refuse_cancelled(group)
        if session.steps_taken == 0:
            library.RECENT.put(group)
        session.show(group, library.live_source(state, session.steps_taken))
        session.state = replace(state, selected=0)
        return Reply(screen(session, session.state), controls_of(session.state, group.task))

    yield from _at_work(session, work, finish, "sampling")


def take_step(session: Session, values: Mapping[str, Any], *, any_model: bool = True) -> Replies:
    """One GRPO step on a copy of the model, with the group on show; then fresh answers from the updated copy.

    The next step trains on those fresh answers, so every step is taken on what the model says now.
    """
    state, problems = with_changes(session.state, values)
    group = session.steps[-1].fresh if session.steps else session.group
    if problems or group is None:
        sentences = problems or ("There is no group to learn from yet; press Sample first.",)
        yield Reply({"rev": session.next_revision(), "parts": {"notice": views.problems(sentences), "live": ""}})
        return
    numbers = group_numbers(group, state)
    if numbers.dead:
        session.group = group
        session.state = state
        yield Reply(screen(session, state, problems=(f"No step was taken: {numbers.dead}, so every advantage is 0.",)))
        return

    def work(tell: Tell) -> StepRecord:
        with model_turn(tell, session.cancel):
            policy = SHELF.get(checked_model(state.policy_name, any_model), tell)
            return stepped(session, policy, group, numbers.advantages, state, tell)

    def finish(record: StepRecord) -> Reply:
        session.steps.append(record)
        session.group, session.state = record.trained, state
        payload = screen(session, state)
        return Reply({**payload, "scroll": "step"})

    yield from _at_work(session, work, finish, "sampling from the updated copy")


def stepped(
    session: Session, policy: Any, group: Group, advantages: np.ndarray, state: GroupState, tell: Tell
) -> StepRecord:
    """Update the session's copy of ``policy`` by one step on ``group``, and sample as many answers from it again."""
    from workbench.models.templates import render_prompt
    from workbench.rollouts import sample_group, score_logps
    from workbench.training.step import GroupStepper

    if session.stepper is None:
        tell("Making a copy of the model to train")
        session.stepper = GroupStepper(policy)
    objective = {"loss_type": state.loss_type, "epsilon": state.epsilon, "beta": state.beta}
    session.stepper.use(learning_rate=state.learning_rate, **objective)
    tell("Taking the step: one backward pass over the group")
    report = session.stepper.step(group, advantages)
    if not report.updated:
        raise InputError(f"No step was taken: {report.message}.")
    prompt = render_prompt(policy.tokenizer, group.task).ids
    now = score_logps(session.stepper.policy, prompt, group.completions)
    sampling = replace(group.sampling, num_generations=len(group.completions), seed=group.sampling.seed + 1)
    fresh = sample_group(
        session.stepper.policy, group.task, sampling, reference=policy, on_token=tell, cancel=session.cancel
    )
    _refuse_cancelled(fresh, "The step was taken; only the fresh answers were cancelled. Step again, or Reset.")
    return _record(group, fresh, advantages, now, report, state)


def rendered(session: Session, values: Mapping[str, Any], *, any_model: bool = True) -> Replies:
    """The prompt on show in the chat template of the model, as it is tokenised."""
    state, _ = with_changes(session.state, values)

    def work(tell: Tell) -> str:
        task = session.group.task if session.group else library.find_task(state)
        policy = SHELF.get(checked_model(state.policy_name, any_model), tell)
        from workbench.models.templates import render_prompt

        prompt = render_prompt(policy.tokenizer, task)
        return views.rendered_prompt(prompt.text, len(prompt.ids), prompt.notes, policy.name)

    def show(html: str) -> Reply:
        return Reply({"rev": session.next_revision(), "parts": {"rendered": html}})

    try:
        html = yield from _relayed(work, Progress("reading"), lambda progress: show(views.reading(progress.sentence)))
    except InputError as error:
        html = views.problems((str(error),))
    yield show(html)


def cancel(session: Session) -> Reply:
    """Ask whatever works for this page to stop; it does within one token."""
    session.cancel.set()
    return Reply({})


def _at_work(
    session: Session, work: Callable[[Tell], Any], finish: Callable[[Any], Reply], what: str
) -> Generator[Reply, None, None]:
    """Run the work with its progress on the page; end with its result, a cancel's note, or what went wrong."""
    with session.lock:
        if session.busy:
            yield Reply(_note(session, views.note("This page is at work already; cancel it first, or wait.")))
            return
        session.busy = True
    session.cancel.clear()
    try:
        result = yield from _relayed(work, Progress(what), lambda progress: Reply(_live(session, progress.html())))
        yield finish(result)
    except Cancelled as cancelled:
        kept = " What was here before is still here." if session.group else ""
        yield Reply(_note(session, views.note(str(cancelled) or f"Cancelled.{kept}")))
    except GeneratorExit:
        session.cancel.set()
        raise
    except InputError as error:
        yield Reply(_note(session, views.problems((str(error),))))
    except Exception as error:  # a model's own failure: out of memory, a broken file
        LOG.exception("live work failed")
        advice = "Nothing on the page was lost; try fewer completions, or nano."
        yield Reply(_note(session, views.problems((f"{what}: {type(error).__name__}: {error}. {advice}",))))
    finally:
        session.busy = False


def _relayed(
    work: Callable[[Tell], Any], progress: Progress, show: Callable[[Progress], Reply]
) -> Generator[Reply, None, Any]:
    """The work's result, after a reply for every look at its progress."""
    yield show(progress)
    relay = streamed(work)
    while True:
        try:
            told = next(relay)
        except StopIteration as stop:
            return stop.value
        progress.hear(told)
        if told or progress.ticks % 10 == 0:
            yield show(progress)


def _live(session: Session, html: str) -> dict[str, Any]:
    return {"rev": session.next_revision(), "parts": {"live": html, "notice": ""}}


def _note(session: Session, html: str) -> dict[str, Any]:
    return {"rev": session.next_revision(), "parts": {"live": "", "notice": html}}


def _to_sample(session: Session, state: GroupState, more: bool) -> GroupState:
    """The state that a press on Sample means: live, and with a seed whose answers are not on show already."""
    state = replace(state, model=state.policy_name)
    if more and session.group is not None:
        return replace(state, num_generations=min(32, max(4, 2 * len(session.group.completions))))
    shown = session.base
    if shown is None or (shown.model, shown.task.id) != (state.model, state.task):
        return state
    return replace(state, seed=state.seed + 1) if shown.sampling == library.sampling_of(state) else state


def _refuse_cancelled(group: Group, sentence: str = "") -> None:
    if any(c.stop_reason is StopReason.CANCELLED for c in group.completions):
        raise Cancelled(sentence)


def _record(
    group: Group, fresh: Group, advantages: np.ndarray, now: Sequence[Sequence[float]], report: Any, state: GroupState
) -> StepRecord:
    old, new = group_numbers(group, state), group_numbers(fresh, state)
    lengths = np.array([c.length for c in group.completions])
    return StepRecord(
        trained=group,
        fresh=fresh,
        advantages=tuple(advantages.tolist()),
        logps_before=tuple((np.array(report.before) * lengths).tolist()),
        logps_after=tuple((np.array(report.after) * lengths).tolist()),
        now=tuple(tuple(row) for row in now),
        trained_rewards=tuple(old.rewards.tolist()),
        fresh_rewards=tuple(new.rewards.tolist()),
        mean_before=old.mean,
        mean_after=new.mean,
        loss=report.loss,
        grad_norm=report.grad_norm,
        clip_ratio=report.clip_ratio,
        kl=report.mean_kl if state.beta else None,
    )

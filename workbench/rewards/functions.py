"""Calls a reward function written for TRL, ``f(prompts, completions, **columns)``, and believes nothing it returns.

- It is given what it can read: text or lists of messages (:class:`RewardFunction` says how that is found out), and
  only the columns its signature takes.
- It must return one number for each completion. One number for all, seven for eight, a generator, a text: each is an
  error that names the function. Nothing is broadcast.
- None means "does not apply" and stays None. NaN and infinity are errors.
- An exception is an outage, not a score: after a bounded number of attempts the completions are tried one by one, and
  those that still fail get ``Score(None, reason)``. :func:`check_outages` stops a run when too many do.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal

from workbench.errors import InputError, checked_range, nearest, unknown
from workbench.types import Completion, Score

Message = Mapping[str, Any]
AnyCompletion = Completion | str | Sequence[Message]
Form = Literal["text", "messages"]
FORMS: tuple[Form, ...] = ("text", "messages")
_WRONG_FORM = (TypeError, KeyError, AttributeError, IndexError)  # what reading the other form raises


def as_text(completion: AnyCompletion) -> str:
    """A completion as one text; tool calls that stand apart from the content are written as Hermes blocks.

    >>> as_text([{"role": "assistant", "content": None,
    ...           "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}])
    '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    """
    if isinstance(completion, Completion):
        return completion.text
    if isinstance(completion, str):
        return completion
    return "\n".join(part for message in completion for part in _message_parts(message))


def as_messages(completion: AnyCompletion) -> list[dict[str, Any]]:
    """A completion as a list of messages, whose contents are always text."""
    if isinstance(completion, Completion | str):
        return [{"role": "assistant", "content": as_text(completion)}]
    return [{**message, "content": message.get("content") or ""} for message in completion]


class RewardFunction:
    """A user's reward function, sync or async, made safe to call.

    ``takes`` is ``"text"`` or ``"messages"``; ``"auto"`` finds out by calling it with the first row: text first unless
    the prompts are messages, then the other form if that raises the errors of a wrong form. ``attempts`` bounds how
    often a failing call is made again.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        takes: Literal["auto", "text", "messages"] = "auto",
        attempts: int = 2,
    ) -> None:
        if takes not in ("auto", *FORMS):
            raise unknown("takes", takes, ("auto", *FORMS))
        checked_range("attempts", attempts, 1, 10)
        self.function, self.attempts = function, attempts
        self.name = str(name or getattr(function, "__name__", type(function).__name__))
        self.form: Form | None = None if takes == "auto" else takes

    def score(self, prompts: Sequence[Any], completions: Sequence[AnyCompletion], **columns: Any) -> list[Score]:
        """One score a completion, in order.

        Each column is a list with one entry a completion. Raises InputError when the function returns anything but
        one number or None for each, or needs a column that is not there.
        """
        n = len(completions)
        if n == 0:
            return []
        for column, values in {"prompts": prompts, **columns}.items():
            if isinstance(values, list | tuple) and len(values) != n:
                raise InputError(f"{self.name}: {column} has {len(values)} entries for {n} completions.")
        form = self.form or self._find_form(prompts, completions, columns)
        try:
            return self._attempt(form, prompts, completions, columns)
        except _Outage as outage:
            if n == 1:
                return [Score(None, str(outage))]
        return [score for i in range(n) for score in self._row(form, i, prompts, completions, columns)]

    def _row(
        self, form: Form, i: int, prompts: Sequence[Any], completions: Sequence[AnyCompletion], columns: Any
    ) -> list[Score]:
        row = {key: [values[i]] if isinstance(values, list | tuple) else values for key, values in columns.items()}
        try:
            return self._attempt(form, prompts[i : i + 1], completions[i : i + 1], row)
        except _Outage as outage:
            return [Score(None, str(outage))]

    def _attempt(
        self, form: Form, prompts: Sequence[Any], completions: Sequence[AnyCompletion], columns: Any
    ) -> list[Score]:
        for attempt in range(1, self.attempts + 1):
            try:
                returned = self._call(form, prompts, completions, columns)
            except InputError:
                raise
            except (Exception, SystemExit) as error:
                if attempt == self.attempts:
                    raise _Outage(self.name, error, attempt) from error
            else:
                return checked_rewards(self.name, returned, len(completions))
        raise AssertionError("unreachable: attempts is at least 1")

    def _call(self, form: Form, prompts: Sequence[Any], completions: Sequence[AnyCompletion], columns: Any) -> Any:
        shape = as_text if form == "text" else as_messages
        given = {"prompts": list(prompts), "completions": [shape(completion) for completion in completions], **columns}
        positional, named = bind(self.name, self.function, given)
        returned = self.function(*positional, **named)
        return _run(returned) if inspect.iscoroutine(returned) else returned

    def _find_form(self, prompts: Sequence[Any], completions: Sequence[AnyCompletion], columns: Any) -> Form:
        row = {key: [values[0]] if isinstance(values, list | tuple) else values for key, values in columns.items()}
        first: Form = "messages" if prompts and not isinstance(prompts[0], str) else "text"
        other: Form = "text" if first == "messages" else "messages"
        for form in (first, other):
            try:
                self._call(form, prompts[:1], completions[:1], row)
            except InputError:
                raise
            except _WRONG_FORM:
                continue
            except (Exception, SystemExit):
                return first  # an outage says nothing about the form: ask again next time
            self.form = form
            return form
        return first


def checked_rewards(name: str, returned: Any, n: int) -> list[Score]:
    """What a reward function returned, as ``n`` scores; raises InputError with its name, ``n`` and what came.

    >>> checked_rewards("mine", [1.0], 8)
    Traceback (most recent call last):
    ...
    workbench.errors.InputError: mine: expected 8 rewards, one a completion, got 1.
    """
    wanted = f"{name}: expected {n} rewards, one a completion, got"
    if hasattr(returned, "tolist"):
        returned = returned.tolist()  # an array or a tensor
    if isinstance(returned, str):
        raise InputError(f"{wanted} the text {returned[:30]!r}.")
    if isinstance(returned, int | float):
        raise InputError(f"{wanted} the single number {returned!r}; it is not copied to every completion.")
    if not isinstance(returned, list | tuple):
        raise InputError(f"{wanted} a {type(returned).__name__}; return a list.")
    if len(returned) != n:
        raise InputError(f"{wanted} {len(returned)}.")
    return [_score(name, i, value) for i, value in enumerate(returned)]


def bind(name: str, function: Callable[..., Any], given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and named arguments for ``function`` out of what there is to give, by its signature.

    Everything goes by name, as TRL calls it; only when the signature knows neither ``prompts`` nor ``completions``
    and begins with two arguments are those two given in order. Raises InputError for an argument that nobody has.

    >>> bind("mine", lambda completions, length=3: [0.0], {"prompts": ["p"], "completions": ["c"], "answer": ["a"]})
    ([], {'completions': ['c']})
    """
    parameters = list(inspect.signature(function).parameters.values())
    fixed = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    by_position: list[str] = []
    if not {"prompts", "completions"} & {p.name for p in fixed if p.kind is not p.POSITIONAL_ONLY}:
        first_two = [p for p in fixed[:2] if p.kind is not p.KEYWORD_ONLY and p.default is p.empty]
        if len(first_two) == 2:
            by_position, fixed = ["prompts", "completions"], fixed[2:]
    for p in fixed:
        if p.default is p.empty and p.name not in given:
            near = nearest(p.name, given)
            hint = f"; did you mean {near!r}?" if near else "."
            raise InputError(f"{name}: needs {p.name!r}, which is not a column{hint} There are: {', '.join(given)}.")
    wanted = set(given) - set(by_position) if takes_any else {p.name for p in fixed}
    named = {key: value for key, value in given.items() if key in wanted}
    return [given[key] for key in by_position], named


def check_outages(name: str, scores: Sequence[Score], at_most: float = 0.5) -> None:
    """Raises InputError when more than this share of the scores is missing, with the first reason."""
    missing = [score for score in scores if score.value is None]
    if scores and len(missing) / len(scores) > at_most:
        raise InputError(
            f"{name}: {len(missing)} of {len(scores)} completions could not be scored. {missing[0].reason}"
        )


class _Outage(Exception):
    def __init__(self, name: str, error: BaseException, attempts: int) -> None:
        said = f": {error}" if str(error) else ""
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(f"{name} was called {times} and raised {type(error).__name__}{said[:160]}.")


def _score(name: str, i: int, value: Any) -> Score:
    if isinstance(value, Score):
        return value
    if hasattr(value, "item"):
        value = value.item()  # a NumPy or torch scalar
    if value is None:
        return Score(None, f"{name} does not apply here.")
    if not isinstance(value, int | float):
        raise InputError(f"{name}: reward {i} is {value!r:.40}, a {type(value).__name__}; give a number or None.")
    if not math.isfinite(value):
        raise InputError(f"{name}: reward {i} is {value}; give a finite number, or None where it does not apply.")
    return Score(float(value), f"{name} gave {value:g}.")


def _message_parts(message: Message) -> list[str]:
    parts = [str(message.get("content") or "")]
    for call in message.get("tool_calls") or []:
        function = call.get("function", call)
        block = {"name": function.get("name"), "arguments": function.get("arguments")}
        parts.append(f"<tool_call>{json.dumps(block, ensure_ascii=False)}</tool_call>")
    return [part for part in parts if part]


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine; in a thread of its own, so that a notebook's running loop is no obstacle."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((asyncio.run(coroutine), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=work, name="reward")
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value

"""The desk's world: contacts, files, a calendar, money. Calls really change it, or are refused with a typed error."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from workbench.errors import InputError, unknown
from workbench.tasks.desk.calculator import calculate
from workbench.tasks.desk.tools import DAYS, DESK_TOOLS
from workbench.tasks.desk.values import POOLS
from workbench.types import ToolCall

EURO_PER = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "JPY": 0.0061, "CHF": 1.05, "SEK": 0.088}


class DeskError(StrEnum):
    """Why the desk refused a call. A refused call changes nothing but the count of refusals."""

    MALFORMED = "malformed"  # the call as written had an error; see ToolCall.error
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"  # against the tool's JSON Schema
    NOT_CONFIRMED = "not_confirmed"  # a destructive call without confirm: true
    NOT_FOUND = "not_found"  # no such contact, file or event
    ALREADY_THERE = "already_there"  # an event of that name exists
    NOT_ENOUGH = "not_enough"  # more money than the account holds
    NOT_COMPUTABLE = "not_computable"  # not arithmetic, or out of range


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered: a ``value``, or an ``error`` with one sentence of ``detail``."""

    ok: bool
    value: Any = None
    error: DeskError | None = None
    detail: str = ""


class Refusal(Exception):
    """Raised by a tool's own code to refuse; :meth:`Desk.execute` turns it into a :class:`ToolResult`."""

    def __init__(self, error: DeskError, detail: str):
        super().__init__(detail)
        self.error = error


def _digest(text: str) -> int:
    """A number from the text that is the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _first_files() -> dict[str, int]:
    return {name: 1 + _digest(name) % 900 for name in POOLS["file"]}


def _first_events() -> dict[str, tuple[str, int]]:
    return {title: (DAYS[_digest(title) % 7], 8 + _digest(title + "hour") % 11) for title in POOLS["event"]}


@dataclass(slots=True)
class Desk:
    """One office, always the same on the first morning. Two desks are equal when their states are.

    ``execute`` is the only way to change it. ``lookups`` remembers what was asked of the read-only tools, so that
    the state tells right questions from wrong ones too. Money is in cents.
    """

    files: dict[str, int] = field(default_factory=_first_files)  # name -> kilobytes
    events: dict[str, tuple[str, int]] = field(default_factory=_first_events)  # title -> (day, hour)
    paid: Counter[str] = field(default_factory=Counter)  # contact -> cents received
    account: int = 5_000_000  # our own cents
    outbox: Counter[tuple[str, str, bool]] = field(default_factory=Counter)  # (to, subject, urgent)
    reminders: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # (day, time, text)
    timers: Counter[tuple[int, str]] = field(default_factory=Counter)  # (minutes, label)
    lookups: Counter[tuple[str, str]] = field(default_factory=Counter)  # (tool, what was asked)
    refused: int = 0

    def copy(self) -> Desk:
        """An independent desk in the same state (containers are copied; what they hold is immutable)."""
        return replace(
            self,
            files=dict(self.files),
            events=dict(self.events),
            paid=self.paid.copy(),
            outbox=self.outbox.copy(),
            reminders=self.reminders.copy(),
            timers=self.timers.copy(),
            lookups=self.lookups.copy(),
        )

    def execute(self, call: ToolCall) -> ToolResult:
        """Run one call: the arguments are checked against the schema first, then confirmation, then the world.

        Never raises for anything a model can write. A refusal leaves everything but ``refused`` as it was.

        >>> desk = Desk()
        >>> desk.execute(ToolCall("delete_file", {"name": "report.txt", "confirm": False})).error
        <DeskError.NOT_CONFIRMED: 'not_confirmed'>
        >>> desk.execute(ToolCall("delete_file", {"name": "report.txt", "confirm": True})).ok
        True
        """
        try:
            name, arguments = checked_call(call)
            return ToolResult(True, ACTIONS[name](self, **arguments))
        except Refusal as refusal:
            self.refused += 1
            return ToolResult(False, None, refusal.error, str(refusal))


def checked_call(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The name and arguments of a call that may be run; raises :class:`Refusal` otherwise.

    A whole number written as ``5.0`` counts as an integer, as in JSON Schema, and is handed on as 5.
    """
    if call.error is not None or call.name is None or call.arguments is None:
        raise Refusal(DeskError.MALFORMED, f"the call was not understood: {call.error or 'name or arguments missing'}.")
    if call.name not in DESK_TOOLS:
        raise Refusal(DeskError.UNKNOWN_TOOL, str(unknown("tool", call.name, DESK_TOOLS)))
    tool, arguments = DESK_TOOLS[call.name], dict(call.arguments)
    if tool.destructive and arguments.get("confirm") in (None, False):
        raise Refusal(DeskError.NOT_CONFIRMED, f"{call.name}: cannot be taken back; call it with confirm: true.")
    for problem in _validator(call.name).iter_errors(arguments):
        where = ".".join(str(step) for step in problem.absolute_path) or "arguments"
        raise Refusal(DeskError.BAD_ARGUMENTS, f"{call.name}: {where}: {problem.message[:200]}.")
    for key, value in arguments.items():
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Refusal(DeskError.BAD_ARGUMENTS, f"{call.name}: {key}: {value} is not a finite number.")
            arguments[key] = int(value) if value.is_integer() else value
    return call.name, arguments


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(DESK_TOOLS[name].parameters)


def _found(kind: str, name: str, known: Any) -> str:
    """The entry of ``known`` that ``name`` means, whatever its case; refuses with the nearest one."""
    match = next((entry for entry in known if entry.casefold() == name.casefold()), None)
    if match is None:
        detail = str(unknown(kind, name, known)).split(" Known:")[0]
        raise Refusal(DeskError.NOT_FOUND, detail)
    return str(match)


def _cents(amount: float) -> int:
    cents = round(amount * 100)
    if abs(cents - amount * 100) > 1e-6:
        raise Refusal(DeskError.BAD_ARGUMENTS, f"amount: {amount!r} has more than two decimals; round it to cents.")
    return cents


def _looked_up(desk: Desk, tool: str, asked: str) -> None:
    desk.lookups[tool, asked.casefold()] += 1


def _get_weather(desk: Desk, city: str, day: str = "today") -> dict[str, Any]:
    _looked_up(desk, "get_weather", f"{city}, {day}")
    seed = _digest(f"{city.casefold()} {day}")
    sky = ("sun", "clouds", "rain", "wind", "snow", "fog")[seed % 6]
    return {"city": city, "day": day, "sky": sky, "celsius": seed // 6 % 35 - 5}


def _set_timer(desk: Desk, minutes: int, label: str = "") -> dict[str, Any]:
    desk.timers[minutes, label.casefold()] += 1
    return {"minutes": minutes, "label": label}


def _send_email(desk: Desk, to: str, subject: str, urgent: bool = False) -> dict[str, Any]:
    contact = _found("contact", to, POOLS["name"])
    desk.outbox[contact, _plain(subject), urgent] += 1
    return {"sent_to": contact, "subject": subject, "urgent": urgent}


def _create_reminder(desk: Desk, text: str, day: str, time: str) -> dict[str, Any]:
    desk.reminders[day, time, text.casefold()] += 1
    return {"text": text, "day": day, "time": time}


def _search_notes(desk: Desk, query: str, limit: int = 10) -> list[str]:
    _looked_up(desk, "search_notes", f"{_plain(query)}, {limit}")
    hits = [topic for topic in POOLS["topic"] if set(_plain(query).split()) & set(_plain(topic).split())]
    return [f"Note on {topic}" for topic in hits[:limit]]


def _calculate(desk: Desk, expression: str) -> int | float:
    try:
        value = calculate(expression)
    except InputError as error:
        raise Refusal(DeskError.NOT_COMPUTABLE, str(error)) from None
    _looked_up(desk, "calculate", str(value))
    return value


def _convert_currency(desk: Desk, amount: float, source: str, target: str) -> dict[str, Any]:
    _looked_up(desk, "convert_currency", f"{amount} {source} {target}")
    return {"amount": round(amount * EURO_PER[source] / EURO_PER[target], 2), "currency": target}


def _add_calendar_event(desk: Desk, title: str, day: str, hour: int) -> dict[str, Any]:
    title = title.casefold()
    if any(known.casefold() == title for known in desk.events):
        raise Refusal(DeskError.ALREADY_THERE, f"event: {title!r} is already on the calendar; choose another title.")
    desk.events[title] = (day, hour)
    return {"title": title, "day": day, "hour": hour}


def _list_events(desk: Desk, day: str) -> list[dict[str, Any]]:
    _looked_up(desk, "list_events", day)
    rows = sorted((hour, title) for title, (on, hour) in desk.events.items() if on == day)
    return [{"title": title, "hour": hour} for hour, title in rows]


def _delete_file(desk: Desk, name: str, confirm: bool) -> dict[str, Any]:
    del confirm  # already required by checked_call
    found = _found("file", name, desk.files)
    return {"deleted": found, "kilobytes": desk.files.pop(found)}


def _transfer_money(desk: Desk, to: str, amount: float, confirm: bool) -> dict[str, Any]:
    del confirm
    contact, cents = _found("contact", to, POOLS["name"]), _cents(amount)
    if cents > desk.account:
        raise Refusal(DeskError.NOT_ENOUGH, f"amount: {amount:g} is more than the account's {desk.account / 100:g}.")
    desk.account -= cents
    desk.paid[contact] += cents
    return {"to": contact, "amount": cents / 100, "left": desk.account / 100}


def _cancel_event(desk: Desk, title: str, confirm: bool) -> dict[str, Any]:
    del confirm
    found = _found("event", title, desk.events)
    day, hour = desk.events.pop(found)
    return {"cancelled": found, "day": day, "hour": hour}


def _plain(subject: str) -> str:
    """A subject without its case or leading article: "The budget" and "budget" are the same subject."""
    return subject.casefold().removeprefix("the ").strip()


ACTIONS: Mapping[str, Callable[..., Any]] = {
    "get_weather": _get_weather,
    "set_timer": _set_timer,
    "send_email": _send_email,
    "create_reminder": _create_reminder,
    "search_notes": _search_notes,
    "calculate": _calculate,
    "convert_currency": _convert_currency,
    "add_calendar_event": _add_calendar_event,
    "list_events": _list_events,
    "delete_file": _delete_file,
    "transfer_money": _transfer_money,
    "cancel_event": _cancel_event,
}

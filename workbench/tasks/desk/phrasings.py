"""How people ask for things at the desk: several wordings a tool, and requests that no tool serves."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ARGUMENT_OF: Mapping[str, Mapping[str, str]] = {
    "get_weather": {},
    "set_timer": {},
    "send_email": {"name": "to", "topic": "subject"},
    "create_reminder": {"errand": "text"},
    "search_notes": {"topic": "query"},
    "calculate": {"spoken": "expression", "signs": "expression"},
    "convert_currency": {},
    "add_calendar_event": {"errand": "title"},
    "list_events": {"event_day": "day"},
    "delete_file": {"file": "name"},
    "transfer_money": {"name": "to"},
    "cancel_event": {"event": "title"},
}
"""tool -> slot -> the argument it fills, where their names differ."""


def is_command(sentence: str) -> bool:
    """Whether a sentence starts with its verb and is no question.

    >>> is_command("Delete report.txt"), is_command("I owe Nina 5, pay it back")
    (True, False)
    """
    return not sentence.endswith("?") and sentence.split()[0] not in {"I", "The", "On", "Do"}


@dataclass(frozen=True)
class Phrasing:
    """One wording: text with ``{slots}``, the arguments it fixes by itself, and whether it is a command."""

    tool: str
    text: str
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots, in the order the tool's gold call lists them (required arguments first)."""
        names = [name for _, name, _, _ in string.Formatter().parse(self.text) if name]
        return tuple(sorted(names, key=ORDER.index))

    @property
    def imperative(self) -> bool:
        """Whether it is a command that can follow "please" or be joined to another one."""
        return is_command(self.text)

    def argument(self, slot: str) -> str:
        """The tool's argument that a slot fills."""
        return ARGUMENT_OF[self.tool].get(slot, slot)


ORDER = (
    "city",
    "name",
    "file",
    "event",
    "errand",
    "topic",
    "minutes",
    "label",
    "limit",
    "amount",
    "source",
    "target",
    "day",
    "event_day",
    "time",
    "hour",
    "spoken",
    "signs",
)


def _phrasings(tool: str, *texts: str, **fixed: Any) -> tuple[Phrasing, ...]:
    return tuple(Phrasing(tool, text, fixed) for text in texts)


PHRASINGS: Mapping[str, tuple[Phrasing, ...]] = {
    "get_weather": (
        *_phrasings(
            "get_weather",
            "What is the weather in {city}?",
            "How is the weather in {city} today?",
            "Check the weather in {city}",
            "Do I need an umbrella in {city}?",
            "How warm is it in {city} right now?",
            "Tell me the forecast for {city}",
        ),
        *_phrasings(
            "get_weather",
            "What will the weather be in {city} tomorrow?",
            "Check tomorrow's weather in {city}",
            "Will it rain in {city} tomorrow?",
            day="tomorrow",
        ),
    ),
    "set_timer": _phrasings(
        "set_timer",
        "Set a timer for {minutes} minutes",
        "Start a {minutes} minute timer",
        "Wake me in {minutes} minutes",
        "Count down {minutes} minutes",
        "Set a {label} timer for {minutes} minutes",
        "Time the {label} for {minutes} minutes",
        "Start a timer of {minutes} minutes called {label}",
    ),
    "send_email": (
        *_phrasings(
            "send_email",
            "Send {name} an email about {topic}",
            "Email {name} about {topic}",
            "Write to {name} about {topic}",
            "Drop {name} a line about {topic}",
            "Can you mail {name} about {topic}?",
        ),
        *_phrasings(
            "send_email",
            "Send {name} an urgent email about {topic}",
            "Email {name} about {topic} and mark it urgent",
            urgent=True,
        ),
    ),
    "create_reminder": _phrasings(
        "create_reminder",
        "Remind me to {errand} on {day} at {time}",
        "On {day} at {time}, remind me to {errand}",
        "Set a reminder for {day} {time} to {errand}",
        "Make sure I {errand} on {day} at {time}",
        "Do not let me forget to {errand} on {day} at {time}",
    ),
    "search_notes": _phrasings(
        "search_notes",
        "Find my notes about {topic}",
        "What did I write about {topic}?",
        "Search my notes for {topic}",
        "Look up {topic} in my notes",
        "Do I have any notes on {topic}?",
        "Find {limit} notes about {topic}",
        "Show me the last {limit} notes on {topic}",
    ),
    "calculate": _phrasings(
        "calculate",
        "What is {spoken}?",
        "How much is {spoken}?",
        "Work out {spoken}",
        "Calculate {signs}",
        "Compute {signs} for me",
        "What does {signs} make?",
    ),
    "convert_currency": _phrasings(
        "convert_currency",
        "Convert {amount} {source} to {target}",
        "How much is {amount} {source} in {target}?",
        "Change {amount} {source} into {target}",
        "What are {amount} {source} worth in {target}?",
        "Turn {amount} {source} into {target}",
        "Exchange {amount} {source} for {target}",
    ),
    "add_calendar_event": _phrasings(
        "add_calendar_event",
        'Put "{errand}" on my calendar for {day} at {hour}',
        'Add "{errand}" to the calendar on {day} at {hour}',
        'Schedule "{errand}" on {day} at {hour}',
        'Block {day} at {hour} for "{errand}"',
        'Plan "{errand}" for {day} at {hour}',
    ),
    "list_events": _phrasings(
        "list_events",
        "What is on my calendar on {event_day}?",
        "List my events for {event_day}",
        "Do I have anything on {event_day}?",
        "Show me my {event_day}",
        "What am I doing on {event_day}?",
        "Read me the agenda for {event_day}",
        "Am I free on {event_day}?",
        "Which meetings do I have on {event_day}?",
        "Show the calendar of {event_day}",
        "How busy am I on {event_day}?",
        "What are the plans for {event_day}?",
        "Go through my {event_day} with me",
    ),
    "delete_file": _phrasings(
        "delete_file",
        "Delete {file}",
        "Remove the file {file}",
        "Get rid of {file}",
        "Throw {file} away",
        "I do not need {file} any more, delete it",
        "Can you erase {file}?",
    ),
    "transfer_money": _phrasings(
        "transfer_money",
        "Send {name} {amount} euros",
        "Transfer {amount} to {name}",
        "Pay {name} {amount} euros",
        "Wire {amount} euros to {name}",
        "I owe {name} {amount}, pay it back",
        "Can you pay {name} {amount}?",
    ),
    "cancel_event": _phrasings(
        "cancel_event",
        "Cancel the {event}",
        "Call off the {event}",
        "Drop the {event} from my calendar",
        "The {event} will not happen, cancel it",
        "Take the {event} off the calendar",
        "Can you cancel the {event}?",
    ),
}

WISHES = (
    "Write a poem about {topic}.",
    "Order a pizza to {city}.",
    "Book me a flight to {city}.",
    "Draw a picture of {topic}.",
    "Call {name} on the phone.",
    "Buy tickets for {city}.",
    "Who is the mayor of {city}?",
    "Translate {topic} into Spanish.",
    "Play a song about {topic}.",
    "Find {name} a new job.",
    "How far is it to {city}?",
    "Rent a car in {city}.",
    "Take a photo of {name}.",
    "Give {name} a hug from me.",
)
"""Wishes that none of the twelve tools can serve."""

KEPT: Mapping[str, tuple[str, ...]] = {
    "delete_file": (
        "Never delete {0}.",
        "Should I delete {0}?",
        "What would happen if I deleted {0}?",
        "Please keep {0} where it is.",
    ),
    "transfer_money": (
        "Never pay {0} anything.",
        "Does {0} still owe me money?",
        "Should I pay {0}?",
        "Do not send {0} any money.",
    ),
    "cancel_event": (
        "Do not cancel the {0}.",
        "Should I cancel the {0}?",
        "Would anybody mind if I cancelled the {0}?",
        "Keep the {0} as it is.",
    ),
}
"""Sentences that speak of a destructive tool and do not ask for it; {0} is its object."""

"""The twelve tools of the desk, as JSON Schemas: three of them destroy something and need ``confirm``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.types import Tool

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF", "SEK")

TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
DAY: Mapping[str, Any] = {"type": "string", "enum": list(DAYS)}
CURRENCY: Mapping[str, Any] = {"type": "string", "enum": list(CURRENCIES)}
MONEY: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 10000}
CONFIRM: Mapping[str, Any] = {"type": "boolean", "description": "Must be true: this cannot be taken back."}


def _tool(name: str, description: str, required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Tool:
    """A tool whose schema lists the required arguments first and allows no others than these."""
    properties = {key: dict(schema) for key, schema in {**required, **(optional or {})}.items()}
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(name, description, schema, destructive="confirm" in required)


DESK_TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _tool(
            "get_weather",
            "The forecast for a city, today unless a day is given.",
            {"city": TEXT},
            {"day": {"type": "string", "enum": ["today", "tomorrow"]}},
        ),
        _tool(
            "set_timer",
            "Start a kitchen timer, with a label if one is wanted.",
            {"minutes": {"type": "integer", "minimum": 1, "maximum": 1440}},
            {"label": TEXT},
        ),
        _tool(
            "send_email",
            "Send an e-mail to one of the contacts.",
            {"to": TEXT, "subject": TEXT},
            {"urgent": {"type": "boolean"}},
        ),
        _tool(
            "create_reminder",
            "Remember something for a day and a time of day.",
            {"text": TEXT, "day": DAY, "time": {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}},
        ),
        _tool(
            "search_notes",
            "Look for notes on a subject, at most `limit` of them.",
            {"query": TEXT},
            {"limit": {"type": "integer", "minimum": 1, "maximum": 50}},
        ),
        _tool(
            "calculate",
            "Work out an expression of numbers with + - * / and brackets.",
            {"expression": {"type": "string", "minLength": 1, "maxLength": 64}},
        ),
        _tool(
            "convert_currency",
            "What an amount of one currency is worth in another.",
            {"amount": MONEY, "source": CURRENCY, "target": CURRENCY},
        ),
        _tool(
            "add_calendar_event",
            "Put an event on the calendar.",
            {"title": TEXT, "day": DAY, "hour": {"type": "integer", "minimum": 0, "maximum": 23}},
        ),
        _tool("list_events", "The events on the calendar on one day.", {"day": DAY}),
        _tool("delete_file", "Delete a file for good.", {"name": TEXT, "confirm": CONFIRM}),
        _tool("transfer_money", "Pay one of the contacts.", {"to": TEXT, "amount": MONEY, "confirm": CONFIRM}),
        _tool("cancel_event", "Call an event off and tell everybody.", {"title": TEXT, "confirm": CONFIRM}),
    )
}
"""Every tool of the desk by name; ``destructive`` ones have a required ``confirm``."""

"""The prompt card: what is asked, which tools may be used, what would be right, and how the model sees it."""

from __future__ import annotations

import json
from typing import Any

from workbench.types import ExpectedCall, Split, Task, Tool
from workbench.ui.views.escape import escaped, folded

TOOLS_SHOWN = 14
NO_CALL = "no call: a short sentence saying that no tool fits"


def prompt_card(task: Task, place: str = "") -> str:
    """The card of one task; ``place`` is a few words on where it stands, such as "group 4 of 120"."""
    earlier = [m for m in task.messages[:-1] if m.get("role") != "system"]
    split = "held out" if task.split is Split.HELD_OUT else "train"
    facts = " · ".join(part for part in (f"<code>{escaped(task.id)}</code>", split, escaped(place)) if part)
    return (
        f"<header><h2>Prompt</h2><span class='facts'>{facts}</span></header>"
        f"{_earlier(earlier)}<p class='ask'>{folded(task.prompt)}</p>"
        f"<dl class='given'><dt>tools</dt><dd>{_tools(task.tools)}</dd>"
        f"<dt>expected</dt><dd>{_expected(task.expected)}</dd></dl>"
        "<details class='rendered' data-act='rendered'><summary>How the model sees it</summary>"
        "<div id='wb-rendered'></div></details>"
    )


def rendered_prompt(text: str, tokens: int, notes: tuple[str, ...], model: str) -> str:
    """The prompt in the model's own chat template, exactly as it is tokenised."""
    said = "".join(f"<li>{escaped(note)}</li>" for note in notes)
    return (
        f"<p class='facts'>{escaped(model)}’s chat template, {tokens:,} tokens</p>"
        f"<ul class='notes'>{said}</ul><pre class='wrap'>{escaped(text)}</pre>"
    )


def call_text(name: str | None, arguments: Any) -> str:
    """A call as a person would write it: ``transfer_money(to="nina", amount=279)``; not escaped.

    >>> call_text("set_timer", {"minutes": 5, "label": "tea"})
    'set_timer(minutes=5, label="tea")'
    """
    inside = ", ".join(f"{key}={_literal(value)}" for key, value in (arguments or {}).items())
    return f"{name or '?'}({inside})"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _earlier(messages: list[Any]) -> str:
    rows = "".join(
        f"<li><b>{escaped(m.get('role'))}</b> {folded(str(m.get('content') or ''), limit=240)}</li>" for m in messages
    )
    return f"<ol class='earlier'>{rows}</ol>" if rows else ""


def _tools(tools: tuple[Tool, ...]) -> str:
    if not tools:
        return "<span class='quiet'>none</span>"
    chips = [_tool(tool) for tool in tools]
    if len(chips) > TOOLS_SHOWN:
        hidden = "".join(chips[TOOLS_SHOWN:])
        rest = f"<details class='inline'><summary>{len(chips) - TOOLS_SHOWN} more</summary>{hidden}</details>"
        chips = [*chips[:TOOLS_SHOWN], rest]
    return "".join(chips)


def _tool(tool: Tool) -> str:
    mark = "<b class='danger' aria-label='destructive'>⚠</b>" if tool.destructive else ""
    needed = set(tool.parameters.get("required") or ())
    properties = tool.parameters.get("properties") or {}
    arguments = ", ".join(name if name in needed else f"{name}?" for name in properties)
    title = f"{tool.description}{' This cannot be taken back.' if tool.destructive else ''}"
    return (
        f"<span class='tool' tabindex='0' data-tip='{escaped(f'{tool.name}({arguments}): {title}')}'>"
        f"{escaped(tool.name)}{mark}</span>"
    )


def _expected(calls: tuple[ExpectedCall, ...]) -> str:
    if not calls:
        return f"<span class='quiet'>{NO_CALL}</span>"
    return "".join(f"<code class='call'>{escaped(call_text(c.name, c.gold()))}{_alternatives(c)}</code>" for c in calls)


def _alternatives(call: ExpectedCall) -> str:
    loose = [name for name, values in call.arguments.items() if len(values) > 1 and name not in call.optional]
    parts = [f"{name}: {' or '.join(_literal(v) for v in call.arguments[name][:6])}" for name in loose]
    parts += [f"{name} may be left out" for name in sorted(call.optional)]
    if not parts:
        return ""
    return f"<span class='also' tabindex='0' data-tip='{escaped('; '.join(parts))}'>also accepted</span>"

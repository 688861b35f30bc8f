"""The completion on show: its tokens shaded by one reading, the calls read from it, and why it scored what it did."""

from __future__ import annotations

from workbench.figures import READINGS, TokenShades, dimension_colour
from workbench.figures.numbers import plain, signed
from workbench.rewards import ParsedCompletion
from workbench.types import Completion, Group, StopReason, ToolCall
from workbench.ui.group_numbers import GroupNumbers
from workbench.ui.views.escape import escaped, visible_token
from workbench.ui.views.prompt import call_text

TOKENS_SHOWN = 400
READING_NAMES = {"push": "net push", "logp": "log-probability", "entropy": "entropy", "kl": "KL to the reference"}
ENDED = {
    StopReason.EOS: "ended by itself",
    StopReason.LENGTH: "cut off at the length limit",
    StopReason.CANCELLED: "cancelled",
    StopReason.ERROR: "failed",
}


def selected_card(
    index: int, completion: Completion, parsed: ParsedCompletion, advantage: float, shades: TokenShades
) -> str:
    """The card of completion ``index`` (from 0)."""
    return (
        f"<header><h2>Completion {index + 1} {arrow(advantage)}</h2>{_reading_choice(shades.reading)}</header>"
        f"{token_strip(completion, shades)}<p class='facts'>{escaped(shades.summary)}</p>"
        f"{calls_list(parsed)}<p class='facts'>{_ending(completion)}</p>"
    )


def why_card(group: Group, index: int, numbers: GroupNumbers) -> str:
    """Every dimension's score of one completion, its weight, and the sentence that says why."""
    rows = []
    for f, name in enumerate(group.dimensions):
        score = group.scores[index][name]
        bad = " class='bad'" if name == "safety" and score.value is not None and score.value < 0.5 else ""
        rows.append(
            f"<tr{bad}><th><i class='dot' style='background:{dimension_colour(name, f)}'></i>{escaped(name)}</th>"
            f"<td class='num'>{plain(score.value)}</td><td class='num quiet'>× {plain(float(numbers.weights[f]))}</td>"
            f"<td class='reason'>{escaped(score.reason)}</td></tr>"
        )
    total = plain(float(numbers.rewards[index]))
    return (
        f"<header><h2>Why</h2><span class='facts'>reward <b class='num'>{total}</b>, the group’s mean is "
        f"<b class='num'>{plain(numbers.mean)}</b></span></header>"
        f"<table class='why'><tbody>{''.join(rows)}</tbody></table>"
    )


def arrow(advantage: float) -> str:
    """An advantage with sign, arrow and colour, all three.

    >>> arrow(0.94)
    "<span class='push up'>▲ +0.94</span>"
    """
    mark, kind = ("▲", "up") if advantage > 0 else ("▼", "down") if advantage < 0 else ("●", "rest")
    return f"<span class='push {kind}'>{mark} {signed(advantage)}</span>"


def token_strip(completion: Completion, shades: TokenShades) -> str:
    """The completion's own tokens, shaded; more than a few hundred fold behind "show all"."""
    if not completion.tokens:
        return f"<div class='strip' dir='ltr'><span>{escaped(completion.text) or '(nothing was written)'}</span></div>"
    spans = [_token(*item) for item in zip(completion.tokens, shades.shades, shades.sentences, strict=True)]
    head, rest = "".join(spans[:TOKENS_SHOWN]), "".join(spans[TOKENS_SHOWN:])
    more = ""
    if rest:
        label = f"<span class='more'>show all {len(spans):,} tokens</span>"
        more = f"<details class='fold'><summary>{label}</summary>{rest}</details>"
    label = "tabindex='0' aria-label='tokens of this completion'"
    return f"<div class='strip {shades.reading}' dir='ltr' {label}>{head}{more}</div>"


def calls_list(parsed: ParsedCompletion) -> str:
    """The calls that were read from the text, each with its own error; drafts inside reasoning are listed apart."""
    if not parsed.calls and not parsed.drafts:
        return "<p class='calls quiet'>no tool call in this answer</p>"
    rows = [_call(call) for call in parsed.calls]
    rows += [f"<li class='draft'>drafted while reasoning, never run: {_call_code(call)}</li>" for call in parsed.drafts]
    return f"<ul class='calls'>{''.join(rows)}</ul>"


def _call(call: ToolCall) -> str:
    if call.error is None:
        return f"<li><b class='ok' aria-label='parsed'>✓</b> {_call_code(call)}</li>"
    kind = escaped(str(call.error.value).replace("_", " "))
    detail = f": {escaped(call.detail)}" if call.detail else ""
    return f"<li class='bad'><b aria-label='error'>✗</b> {escaped(call.name or 'a call')} – {kind}{detail}</li>"


def _call_code(call: ToolCall) -> str:
    return f"<code class='call'>{escaped(call_text(call.name, call.arguments))}</code>"


def _token(text: str, shade: float, sentence: str) -> str:
    strength = round(abs(shade) * 100)
    kind = "n" if shade < 0 else "p"
    shown = visible_token(text) or "∅"
    return f"<span class='t {kind}' style='--s:{strength}%' data-tip='{escaped(sentence)}'>{shown}</span>"


def _reading_choice(reading: str) -> str:
    options = "".join(
        f"<option value='{name}'{' selected' if name == reading else ''}>{READING_NAMES[name]}</option>"
        for name in READINGS
    )
    return f"<label class='reading'>shade by <select data-change='reading' id='wb-reading'>{options}</select></label>"


def _ending(completion: Completion) -> str:
    said = f" ({escaped(completion.error)})" if completion.error else ""
    plural = "" if completion.length == 1 else "s"
    return f"<b class='num'>{completion.length}</b> token{plural} · {ENDED[completion.stop_reason]}{said}"

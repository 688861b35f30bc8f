"""Reads the tool calls in what a model wrote: one pass, linear time, a typed error for each bad call.

Notations, in the word that :attr:`ToolCall.format` uses:

- ``hermes``: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` (Hermes, Qwen, nano)
- ``llama3``: ``<|python_tag|>`` followed by JSON calls (``;`` between them) or by a Python call
- ``mistral``: ``[TOOL_CALLS] [{…}, {…}]`` and ``[TOOL_CALLS]name[ARGS]{…}``
- ``json``: an object or list of objects that begins with ``"name"`` (or ``"type"``, ``"function"``), bare at the
  start of a line, or in a fence marked ``json``, ``tool_call``, ``tool_calls``, ``tool_code``, or unmarked
- ``pythonic``: ``[f(a=1), g(b="x")]`` at the start of a line or in such a fence

Policies, each of which a test holds:

- **Reasoning is cut first.** A call inside ``<think>…</think>`` is a *draft*: reported, never a call. A ``<think>``
  that is never closed makes everything after it reasoning (``unclosed_reasoning`` is then true), so a call there is
  a draft too. A ``</think>`` without an opening (the template may have written that) makes everything *before* it
  reasoning. Marks inside a call's own strings are text.
- **A bad call never costs a good neighbour.** After a fault the reading goes on at the next mark.
- **A completion cut off inside a call** gives UNTERMINATED; without its closing tag it is not a call.
- Which shapes count as arguments is the table of :mod:`workbench.rewards.normalise`.
- End-of-turn marks at the very end (``<|im_end|>``, ``</s>`` …) are not text.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.rewards import notations
from workbench.rewards.page import Page
from workbench.types import ToolCall

TRAILING_MARKS = (
    "<|im_end|>", "</s>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>",
    "<end_of_turn>", "<eos>", "<|return|>", "<pad>", "<|pad|>",
)  # fmt: skip
_CALL_MARKS = {
    "<tool_call>": notations.hermes,
    "[TOOL_CALLS]": notations.mistral,
    "<|python_tag|>": notations.llama3,
    "```": notations.fence,
}
_BARE = ""  # stands for a bare call at the start of a line


@dataclass(frozen=True, slots=True)
class ParsedCompletion:
    """What a completion says: its calls in order, and the text around them.

    ``calls`` holds good and bad calls alike (a bad one has an ``error``); ``drafts`` are calls written inside the
    reasoning; ``content`` is what is left outside reasoning and calls, stripped.
    """

    calls: tuple[ToolCall, ...] = ()
    drafts: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    content: str = ""
    unclosed_reasoning: bool = False

    @property
    def good_calls(self) -> tuple[ToolCall, ...]:
        """The calls that could be read."""
        return tuple(call for call in self.calls if call.error is None)


def parse_completion(text: str, prefill: str = "") -> ParsedCompletion:
    """Reads one completion; ``prefill`` is what the chat template had already opened, such as ``"<think>\\n"``.

    ``start`` and ``end`` of each call count characters of ``text``. Never raises, whatever the text; time is linear
    in it.

    >>> parsed = parse_completion('Sure. <tool_call>{"name": "timer", "arguments": {"minutes": 5}}</tool_call>')
    >>> parsed.calls[0].name, dict(parsed.calls[0].arguments), parsed.content
    ('timer', {'minutes': 5}, 'Sure.')
    >>> parse_completion('<tool_call>{"name": "timer"</tool_call>').calls[0].error
    <CallError.UNTERMINATED: 'unterminated'>
    """
    full = prefill + text
    reader = _Reader(Page(full, 0, visible_end(full), len(prefill)))
    reader.read()
    return ParsedCompletion(
        tuple(reader.page.calls),
        tuple(reader.drafts),
        "\n".join(part for part in reader.reasoning if part),
        "".join(reader.page.content).strip(),
        reader.unclosed_reasoning,
    )


def visible_end(text: str) -> int:
    """Where ``text`` ends once end-of-turn marks and spaces at the very end are left out.

    >>> visible_end("Done.</s><|im_end|> ")
    5
    """
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in TRAILING_MARKS if text.endswith(mark, 0, end)), None)
        if mark is None:
            return end
        end -= len(mark)


class _Reader:
    """One pass over a page: go to the nearest mark, let its notation read on from there."""

    def __init__(self, page: Page, inside_reasoning: bool = False) -> None:
        self.page = page
        self.drafts: list[ToolCall] = []
        self.reasoning: list[str] = []
        self.unclosed_reasoning = False
        self.marks = _CALL_MARKS if inside_reasoning else {**_CALL_MARKS, "<think>": self.think, "</think>": self.close}
        self.bare_at = -1

    def read(self) -> None:
        """Reads the page to its end."""
        page, cursor = self.page, self.page.start
        self.look_for_bare(cursor)
        while cursor < page.stop:
            if self.bare_at < cursor:
                found = notations.BARE_LINE.search(page.text, cursor, page.stop)
                self.bare_at = found.end() if found else page.stop
            place, mark = min([(page.find(mark, cursor), mark) for mark in self.marks] + [(self.bare_at, _BARE)])
            page.content.append(page.text[cursor:place])
            if place == page.stop:
                return
            cursor = notations.bare(page, place) if mark == _BARE else self.marks[mark](page, place + len(mark))

    def look_for_bare(self, place: int) -> None:
        """Takes a bare call at ``place``, after white space, for one at the start of a line."""
        found = notations.BARE_HERE.match(self.page.text, place, self.page.stop)
        if found:
            self.bare_at = found.end()

    def think(self, page: Page, place: int) -> int:
        """Reads on from just after ``<think>``."""
        end = page.find("</think>", place)
        self.unclosed_reasoning |= end == page.stop
        self.reasoning.append(page.text[place:end].strip())
        inner = _Reader(Page(page.text, place, end, page.shift), inside_reasoning=True)
        inner.read()
        self.drafts += inner.page.calls
        after = min(page.stop, end + len("</think>"))
        self.look_for_bare(after)
        return after

    def close(self, page: Page, place: int) -> int:
        """Reads on from a ``</think>`` that nothing opened: what came before was reasoning, unless that is settled."""
        if not self.reasoning:
            self.reasoning.append(page.text[page.start : place - len("</think>")].strip())
            self.drafts, page.calls, page.content = page.calls, [], []
        self.look_for_bare(place)
        return place

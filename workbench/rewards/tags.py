"""Whether an answer keeps to a layout of tags, ``<think>…</think>`` and ``<answer>…</answer>``, judged by structure.

An anchored regular expression gets this wrong in both directions: it refuses an end-of-turn mark or a line break
between the blocks, and lets repeated blocks through. Here the tags are read one by one: each must be there exactly
once, in order, closed, with something inside, and with nothing but white space where the layout has no text.

The layout is judged on what the template had already written plus the completion: most reasoning templates open
``<think>`` themselves, and a completion judged alone would then always fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from workbench.errors import unknown
from workbench.rewards.parse import visible_end
from workbench.types import Score

LAYOUTS: dict[str, tuple[str, ...]] = {
    "think": ("think",),  # reasoning, and then some text
    "think_answer": ("think", "answer"),  # reasoning, an answer, and nothing else
}
_TAG = re.compile(r"</?(?:think|answer)>")


class Example(NamedTuple):
    """A row of the table that the reward ships with."""

    layout: str
    prefill: str
    text: str
    why: str


MUST_PASS = (
    Example("think_answer", "", "<think>a</think><answer>b</answer>", "the layout itself"),
    Example("think_answer", "", "<think>a</think>\n<answer>b</answer>", "a line break between the blocks"),
    Example("think_answer", "", "<think>a</think>\n<answer>b</answer><|im_end|>", "an end-of-turn mark"),
    Example("think_answer", "", " <think>\na\n</think> \n <answer> b </answer></s>\n", "white space anywhere"),
    Example("think_answer", "<think>\n", "a\n</think>\n<answer>b</answer>", "the template has opened <think>"),
    Example("think_answer", "", "<think>is 1 < 2?</think><answer><b>yes</b></answer>", "other tags are text"),
    Example("think", "<think>\n", "First, 2 plus 2.\n</think>\nThe answer is 4.", "the template has opened <think>"),
    Example("think", "", "<think>First, 2 plus 2.</think>The answer is 4.", "reasoning and text"),
)
MUST_FAIL = (
    Example("think_answer", "", "", "nothing"),
    Example("think_answer", "", "a b", "no tags"),
    Example("think_answer", "", "a</think><answer>b</answer>", "<think> is never opened"),
    Example("think_answer", "<think>", "<think>a</think><answer>b</answer>", "<think> is opened twice"),
    Example("think_answer", "", "<think>a<answer>b</answer>", "<think> is never closed"),
    Example("think_answer", "", "<think>a</think><answer>b", "<answer> is never closed"),
    Example("think_answer", "", "<think>a</think><think>a</think><answer>b</answer>", "two think blocks"),
    Example("think_answer", "", "<think>a</think><answer>b</answer><answer>c</answer>", "two answers"),
    Example("think_answer", "", "<answer>b</answer><think>a</think>", "the wrong order"),
    Example("think_answer", "", "<think>a</think>so<answer>b</answer>", "text between the blocks"),
    Example("think_answer", "", "<think>a</think><answer>b</answer> and more", "text after the answer"),
    Example("think_answer", "", "<think> </think><answer>b</answer>", "no reasoning"),
    Example("think_answer", "", "<think>a</think><answer></answer>", "no answer"),
    Example("think", "", "First, 2 plus 2.\n</think>\nThe answer is 4.", "<think> is never opened"),
    Example("think", "", "<think>First, 2 plus 2.</think>", "no text after the reasoning"),
)


@dataclass(frozen=True, slots=True)
class TaggedText:
    """What stands in each tag, the text outside of them, and the first fault (None when the layout is kept)."""

    inside: dict[str, str]
    outside: str
    fault: str | None


def read_tags(text: str, prefill: str = "", layout: str = "think_answer") -> TaggedText:
    """Reads ``prefill + text`` against one of the :data:`LAYOUTS`; time is linear in it.

    >>> read_tags("2 + 2\\n</think><answer>4</answer>", prefill="<think>\\n").inside
    {'think': '2 + 2', 'answer': '4'}
    """
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    full = prefill + text
    full = full[: visible_end(full)]
    names = LAYOUTS[layout]
    wanted = [mark for name in names for mark in (f"<{name}>", f"</{name}>")]
    found = list(_TAG.finditer(full))
    marks = [match[0] for match in found]
    if marks != wanted:
        return TaggedText({}, full.strip(), _structure_fault(marks, wanted))
    edges = [0, *(edge for match in found for edge in match.span()), len(full)]
    pieces = [full[begin:end].strip() for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    inside = dict(zip(names, pieces[1::2], strict=True))  # outside, inside, outside, inside, ..., outside
    return TaggedText(inside, " ".join(filter(None, pieces[::2])), _content_fault(inside, pieces[::2], layout))


def format_score(text: str, prefill: str = "", layout: str = "think_answer") -> Score:
    """1 when the layout is kept, else 0, with the first fault.

    >>> format_score("<think>a</think>\\n<answer>b</answer><|im_end|>").value
    1.0
    """
    fault = read_tags(text, prefill, layout).fault
    return Score(1.0, "The layout is kept.") if fault is None else Score(0.0, f"{fault[:1].upper()}{fault[1:]}.")


def opened_by(prompt: str) -> str:
    """What a rendered prompt has already opened on the model's behalf: a trailing ``<think>`` and what follows it.

    >>> opened_by("<|im_start|>assistant\\n<think>\\n"), opened_by("<think>\\n\\n</think>\\n")
    ('<think>\\n', '')
    """
    place = prompt.rfind("<think>")
    return prompt[place:] if place >= 0 and not prompt[place + len("<think>") :].strip() else ""


def _structure_fault(marks: list[str], wanted: list[str]) -> str:
    for mark in wanted:
        if mark not in marks:
            return f"{mark} is missing"
    for mark in wanted:
        if marks.count(mark) > 1:
            return f"{mark} stands there {marks.count(mark)} times"
    extra = next((mark for mark in marks if mark not in wanted), None)
    return f"{extra} has no place here" if extra else "the tags are in the wrong order"


def _content_fault(inside: dict[str, str], outside: list[str], layout: str) -> str | None:
    empty = next((name for name, content in inside.items() if not content), None)
    if empty:
        return f"<{empty}> is empty"
    if layout == "think":
        if outside[0]:
            return "text stands before <think>"
        return None if outside[-1] else "no text follows </think>"
    return f"text stands outside the tags: {next(filter(None, outside))[:30]!r}" if any(outside) else None

"""How a task becomes a prompt: rendered once to text, tokenised once, and refused when the tools are not in it.

There is one tokenise path: the chat template writes every mark of the conversation, and the text is tokenised with
``add_special_tokens=False``. Text that people or tools wrote cannot open or close a turn: a mark the tokenizer
would read as one token is spelled with a space after its first character, and the prompt says so in its notes. Not
covered: templates whose turn marks are ordinary text to the tokenizer, such as Llama-2's ``[INST]``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.types import Task

TOOL_TEMPLATE = Path(__file__).with_name("tool_chat.jinja")
OPENED = re.compile(r"<(?:think|thinking|reasoning|thought)>\s*\Z")
MARK = re.compile(r"<\S+>|\[/?[A-Z_]+\]")
STRUCTURE = re.compile(r"</?(?:tool_call|tool_response|think)>")  # an assistant's own marks, kept in its own turns
FIX = "use with_tool_template(tokenizer), our ChatML template that writes them"


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt exactly as the model reads it.

    ``ids`` are the tokens of ``text``. ``prefill`` is what the template opened on the model's behalf, such as
    ``"<think>\\n"``: structure is judged on prefill + completion. ``bos_count`` counts the BOS tokens at the start;
    it is never above 1. ``notes`` are sentences about anything a person should know before sampling.
    """

    text: str
    ids: tuple[int, ...]
    prefill: str = ""
    bos_count: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrefixCheck:
    """Whether what was sampled in turn 1 is, token for token, what turn 2 starts with.

    ``common`` counts the leading tokens both share, of ``length`` in turn 1; ``lost`` is the text of turn 1 from
    there on.
    """

    stable: bool
    common: int
    length: int
    lost: str
    detail: str


def render_prompt(tokenizer: Any, task: Task) -> RenderedPrompt:
    """The prompt of ``task`` in this tokenizer's chat template, with the generation prompt at its end.

    Raises :class:`InputError` with a fix when there is no chat template, when the template fails on the task, or
    when a tool's name is not written by it. An empty list of tools renders as no tools at all.
    """
    tools = [tool.as_openai() for tool in task.tools]
    marks = turn_marks(tokenizer)
    messages, found = neutralise_messages(task.messages, marks)
    tools, found_in_tools = neutralise(tools, marks)
    text = render_text(tokenizer, messages, tools)
    _check_tools_written(tokenizer, messages, [t["function"]["name"] for t in tools], text)
    prompt = _tokenise(tokenizer, text)
    notes = list(prompt.notes)
    if hidden := sorted(found | found_in_tools):
        notes.append(f"spelled with a space, so that it cannot open or close a turn: {', '.join(hidden)}")
    prefill = _prefill(tokenizer, messages, tools, text)
    return RenderedPrompt(prompt.text, prompt.ids, prefill, prompt.bos_count, tuple(notes))


def render_text(
    tokenizer: Any,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Any] = (),
    *,
    add_generation_prompt: bool = True,
) -> str:
    """The conversation as the chat template writes it; ``tools`` of length 0 are passed as None."""
    if not getattr(tokenizer, "chat_template", None):
        raise InputError(f"chat_template: this tokenizer has none, so a conversation cannot be rendered; {FIX}.")
    try:
        text = tokenizer.apply_chat_template(
            [dict(m) for m in messages],
            tools=list(tools) or None,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
        )
    except Exception as error:  # jinja's errors, and whatever a template's own code raises
        raise InputError(f"chat_template: it fails on this conversation ({error}); {FIX}.") from error
    return str(text)


def with_tool_template(tokenizer: Any) -> Any:
    """A copy of ``tokenizer`` with our ChatML template, which writes tools as JSON lines and asks for ``<tool_call>``.

    The end of a turn is ``<|im_end|>`` where the tokenizer knows it as one token, and its own EOS otherwise.
    """
    changed = copy.deepcopy(tokenizer)
    template = TOOL_TEMPLATE.read_text(encoding="utf-8")
    if "<|im_end|>" not in changed.get_added_vocab():
        if changed.eos_token is None:
            raise InputError("eos_token: this tokenizer has none, so the end of a turn cannot be written; set one.")
        template = template.replace("<|im_end|>", changed.eos_token)
    changed.chat_template = template
    return changed


def check_prefix(
    tokenizer: Any,
    messages: Sequence[Mapping[str, Any]],
    answer: str,
    then: Sequence[Mapping[str, Any]],
    tools: Sequence[Any] = (),
) -> PrefixCheck:
    """Ask whether ``prompt + answer`` stays a prefix when the conversation goes on with ``then``.

    ``messages`` end before the assistant's turn; ``answer`` is what was sampled after the generation prompt. When
    it is not stable, tokens trained in a later turn are not the tokens that were sampled, and a rollout must
    append to the sampled ids instead of rendering again.
    """
    prompt = render_text(tokenizer, messages, tools)
    opened = _prefill(tokenizer, messages, tools, prompt)
    first = _tokenise(tokenizer, prompt + answer).ids
    said = {"role": "assistant", "content": opened + answer}
    second = _tokenise(tokenizer, render_text(tokenizer, [*messages, said, *then], tools)).ids
    pairs = enumerate(zip(first, second, strict=False))
    common = next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
    if common == len(first):
        return PrefixCheck(True, common, len(first), "", "turn 2 starts with the very tokens of turn 1")
    lost = tokenizer.decode(list(first[common:]))
    detail = f"the template rewrites turn 1 from token {common} of {len(first)}: {lost[:60]!r} is not what turn 2 shows"
    return PrefixCheck(False, common, len(first), lost, detail)


def turn_marks(tokenizer: Any) -> tuple[str, ...]:
    """The texts this tokenizer reads as one mark, longest first: ``<|im_end|>``, perhaps ``<tool_call>``."""
    special = {str(token) for token in tokenizer.all_special_tokens}
    special |= {str(t) for t in getattr(tokenizer, "added_tokens_decoder", {}).values() if t.special}
    special |= {text for text in tokenizer.get_added_vocab() if MARK.fullmatch(text)}
    return tuple(sorted((s for s in special if len(s) > 2), key=lambda s: (-len(s), s)))


def neutralise(value: Any, marks: Sequence[str]) -> tuple[Any, frozenset[str]]:
    """``value`` with every mark inside its strings spelled with a space, and the marks that were found.

    >>> neutralise({"content": "stop<|im_end|>"}, ["<|im_end|>"])
    ({'content': 'stop< |im_end|>'}, frozenset({'<|im_end|>'}))
    """
    if isinstance(value, str):
        found = frozenset(mark for mark in marks if mark in value)
        for mark in marks:
            value = value.replace(mark, f"{mark[0]} {mark[1:]}")
        return value, found
    if isinstance(value, Mapping):
        pairs = {key: neutralise(item, marks) for key, item in value.items()}
        return {key: pair[0] for key, pair in pairs.items()}, _union(pair[1] for pair in pairs.values())
    if isinstance(value, (list, tuple)):
        parts = [neutralise(item, marks) for item in value]
        return [part[0] for part in parts], _union(part[1] for part in parts)
    return value, frozenset()


def neutralise_messages(
    messages: Sequence[Mapping[str, Any]], marks: Sequence[str]
) -> tuple[list[dict[str, Any]], frozenset[str]]:
    """The messages with marks neutralised; an assistant keeps its own tool-call and think marks."""
    inner = [mark for mark in marks if not STRUCTURE.fullmatch(mark)]
    pairs = [neutralise(dict(m), inner if m.get("role") == "assistant" else marks) for m in messages]
    return [pair[0] for pair in pairs], _union(pair[1] for pair in pairs)


def _union(sets: Any) -> frozenset[str]:
    return frozenset().union(*sets)


def _tokenise(tokenizer: Any, text: str) -> RenderedPrompt:
    """The only place where text becomes ids; drops a doubled BOS and states a missing one."""
    notes: list[str] = []
    bos = tokenizer.bos_token
    while bos and text.startswith(bos + bos):
        text = text[len(bos) :]
        notes = [f"the template wrote BOS ({bos}) twice; one was removed"]
    ids = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    count = 0
    while count < len(ids) and ids[count] == tokenizer.bos_token_id:
        count += 1
    if bos and count == 0 and _adds_bos(tokenizer):
        notes.append(f"the tokenizer starts text with BOS ({bos}), but the template leaves it out: there is none")
    return RenderedPrompt(text, ids, bos_count=count, notes=tuple(notes))


def _adds_bos(tokenizer: Any) -> bool:
    return tuple(tokenizer("a")["input_ids"])[:1] == (tokenizer.bos_token_id,)


def _prefill(tokenizer: Any, messages: Sequence[Any], tools: Sequence[Any], text: str) -> str:
    """The reasoning tag that the generation prompt leaves open, or ``""``."""
    without = render_text(tokenizer, messages, tools, add_generation_prompt=False)
    suffix = text[len(without) :] if text.startswith(without) else text
    opened = OPENED.search(suffix)
    return opened.group() if opened else ""


def _check_tools_written(tokenizer: Any, messages: Sequence[Any], names: Sequence[str], text: str) -> None:
    """Refuse a template that drops a tool: its name must appear more often with the tools than without them."""
    if not names:
        return
    bare = render_text(tokenizer, messages)
    lost = [name for name in names if text.count(name) <= bare.count(name)]
    if lost:
        raise InputError(
            f"chat_template: it does not write {len(lost)} of {len(names)} tools ({', '.join(lost[:3])}), "
            f"so the model could not know of them; {FIX}."
        )

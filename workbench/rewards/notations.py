"""The notations in which models write calls: each function reads on from a mark and returns where it stopped.

A function is given the page and the place just after its mark. It adds what it finds to the page, good calls and bad
ones, and always returns a later place, from which the reading goes on: that is how a bad call cannot cost a good
neighbour.
"""

from __future__ import annotations

import re

from workbench.rewards.normalise import normalise
from workbench.rewards.page import Page
from workbench.rewards.pythonic import list_pieces, split_again
from workbench.rewards.strict_json import IN_STRING, BadCall, decode, value_end
from workbench.types import CallError, ToolCall

FENCES = frozenset({"", "json", "tool_call", "tool_calls", "tool_code"})  # fences whose content may be calls
_JSON_CALL = r'\{\s*+"(?:name|type|function)"\s*+:'
_PYTHON_CALL = r"[^\W\d][\w.]*+\s*+\(\s*+(?:\)|[^\W\d]\w*+\s*+=)"
_BARE_START = rf"(?:\[\s*+)?{_JSON_CALL}|\[\s*+{_PYTHON_CALL}"
BARE_LINE = re.compile(rf"^[ \t]*+(?={_BARE_START})", re.MULTILINE)  # a bare call at the start of a line
BARE_HERE = re.compile(rf"\s*+(?={_BARE_START})")
_ANOTHER_OBJECT = re.compile(rf"\s*+[;,]?\s*+(?={_JSON_CALL})")
_NEXT_ELEMENT = re.compile(rf"{_JSON_CALL}|\]")
_LONE_PYTHON = re.compile(_PYTHON_CALL)
_PYTHON_NAME = re.compile(r"\s*+([^\W\d][\w.]{0,127})\(")
_MISTRAL_NAME = re.compile(r"\s*+([A-Za-z_][\w.-]{0,127})\s*+(?:\[CALL_ID\][\w-]*+)?(?:\[ARGS\])?\s*+(?=\{)")


def hermes(page: Page, place: int) -> int:
    """``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, read from just after the opening tag."""
    begin, place = place - len("<tool_call>"), page.skip_space(place)
    edge = min(page.find("</tool_call>", place), page.find("<tool_call>", place))
    end = page.object_end(place, edge)
    if end is not None:
        after = page.skip_space(end)
        if page.starts("</tool_call>", after) and page.add_json(place, end, "hermes", begin, after + 12):
            return after + 12
    closed = page.starts("</tool_call>", edge)
    after = edge + 12 if closed else edge
    fault = block_fault(page.text[place:edge].strip(), "hermes")
    if not closed and fault.error is not CallError.UNTERMINATED:
        fault = BadCall(CallError.UNTERMINATED, "the closing </tool_call> is missing")
    page.add_fault(fault, "hermes", begin, after, page.guess_name(place, edge))
    return after


def mistral(page: Page, place: int) -> int:
    """``[TOOL_CALLS] [{…}, {…}]`` or ``[TOOL_CALLS]name[ARGS]{…}``, read from just after the mark."""
    begin, here = place - len("[TOOL_CALLS]"), page.skip_space(place)
    if page.starts("[", here) and not page.starts("[TOOL_CALLS]", here):
        return elements(page, here, "mistral")
    named = _MISTRAL_NAME.match(page.text, place, page.stop)
    if named:
        return _named_arguments(page, named[1], named.end(), begin)
    page.add_fault(BadCall(CallError.INVALID_JSON, "no list of calls follows [TOOL_CALLS]"), "mistral", begin, here)
    return here


def llama3(page: Page, place: int) -> int:
    """``<|python_tag|>`` and then JSON calls or one Python call, read from just after the tag."""
    here = page.skip_space(place)
    if page.starts(("{", "["), here):
        return bare(page, here, "llama3")
    if _LONE_PYTHON.match(page.text, here, page.stop):
        return _python_line(page, here)
    fault = BadCall(CallError.INVALID_JSON, "neither JSON nor a Python call follows <|python_tag|>")
    page.add_fault(fault, "llama3", place - len("<|python_tag|>"), here)
    return here


def fence(page: Page, place: int) -> int:
    """A fenced block, read from just after its opening marks: calls when it is marked as such, otherwise text."""
    line_end = page.text.find("\n", place, min(page.stop, place + 40))
    info = page.text[place:line_end].strip().lower() if line_end >= 0 else None
    inside = BARE_HERE.match(page.text, line_end, page.stop) if info in FENCES else None
    if inside or (info == "tool_code" and _LONE_PYTHON.match(page.text, line_end + 1, page.stop)):
        end = bare(page, inside.end(), "json") if inside else _python_line(page, line_end + 1)
        after = page.skip_space(end)
        return after + 3 if page.starts("```", after) else after
    end = min(page.find("```", place) + 3, page.stop)
    page.content.append(page.text[place - 3 : end])
    return end


def bare(page: Page, place: int, notation: str = "json") -> int:
    """The JSON calls, or the list of Python calls, that begin at ``place``."""
    if not page.starts("[", place):
        return objects(page, place, notation)
    if _LONE_PYTHON.match(page.text, page.skip_space(place + 1), page.stop):
        return _python_list(page, place)
    return elements(page, place, notation)


def objects(page: Page, place: int, notation: str) -> int:
    """JSON calls one after another, with ``;``, ``,`` or nothing between them."""
    while True:
        end = _one_object(page, place, notation)
        another = _ANOTHER_OBJECT.match(page.text, end, page.stop)
        if another is None:
            return end
        place = another.end()


def elements(page: Page, place: int, notation: str) -> int:
    """The JSON list of calls whose ``[`` stands at ``place``, element by element."""
    place = page.skip_space(place + 1)
    while place < page.stop:
        mark = page.text[place]
        if mark == "]":
            return place + 1
        if mark == "{":
            place = _one_object(page, place, notation)
        elif mark == ",":
            place += 1
        else:
            found = _NEXT_ELEMENT.search(page.text, place, page.stop)
            end = found.start() if found else page.stop
            fault = BadCall(CallError.NOT_AN_OBJECT, f"{page.text[place : place + 20]!r} stands where a call should be")
            page.add_fault(fault, notation, place, end)
            place = end
        place = page.skip_space(place)
    return page.stop


def block_fault(block: str, notation: str) -> BadCall:
    """Why ``block``, which should have been exactly one call, is none: the most telling fault."""
    if not block:
        return BadCall(CallError.INVALID_JSON, "nothing stands between the marks")
    try:
        if block[0] in "{[" and value_end(block, 0, len(block)) in (None, IN_STRING):
            return BadCall(CallError.UNTERMINATED, "the JSON stops before its closing quote or bracket")
        normalise(decode(block), notation)
    except BadCall as bad:
        return bad
    return BadCall(CallError.INVALID_JSON, "not a call that can be read")


def _one_object(page: Page, place: int, notation: str) -> int:
    """The object at ``place``; when it is at fault, returns where the next one may begin."""
    end = page.object_end(place, page.stop)
    if end is not None and page.add_json(place, end, notation, place, end):
        return end
    found = _NEXT_ELEMENT.search(page.text, place + 1, page.stop)
    edge = found.start() if found else page.stop
    edge = min(edge, end) if end is not None else edge
    fault = block_fault(page.text[place:edge].rstrip(" \t\r\n,;"), notation)
    page.add_fault(fault, notation, place, edge, page.guess_name(place, edge))
    return edge


def _named_arguments(page: Page, name: str, place: int, begin: int) -> int:
    """The arguments object of ``[TOOL_CALLS]name[ARGS]{…}``."""
    end = page.object_end(place, page.find("[TOOL_CALLS]", place))
    try:
        if end is None:
            edge = page.find("[TOOL_CALLS]", place)
            raise block_fault(page.text[place:edge].strip(), "mistral")
        arguments = decode(page.text[place:end])
    except BadCall as bad:
        after = page.find("[TOOL_CALLS]", place) if end is None else end
        page.add_fault(bad, "mistral", begin, after, name)
        return after
    page.calls.append(ToolCall(name, arguments, None, "", "mistral", begin - page.shift, end - page.shift))
    return end


def _python_list(page: Page, place: int) -> int:
    """``[f(a=1), g(b=2)]`` whose ``[`` stands at ``place``."""
    places, end, fault = list_pieces(page.text, place, page.stop)
    for number, (first, last) in enumerate(places):
        cut_off = fault if number == len(places) - 1 else None
        if cut_off is None and (not page.text[first:last].strip() or page.add_python(first, last, "pythonic") is None):
            continue
        parts = list(split_again(page.text, first, last))
        for part, (begin, after) in enumerate(parts):
            _python_part(page, begin, after, cut_off if part == len(parts) - 1 else None)
    return end


def _python_part(page: Page, start: int, end: int, cut_off: BadCall | None) -> None:
    fault = page.add_python(start, end, "pythonic")
    if fault is not None:
        named = _PYTHON_NAME.match(page.text, start, end)
        page.add_fault(cut_off or fault, "pythonic", start, end, named[1] if named else None)


def _python_line(page: Page, place: int) -> int:
    """A single Python call that ends with its line."""
    end = min(page.find("\n", place), page.find("<|python_tag|>", place), page.find("```", place))
    fault = page.add_python(place, end, "llama3")
    if fault is not None:
        named = _PYTHON_NAME.match(page.text, place, end)
        page.add_fault(fault, "llama3", place, end, named[1] if named else None)
    return end

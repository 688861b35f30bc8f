"""The text of one completion while it is being read: where things stand in it, and the calls found so far."""

from __future__ import annotations

import re

from workbench.rewards.normalise import name_of, normalise
from workbench.rewards.pythonic import read_call
from workbench.rewards.strict_json import IN_STRING, BadCall, decode, value_end
from workbench.types import CallError, ToolCall

_SPACE = re.compile(r"\s*+")
_NAME_KEY = re.compile(r'"name"\s*+:\s*+"([^"\\\n]{1,128})"')
_MALFORMED = (CallError.INVALID_JSON, CallError.UNTERMINATED, CallError.EXTRA_TEXT)


class Page:
    """``text[start:stop]``, read from left to right.

    ``shift`` is the length of the prefill: places in a :class:`ToolCall` count from after it. ``calls`` and
    ``content`` grow as the notations of :mod:`workbench.rewards.notations` read on.
    """

    def __init__(self, text: str, start: int, stop: int, shift: int) -> None:
        self.text, self.start, self.stop, self.shift = text, start, stop, shift
        self.calls: list[ToolCall] = []
        self.content: list[str] = []
        self._next: dict[str, int] = {}

    def find(self, mark: str, place: int) -> int:
        """Where ``mark`` next stands at or after ``place``, ``stop`` when nowhere.

        The last answer is kept, so asking from left to right costs one walk over the text in all.
        """
        known = self._next.get(mark, -1)
        if known < place:
            found = self.text.find(mark, place, self.stop)
            known = self._next[mark] = self.stop if found < 0 else found
        return known

    def starts(self, mark: str | tuple[str, ...], place: int) -> bool:
        """Whether ``mark`` stands at ``place``."""
        return self.text.startswith(mark, place, self.stop)

    def skip_space(self, place: int) -> int:
        """The first place at or after ``place`` that is not white space."""
        found = _SPACE.match(self.text, place, self.stop)
        return found.end() if found else place

    def object_end(self, place: int, edge: int) -> int | None:
        """Where the object at ``place`` ends; None when there is none, or it nests too deep or never ends.

        It should end before ``edge``, the next mark; only when the edge turns out to lie inside one of its strings
        is it followed to the end of the text.
        """
        if not self.starts("{", place):
            return None
        try:
            end = value_end(self.text, place, edge)
            if end == IN_STRING and edge < self.stop:
                end = value_end(self.text, place, self.stop)
        except BadCall:
            return None
        return None if end == IN_STRING else end

    def guess_name(self, start: int, end: int) -> str | None:
        """The tool that a broken call seems to name."""
        named = _NAME_KEY.search(self.text, start, min(end, start + 400))
        return named[1] if named else None

    def add_json(self, place: int, end: int, notation: str, begin: int, after: int) -> bool:
        """Adds the call that ``text[place:end]`` is, good or bad; False when it is not JSON at all.

        ``begin`` and ``after`` are the outer places of the call, its marks included.
        """
        try:
            value = decode(self.text[place:end])
        except BadCall as bad:
            if bad.error in _MALFORMED:
                return False
            self.add_fault(bad, notation, begin, after, self.guess_name(place, end))
            return True
        try:
            name, arguments, remark = normalise(value, notation)
        except BadCall as bad:
            self.add_fault(bad, notation, begin, after, name_of(value))
            return True
        self.calls.append(ToolCall(name, arguments, None, remark, notation, begin - self.shift, after - self.shift))
        return True

    def add_python(self, start: int, end: int, notation: str) -> BadCall | None:
        """Adds the Python call that ``text[start:end]`` is; returns the fault, adding nothing, when it is none."""
        try:
            name, arguments = read_call(self.text[start:end])
        except BadCall as bad:
            return bad
        self.calls.append(ToolCall(name, arguments, None, "", notation, start - self.shift, end - self.shift))
        return None

    def add_fault(self, fault: BadCall, notation: str, start: int, end: int, name: str | None = None) -> None:
        """Adds a bad call with its error."""
        place = (max(0, start - self.shift), max(0, end - self.shift))
        self.calls.append(ToolCall(name, None, fault.error, fault.detail, notation, *place))

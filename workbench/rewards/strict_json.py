"""JSON as a tool call may contain it: no NaN, no duplicate keys, bounded depth and digits, a named error for each.

:func:`value_end` finds where a bracketed value ends by counting brackets outside strings, without decoding it.
It stops at :data:`MAX_DEPTH`, which is what keeps the whole parser linear: a text of nothing but opening brackets
is given up after 33 of them, so no character is looked at more than a fixed number of times.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from json.decoder import JSONDecodeError
from typing import Any

from workbench.types import CallError

MAX_DEPTH = 32  # brackets inside brackets
MAX_DIGITS = 400  # longer than any float; keeps integer parsing linear

# A whole string, a quote that is never closed, or a bracket. Possessive (*+): nothing is ever tried twice.
_TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
IN_STRING = -1  # what value_end returns when the text stops inside a string
_STEP = {"{": 1, "[": 1, "}": -1, "]": -1}


class BadCall(ValueError):
    """One call as written cannot be used: what kind of fault, and one clause for a person."""

    def __init__(self, error: CallError, detail: str) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


def value_end(text: str, start: int, stop: int) -> int | None:
    """Where the object or array that begins at ``text[start]`` ends.

    None when ``stop`` comes first, :data:`IN_STRING` when it comes inside a string. Brackets of either kind are
    counted alike: whether they pair up is the decoder's business. Raises :class:`BadCall` (TOO_DEEP) beyond
    :data:`MAX_DEPTH`.

    >>> value_end('{"a": "}"} and more', 0, 19)
    10
    """
    depth = 0
    for token in _TOKENS.finditer(text, start, stop):
        step = _STEP.get(token[0])
        if step is None:
            if token.end() - token.start() == 1:
                return IN_STRING
            continue
        depth += step
        if depth > MAX_DEPTH:
            raise BadCall(CallError.TOO_DEEP, f"brackets are nested deeper than {MAX_DEPTH}")
        if depth <= 0:
            return token.end()
    return None


def decode(source: str) -> Any:
    """The JSON value that ``source`` is, strictly; raises :class:`BadCall` with what is wrong.

    >>> decode('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = _DECODER.decode(source)
    except JSONDecodeError as error:
        raise _syntax_error(source, error) from None
    except RecursionError:
        raise BadCall(CallError.TOO_DEEP, f"brackets are nested deeper than {MAX_DEPTH}") from None
    if not source.isascii() or "\\u" in source:
        check_characters(value)
    return value


def check_characters(value: Any) -> None:
    """Raises :class:`BadCall` when a string holds half of a surrogate pair, which no file could store."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadCall(CallError.INVALID_JSON, "a string holds half of a surrogate pair") from None


def _syntax_error(source: str, error: JSONDecodeError) -> BadCall:
    if error.msg.startswith("Unterminated string") or not source[error.pos :].strip():
        return BadCall(CallError.UNTERMINATED, "the JSON stops before its closing quote or bracket")
    if error.msg == "Extra data":
        return BadCall(CallError.EXTRA_TEXT, f"something follows the JSON: {source[error.pos : error.pos + 12]!r}")
    if error.msg.startswith("Invalid control character"):
        return BadCall(CallError.INVALID_JSON, f"a raw line break or control character at character {error.pos}")
    near = source[error.pos : error.pos + 12]
    return BadCall(CallError.INVALID_JSON, f"{error.msg.lower()} at character {error.pos}, near {near!r}")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise BadCall(CallError.INVALID_JSON, f"a whole number of {len(digits)} digits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadCall(CallError.NOT_FINITE, f"{digits[:20]} is too large for a number")
    return value


def _constant(name: str) -> float:
    raise BadCall(CallError.NOT_FINITE, f"{name} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise BadCall(CallError.DUPLICATE_KEY, f"the key {twice[:40]!r} is given twice")
    return found


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant, strict=True
)

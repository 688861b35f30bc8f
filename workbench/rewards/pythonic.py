"""Calls written as Python, ``[f(a=1), g(b="x")]``: split by brackets, read by ``ast``, literals only, never run."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.rewards.strict_json import MAX_DEPTH, MAX_DIGITS, BadCall, check_characters
from workbench.types import CallError

MAX_CALL_CHARACTERS = 10_000  # ast needs memory and stack in proportion; longer calls are refused unread

_TOKENS = re.compile(r"""'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|["'()\[\]{},]""", re.DOTALL)
_NEXT_CALL = re.compile(r",\s*(?=[A-Za-z_][\w.]*\()")
_JSON_NAMES = {"true": True, "false": False, "null": None}


def list_pieces(text: str, start: int, stop: int) -> tuple[list[tuple[int, int]], int, BadCall | None]:
    """The calls between the ``[`` at ``text[start]`` and its ``]``, as (start, end) places.

    Returns the places, the end of the list, and the reason when the list is cut off or nests too deep: its last
    place then runs to ``stop`` or to the fault.
    """
    places: list[tuple[int, int]] = []
    depth, begin = 0, start + 1
    for token in _TOKENS.finditer(text, start, stop):
        mark = token[0]
        if mark in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                fault = BadCall(CallError.TOO_DEEP, f"brackets are nested deeper than {MAX_DEPTH}")
                return [*places, (begin, token.end())], token.end(), fault
        elif mark in ")]}":
            depth -= 1
            if depth == 0:
                return [*places, (begin, token.start())], token.end(), None
        elif mark == "," and depth == 1:
            places.append((begin, token.start()))
            begin = token.end()
    return [*places, (begin, stop)], stop, BadCall(CallError.UNTERMINATED, "the list of calls is never closed")


def split_again(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of a stretch that could not be read, cut wherever ``, name(`` seems to begin another call."""
    for comma in _NEXT_CALL.finditer(text, start, end):
        yield start, comma.start()
        start = comma.end()
    yield start, end


def read_call(source: str) -> tuple[str, Mapping[str, Any]]:
    """The name and arguments of one call written as Python; raises :class:`BadCall`.

    >>> read_call("mail.send(to='nina', copies=-2, tags=('a', 'b'))")
    ('mail.send', {'to': 'nina', 'copies': -2, 'tags': ['a', 'b']})
    """
    node = _expression(source.strip())
    if not isinstance(node, ast.Call):
        raise BadCall(CallError.NOT_A_LITERAL, f"{source.strip()[:30]!r} is not a call")
    name = _dotted(node.func)
    if node.args:
        raise BadCall(CallError.ARGUMENTS_NOT_AN_OBJECT, f"{name} is given an argument without its name")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise BadCall(CallError.NOT_A_LITERAL, f"{name} is given ** arguments")
        if keyword.arg in arguments:
            raise BadCall(CallError.DUPLICATE_KEY, f"the argument {keyword.arg[:40]!r} is given twice")
        arguments[keyword.arg] = _literal(keyword.value)
    check_characters(arguments)
    return name, arguments


def _expression(source: str) -> ast.expr:
    if len(source) > MAX_CALL_CHARACTERS:
        raise BadCall(CallError.NOT_A_LITERAL, f"a call of {len(source)} characters; {MAX_CALL_CHARACTERS} is the most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" and 1(2) make the compiler warn
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        message = error.msg or ""
        if "never closed" in message or "unterminated" in message or "unexpected EOF" in message:
            raise BadCall(CallError.UNTERMINATED, "the call stops before its closing quote or bracket") from None
        raise BadCall(CallError.NOT_A_LITERAL, f"not a Python call: {message[:60]}") from None
    except (ValueError, MemoryError, RecursionError, OverflowError):
        raise BadCall(CallError.NOT_A_LITERAL, "not a Python call that can be read") from None


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise BadCall(CallError.NO_NAME, "the call names no tool")
    return ".".join([node.id, *reversed(parts)])


def _literal(node: ast.expr) -> Any:
    """The JSON value of a literal; brackets were counted before, so this cannot recurse deeper than they nest."""
    match node:
        case ast.Constant(value=str() | bool() | None as value):
            return value
        case ast.Constant(value=int() | float() as value):
            return _finite(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -_finite(value)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return _dictionary(keys, values)
        case ast.Name(id=name) if name in _JSON_NAMES:
            return _JSON_NAMES[name]
    raise BadCall(CallError.NOT_A_LITERAL, f"{type(node).__name__} is not a literal value")


def _dictionary(keys: list[ast.expr | None], values: list[ast.expr]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in zip(keys, values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise BadCall(CallError.NOT_A_LITERAL, "a dictionary key is not text")
        if key.value in out:
            raise BadCall(CallError.DUPLICATE_KEY, f"the key {key.value[:40]!r} is given twice")
        out[key.value] = _literal(value)
    return out


def _finite(value: float) -> float:
    if isinstance(value, bool):
        raise BadCall(CallError.NOT_A_LITERAL, "a sign before true or false")
    if isinstance(value, int) and value.bit_length() > MAX_DIGITS * 10 // 3:
        raise BadCall(CallError.NOT_A_LITERAL, f"a whole number of more than {MAX_DIGITS} digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadCall(CallError.NOT_FINITE, "a number is too large")
    return value

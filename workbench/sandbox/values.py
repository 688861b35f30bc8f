"""Values as tagged JSON: what crosses the wall between a trusted process and a hostile one.

Only data crosses. What comes out is built here, of exact builtin types: no subclass, no object, no code, and nothing
that is costly to hold or to compare. ``pickle`` would execute what it reads, plain JSON would lose tuples, sets, bytes,
big integers and NaN; so JSON carries those as one-key objects such as ``{"tuple": [1, 2]}``.

>>> decode(encode([1, (2.5, None), {"a": {3}}, float("inf"), 2**80]))
[1, (2.5, None), {'a': {3}}, inf, 1208925819614629174706176]
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

VALUE_DEPTH = 64  # levels of containers in a value
TEXT_DEPTH = 3 * VALUE_DEPTH + 16  # levels of brackets in its JSON: a dictionary takes three
INT_DIGITS = 20  # longer integers travel as hexadecimal, which is read in linear time
EQUAL_HASHES = 64  # a set or dictionary with more members of one hash would take quadratic time to build

_TOKEN = re.compile(r'\\.|["\[\]{}]', re.S)


class NotData(ValueError):
    """Something that is not plain data, or a message that is not well formed."""


def encode(value: Any, room: int = VALUE_DEPTH) -> bytes:
    """``value`` as tagged JSON (ASCII). Subclasses are sent as the builtin they derive from.

    :raises NotData: for anything that is not plain data, and for more than ``room`` levels of containers.
    """
    return json.dumps(pack(value, room), separators=(",", ":"), allow_nan=False).encode("ascii")


def pack(value: Any, room: int) -> Any:
    """``value`` as what ``json.dumps`` can write; ``room`` is how many more levels are allowed."""
    if value is None or value is True or value is False:
        return value
    for kind, write in _SCALARS:
        if isinstance(value, kind):
            return write(value)
    for kind, gather in _CONTAINERS:
        if isinstance(value, kind):
            if room <= 0:
                raise NotData("a value nested too deeply")
            return gather(value, room - 1)
    raise NotData(f"a {type(value).__name__}, which is not plain data")


def _int(value: int) -> Any:
    number = int.__int__(value)
    return number if -(2**63) <= number < 2**63 else {"int": hex(number)}


def _float(value: float) -> Any:
    number = float.__float__(value)
    return number if math.isfinite(number) else {"float": repr(number)}


def _items(tag: str, members: Callable[[Any], Iterable[Any]]) -> Callable[[Any, int], Any]:
    return lambda value, room: {tag: [pack(v, room) for v in members(value)]}


def _pairs(value: dict[Any, Any], room: int) -> Any:
    return {"dict": [[pack(k, room), pack(v, room)] for k, v in dict.items(value)]}


# The members of a value are read by the builtin type's own methods, not by those of a subclass.
_SCALARS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, _int),
    (float, _float),
    (str, str.__str__),
    (bytes, lambda value: {"bytes": bytes.hex(value)}),
    (bytearray, lambda value: {"bytes": bytearray.hex(value)}),
    (complex, lambda value: {"complex": [_float(value.real), _float(value.imag)]}),
)
_CONTAINERS: tuple[tuple[type, Callable[[Any, int], Any]], ...] = (
    (list, lambda value, room: [pack(v, room) for v in list.__iter__(value)]),
    (tuple, _items("tuple", tuple.__iter__)),
    (dict, _pairs),
    (set, _items("set", set.__iter__)),
    (frozenset, _items("frozenset", frozenset.__iter__)),
)


def decode(data: bytes) -> Any:
    """The value that ``data`` says, of exact builtin types. ``data`` may be anything an attacker chose.

    :raises NotData: for whatever :func:`encode` could not have written; nothing else is ever raised.
    """
    try:
        text = data.decode("ascii")
        if _depth(text) > TEXT_DEPTH:
            raise NotData(f"a message nested deeper than {TEXT_DEPTH} brackets")
        return json.loads(
            text, object_hook=_untag, parse_int=_read_int, parse_float=_read_float, parse_constant=_refuse
        )
    except NotData:
        raise
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise NotData(f"a malformed message ({type(error).__name__})") from None


def _depth(text: str) -> int:
    """The deepest nesting of brackets outside strings, in one linear pass; cheap when there are few brackets."""
    if text.count("[") + text.count("{") <= TEXT_DEPTH:
        return 0
    depth = deepest = 0
    quoted = False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == '"':
            quoted = not quoted
        elif not quoted and token in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > TEXT_DEPTH:
                break
        elif not quoted and token in "]}":
            depth -= 1
    return deepest


def _refuse(text: str) -> Any:
    raise NotData(f"{text[:40]!r} in a message")


def _read_int(text: str) -> int:
    return int(text) if len(text) <= INT_DIGITS else _refuse(text)


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _untag(tagged: dict[str, Any]) -> Any:
    if len(tagged) != 1:
        raise NotData(f"an object with {len(tagged)} keys in a message")
    (tag, payload), *_ = tagged.items()
    wanted, read = _READERS.get(tag, (None, None))
    if read is None or type(payload) is not wanted:
        raise NotData(f"the tag {tag[:40]!r} in a message")
    return read(payload)


def _hex_int(text: str) -> int:
    return int(text, 16) if re.fullmatch(r"-?0x[0-9a-f]+", text) else _refuse(text)


def _special(text: str) -> float:
    return float(text) if text in ("nan", "inf", "-inf") else _refuse(text)


def _complex(parts: list[Any]) -> complex:
    if len(parts) != 2 or any(type(part) is not float for part in parts):
        raise NotData("a complex number that is not two floats")
    return complex(*parts)


def _collected(kind: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda members: kind(_without_collisions(members, members))


def _dict(pairs: list[Any]) -> dict[Any, Any]:
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise NotData("a dictionary that is not made of pairs")
    return dict(_without_collisions(pairs, [pair[0] for pair in pairs]))


def _without_collisions(members: list[Any], keys: list[Any]) -> list[Any]:
    """``members``, refused when many different ``keys`` share one hash (crafted to make us spend quadratic time)."""
    if len(keys) > EQUAL_HASHES and max(Counter(map(hash, keys)).values()) > EQUAL_HASHES:
        raise NotData("keys chosen to collide")
    return members


_READERS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "int": (str, _hex_int),
    "float": (str, _special),
    "bytes": (str, bytes.fromhex),
    "complex": (list, _complex),
    "tuple": (list, tuple),
    "set": (list, _collected(set)),
    "frozenset": (list, _collected(frozenset)),
    "dict": (list, _dict),
}

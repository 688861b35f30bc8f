"""Whether a call is one of the right ones: the comparison of BFCL's AST checker, written anew.

What counts as equal, for one argument with its declared type and its accepted values:

- The type must be the declared one. A whole number may stand for a float. A float is never an integer, not even
  2.0: the function behind the tool would be given a float. true and false are not numbers.
- Text of BFCL tasks is compared without case, without spaces and without ``, . / - _ * ^``, a single quote counting as
  a double one: "April 1, 2024" equals "april 1 2024". Text of all other tasks is compared as it is (where
  "12*5" is not "12/5", and "a_b.txt" is not "ab.txt").
- Lists in order, objects without order, every key and no other. BFCL's leniency for text reaches one level down.
- When the accepted values are not of the declared type ("dontcare" for an integer), they are compared as they are.
- Every argument must be among the expected ones; an optional one may be left out.
- Several calls are compared without order, each expected call with at most one call made, in the best possible way.

Where this differs from bfcl-eval 2026.3.23 on purpose. ``tests/rewards/test_bfcl_agreement.py`` checks that these
are all the differences on thousands of right and wrong answers:

- *whole numbers in a list of floats*: ``[1, 3]`` where ``[1.0, 3.0]`` is right is refused there, accepted here. JSON
  writers drop the ".0", and the checker itself accepts 1 for 1.0 outside of lists.
- *true for 1 inside a list or an object*: accepted there, because Python holds True == 1, refused here.
- *the empty text for a key that may be left out of an object*: accepted there, refused here.
- *best matching*: for several calls it takes the first call that fits; here no right answer can be lost by order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from workbench.types import ExpectedCall

_DROPPED = str.maketrans("'", '"', " ,./-_*^")
_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def plain_text(text: str) -> str:
    """Text as BFCL compares it.

    >>> plain_text("April 1, 2024") == plain_text("april 1 2024")
    True
    """
    return text.translate(_DROPPED).lower()


def comparable(value: Any, lenient_levels: int) -> Any:
    """A hashable stand-in for a JSON value: equal for equal values, and true never equal to 1.

    Text at the first ``lenient_levels`` levels is compared as :func:`plain_text`.
    """
    kind = type(value)
    if kind is str:
        return plain_text(value) if lenient_levels > 0 else value
    if kind is int or kind is float:
        return value
    if kind is bool or value is None:
        return ("constant", value)
    if kind is list or kind is tuple:
        return ("list", tuple(comparable(item, lenient_levels - 1) for item in value))
    if isinstance(value, Mapping):
        return ("object", frozenset((key, comparable(item, lenient_levels - 1)) for key, item in value.items()))
    return value


class ArgumentRule:
    """Which values of one argument are right."""

    def __init__(self, accepted: Sequence[Any], schema: Mapping[str, Any], lenient: bool) -> None:
        declared = schema.get("type", "string")  # BFCL reads "any" as text
        self.declared = _TYPES.get(declared) if isinstance(declared, str) else None
        given = next((type(value) for value in accepted if value != ""), None)
        self.types = {self.declared, given, float} if self.declared is None else {self.declared, given}
        if self.declared is float or (self.declared is None and given in (int, float)):
            self.types |= {int}
        as_declared = given in (None, self.declared)
        items = schema.get("items")
        item_type = items.get("type") if isinstance(items, Mapping) else None
        self.levels = (3 if item_type == "object" else 2) if lenient and as_declared else 0
        self.integers_only = self.declared is list and item_type == "integer"
        self.accepted = frozenset(comparable(value, self.levels) for value in accepted)

    def accepts(self, value: Any) -> bool:
        """Whether ``value`` is one of the right ones."""
        if type(value) not in self.types:
            return False
        if self.integers_only and isinstance(value, list) and any(type(item) is float for item in value):
            return False
        return comparable(value, self.levels) in self.accepted


class CallRule:
    """Which calls are one expected call: ``lenient`` compares text as BFCL does."""

    def __init__(self, expected: ExpectedCall, parameters: Mapping[str, Any], lenient: bool) -> None:
        properties = parameters.get("properties") or {}
        self.name, self.expected = expected.name, expected
        self.rules = {
            argument: ArgumentRule(accepted, properties.get(argument, {}), lenient)
            for argument, accepted in expected.arguments.items()
            if argument in properties or not properties
        }
        needed = [argument for argument in expected.arguments if argument not in expected.optional]
        self.needed = tuple(dict.fromkeys([*(parameters.get("required") or ()), *needed]))

    def accepts(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a call is this one."""
        if name != self.name:
            return False
        rules = self.rules
        if any(argument not in arguments for argument in self.needed):
            return False
        return all(argument in rules and rules[argument].accepts(value) for argument, value in arguments.items())

    def wrong_value(self, arguments: Mapping[str, Any], ignore: Collection[str] = ()) -> str | None:
        """A clause on the first argument whose value nobody asked for; None when there is none."""
        for argument, value in arguments.items():
            if argument in ignore:
                continue
            if argument not in self.rules:
                return f"{argument} was not asked for"
            if not self.rules[argument].accepts(value):
                return f"{argument} is {show(value)} where {self._wanted(argument)} is right"
        return None

    def mismatch(self, arguments: Mapping[str, Any]) -> str:
        """A clause on the first argument that keeps a call from being this one."""
        missing = next((argument for argument in self.needed if argument not in arguments), None)
        if missing is not None:
            return f"{missing} is missing"
        return self.wrong_value(arguments) or "it fits"

    def _wanted(self, argument: str) -> str:
        accepted = self.expected.arguments[argument]
        return show(accepted[0]) if accepted else "leaving it out"


def show(value: Any, width: int = 40) -> str:
    """A JSON value for a sentence, cut to ``width`` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[: width - 1] + "…"


def best_matching(wanted: int, made: int, fits: Callable[[int, int], bool]) -> dict[int, int]:
    """The largest pairing of expected calls with calls made (Kuhn's augmenting paths): expected -> made.

    >>> best_matching(2, 2, lambda i, j: (i, j) in {(0, 0), (0, 1), (1, 0)})
    {0: 1, 1: 0}
    """
    candidates = [[j for j in range(made) if fits(i, j)] for i in range(wanted)]
    owner: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in candidates[i]:
            if j not in tried:
                tried.add(j)
                if j not in owner or place(owner[j], tried):
                    owner[j] = i
                    return True
        return False

    for i in range(wanted):
        place(i, set())
    return dict(sorted((i, j) for j, i in owner.items()))

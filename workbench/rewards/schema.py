"""Whether arguments fit a tool's JSON Schema, argument by argument, fast enough for every completion of a run.

Draft 2020-12 through ``jsonschema``, with one change: 2.0 is a number and not an integer, as in
:mod:`workbench.rewards.compare`. Validators are built once a schema and kept; arguments with nothing but a type,
choices and simple bounds, which are nearly all, are let through without them. A schema never makes us fetch another
one: a reference that leaves it is refused as an error of the task.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from workbench.errors import InputError
from workbench.rewards.compare import show
from workbench.types import Split, Task, Tool

_STRICT = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
_OUTER = frozenset({"type", "properties", "required", "additionalProperties", "description", "title", "default"})
_PLAIN: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_NUMERIC: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
_TEXTUAL: Mapping[str, Callable[[Any, Any], bool]] = {
    "minLength": lambda value, bound: len(value) >= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, pattern: re.search(pattern, value) is not None,
}
_BOUNDS = {"string": _TEXTUAL, "integer": _NUMERIC, "number": _NUMERIC, "boolean": {}}
_REMARKS = frozenset({"type", "enum", "description", "default", "title", "examples", "format"})
_KNOWN_WORDS = _REMARKS.union(_NUMERIC, _TEXTUAL)
Check = Callable[[Any], str | None]


class ToolSchema:
    """The schema of one tool's arguments, ready to check calls against."""

    def __init__(self, tool: Tool) -> None:
        parameters = dict(tool.parameters)
        try:
            _STRICT.check_schema(parameters)
        except SchemaError as error:
            raise InputError(
                f"tools: the schema of {tool.name!r} is not a JSON Schema: {error.message[:120]}."
            ) from None
        self.tool = tool
        self.properties: Mapping[str, Any] = parameters.get("properties") or {}
        self.required: tuple[str, ...] = tuple(parameters.get("required") or ())
        self.open = parameters.get("additionalProperties") not in (None, False)
        simple = _OUTER.issuperset(parameters) and not self.open and "$ref" not in json.dumps(parameters)
        self.whole = None if simple else validator(parameters)
        self._checks: dict[str, Check] = {}

    def faults(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """What is wrong with each argument at fault, as a clause: missing, unknown, or not of its type."""
        found = {name: f"{name} is missing" for name in self.required if name not in arguments}
        for name, value in arguments.items():
            if name not in self.properties:
                if not self.open:
                    found[name] = f"{self.tool.name} takes no {name!r}"
            elif self.whole is None:
                fault = self._check(name)(value)
                if fault:
                    found[name] = f"{name} {fault}"
        return found if self.whole is None else self._whole_faults(self.whole, arguments, found)

    def _whole_faults(self, whole: Any, arguments: Mapping[str, Any], found: dict[str, str]) -> dict[str, str]:
        """Adds what a schema with rules across arguments finds; such a fault goes under the name ""."""
        try:
            errors = list(whole.iter_errors(dict(arguments)))
        except Unresolvable as lost:
            raise InputError(f"tools: the schema of {self.tool.name!r} refers to {lost.ref!r}, not in it.") from None
        for error in errors:
            name = str(error.absolute_path[0]) if error.absolute_path else ""
            if name or not found:
                found.setdefault(name, f"{name or 'the call'}: {error.message[:100]}")
        return found

    def share_right(self, arguments: Mapping[str, Any], faults: Mapping[str, str]) -> float:
        """The share, 0 to 1, of the arguments that are needed or given which are right."""
        names = {*self.required, *arguments, *faults}
        return 1.0 - len(faults) / len(names) if names else 1.0

    def _check(self, name: str) -> Check:
        if name not in self._checks:
            self._checks[name] = argument_check(self.properties[name])
        return self._checks[name]


def argument_check(schema: Any) -> Check:
    """A function from a value to a clause on what is wrong with it, or None.

    What the shortcut lets through is right; what it does not is asked of ``jsonschema``, which also words the fault.

    >>> argument_check({"type": "integer"})(2.0)
    "is 2.0: 2.0 is not of type 'integer'"
    """
    fits, strict = _shortcut(schema), validator(schema)

    def check(value: Any) -> str | None:
        if fits is not None and fits(value):
            return None
        error = next(strict.iter_errors(value), None)
        return None if error is None else f"is {show(value)}: {error.message[:100]}"

    return check


def _shortcut(schema: Any) -> Callable[[Any], bool] | None:
    """A quick test that is true only of values which fit; None when the schema says more than it knows of."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(kind, str) or kind not in _PLAIN or not _KNOWN_WORDS.issuperset(schema):
        return None
    types, choices = _PLAIN[kind], schema.get("enum")
    bounds = [(test, schema[word]) for word, test in _BOUNDS[kind].items() if word in schema]

    def fits(value: Any) -> bool:
        if type(value) not in types or (choices is not None and value not in choices):
            return False
        return all(test(value, bound) for test, bound in bounds)

    return fits


def validator(schema: Any) -> Any:
    """A strict Draft 2020-12 validator that reaches for nothing outside of ``schema``."""
    return _STRICT(schema, registry=Registry())


@lru_cache(maxsize=8192)
def _tool_schema(tool_json: str) -> ToolSchema:
    (tool,) = Task("", "", Split.TRAIN, (), f"[{tool_json}]").tools
    return ToolSchema(tool)


@lru_cache(maxsize=2048)
def _schemas(tools_json: str) -> dict[str, ToolSchema]:
    made = [_tool_schema(json.dumps(row, ensure_ascii=False)) for row in json.loads(tools_json)]
    return {schema.tool.name: schema for schema in made}


def tool_schemas(task: Task) -> Mapping[str, ToolSchema]:
    """The task's tools by name, each ready to check calls; built once for each distinct tool."""
    return _schemas(task.tools_json)

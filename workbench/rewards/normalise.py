"""One normaliser for every notation: what a decoded value means as a call, or why it is refused.

Every shape is treated the same at rollout, in the reward and in training, because all three come here:

======================================  =======================  ==========================================
shape                                   hermes, mistral          llama3, json (bare or fenced)
======================================  =======================  ==========================================
``{"name": n, "arguments": {…}}``       accepted                 accepted
``{"name": n, "parameters": {…}}``      NO_ARGUMENTS             accepted (it is Llama-3's own key)
both keys                               DUPLICATE_KEY            DUPLICATE_KEY
``{"type": "function", …the same}``     accepted                 accepted
``{"function": {"name": …, …}}``        accepted                 accepted
other keys beside them                  ignored, and said so     ignored, and said so
neither key                             NO_ARGUMENTS             NO_ARGUMENTS
``"arguments": ""``, null, ``[1, 2]``   ARGUMENTS_NOT_AN_OBJECT  ARGUMENTS_NOT_AN_OBJECT
``"arguments": "{\\"a\\": 3}"``           ARGUMENTS_NOT_AN_OBJECT  ARGUMENTS_NOT_AN_OBJECT
name absent, empty or not a string      NO_NAME                  NO_NAME
a list, a string, a number              NOT_AN_OBJECT            NOT_AN_OBJECT
======================================  =======================  ==========================================

A call is never run with ``{}`` in place of arguments that could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.rewards.strict_json import BadCall
from workbench.types import CallError

PARAMETERS_ALLOWED = frozenset({"llama3", "json"})  # the notations whose own key is "parameters"
_EXPECTED_KEYS = frozenset({"name", "arguments", "parameters", "type", "id", "function"})


def normalise(value: Any, notation: str) -> tuple[str, Mapping[str, Any], str]:
    """The name, the arguments and a remark (usually empty) of one decoded call; raises :class:`BadCall`.

    >>> normalise({"name": "f", "parameters": {"a": 3}}, "llama3")
    ('f', {'a': 3}, '')
    """
    if not isinstance(value, dict):
        raise BadCall(CallError.NOT_AN_OBJECT, f"a {_kind(value)} stands where a call should be")
    ignored = [key for key in value if key not in _EXPECTED_KEYS]
    inner = value.get("function")
    if isinstance(inner, dict) and "name" not in value:
        value = inner
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        raise BadCall(CallError.NO_NAME, "the call names no tool")
    arguments = _arguments(value, notation)
    remark = f"ignored the key {ignored[0][:40]!r}" if ignored else ""
    return name, arguments, remark


def name_of(value: Any) -> str | None:
    """The tool that a refused call seems to name, for a person's eyes; None when there is none."""
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) and name.strip() else None


def _arguments(value: Mapping[str, Any], notation: str) -> Mapping[str, Any]:
    has_arguments, has_parameters = "arguments" in value, "parameters" in value
    if has_arguments and has_parameters:
        raise BadCall(CallError.DUPLICATE_KEY, "the arguments are given twice, as 'arguments' and as 'parameters'")
    if has_parameters and notation not in PARAMETERS_ALLOWED:
        raise BadCall(
            CallError.NO_ARGUMENTS, "the arguments are under 'parameters', where this notation says 'arguments'"
        )
    if not has_arguments and not has_parameters:
        raise BadCall(CallError.NO_ARGUMENTS, "the call has no 'arguments'")
    found = value["arguments"] if has_arguments else value["parameters"]
    if not isinstance(found, dict):
        raise BadCall(CallError.ARGUMENTS_NOT_AN_OBJECT, f"the arguments are a {_kind(found)}, not an object")
    return found


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text holding JSON" if value.lstrip().startswith(("{", "[")) else "text"
    if isinstance(value, bool) or value is None:
        return "true, false or null"
    return "list" if isinstance(value, list) else "number"

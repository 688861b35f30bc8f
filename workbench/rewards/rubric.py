"""What a task asks for, made ready for scoring once; and one completion laid beside it."""

from __future__ import annotations

import weakref
from collections import Counter
from functools import cached_property

from workbench.rewards.compare import CallRule, best_matching, comparable
from workbench.rewards.parse import ParsedCompletion
from workbench.rewards.schema import ToolSchema, tool_schemas
from workbench.types import Task, ToolCall


class Rubric:
    """The rules of one task: its tools by name, and a rule for each expected call."""

    def __init__(self, task: Task) -> None:
        self.tools = tool_schemas(task)
        lenient = task.source.startswith("bfcl")  # text as BFCL's checker compares it; exactly everywhere else
        self.rules = tuple(
            CallRule(call, self.tools[call.name].tool.parameters if call.name in self.tools else {}, lenient)
            for call in task.expected
        )
        self.wanted = Counter(rule.name for rule in self.rules)


_KNOWN: dict[int, tuple[weakref.ref[Task], Rubric]] = {}


def rubric(task: Task) -> Rubric:
    """The task's rubric, built once for as long as the task lives."""
    key = id(task)
    known = _KNOWN.get(key)
    if known is not None and known[0]() is task:
        return known[1]
    made = Rubric(task)
    _KNOWN[key] = (weakref.ref(task, lambda _: _KNOWN.pop(key, None)), made)
    return made


class Attempt:
    """One parsed completion beside its task's rubric: what was made of what was wanted.

    ``made`` counts every call attempted, readable or not; ``known`` are the readable ones that name an offered tool.
    """

    def __init__(self, rules: Rubric, parsed: ParsedCompletion) -> None:
        self.rubric, self.parsed = rules, parsed
        self.made = parsed.calls
        self.known = [call for call in parsed.calls if call.error is None and call.name in rules.tools]
        self.invented = [call for call in parsed.calls if call.error is None and call.name not in rules.tools]

    @property
    def says_something(self) -> bool:
        """Whether there is at least one letter outside of reasoning and calls."""
        return any(character.isalpha() for character in self.parsed.content)

    @cached_property
    def matched(self) -> dict[int, int]:
        """Expected call -> the known call that is it."""
        rules, known = self.rubric.rules, self.known

        def fits(i: int, j: int) -> bool:
            return rules[i].accepts(known[j].name or "", known[j].arguments or {})

        return best_matching(len(rules), len(known), fits)

    @cached_property
    def useful(self) -> list[ToolCall]:
        """The known calls that serve the request: right ones, then the best tries at what is still wanted by name."""
        right = set(self.matched.values())
        if len(right) == len(self.known):
            return self.known
        left = self.rubric.wanted - Counter(self.known[j].name or "" for j in right)
        seen = {self.identity(self.known[j]) for j in right}
        chosen = set(right)
        tries = [j for j in range(len(self.known)) if j not in right and left[self.known[j].name or ""] > 0]
        for j in sorted(tries, key=lambda j: -self.share_right(self.known[j])):
            name, identity = self.known[j].name or "", self.identity(self.known[j])
            if left[name] > 0 and identity not in seen:
                left[name] -= 1
                seen.add(identity)
                chosen.add(j)
        return [self.known[j] for j in sorted(chosen)]

    def schema(self, call: ToolCall) -> ToolSchema:
        """The schema of a known call's tool."""
        return self.rubric.tools[call.name or ""]

    def share_right(self, call: ToolCall) -> float:
        """The share of a known call's arguments that fit its tool's schema."""
        schema, arguments = self.schema(call), call.arguments or {}
        return schema.share_right(arguments, schema.faults(arguments))

    @staticmethod
    def identity(call: ToolCall) -> object:
        """Equal for two calls that would do the same."""
        return (call.name, comparable(dict(call.arguments or {}), 0))

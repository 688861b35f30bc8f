"""What runs inside: it loads one candidate and turns each request into the JSON of one answer.

Nothing here is trusted once the candidate has run: it may rewrite all of this. It has no secret to find and no verdict
to forge, for it is given inputs only, and whatever it answers is read as data by :mod:`workbench.sandbox.values`.
It imports nothing but the standard library and ``values``, so that it can be sent whole into another interpreter.
"""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable
from typing import Any

from workbench.sandbox.values import VALUE_DEPTH, NotData, encode

FILENAME = "<candidate>"


class Runner:
    """Answers requests ``[id, verb, ...]`` with ``[id, kind, payload]``, one at a time."""

    def __init__(self) -> None:
        self.module: dict[str, Any] = {}
        self.ballast: bytearray | None = bytearray(1 << 20)  # let go when memory runs out, to be able to say so

    def answer(self, number: str, verb: str, *payload: Any) -> bytes:
        """The JSON of one answer; whatever the candidate raises becomes one, ``SystemExit`` included."""
        try:
            verbs: dict[str, Callable[..., Any]] = {"load": self.load, "call": self.call, "run": self.run}
            result = verbs[verb](*payload)
            return _encode([number, "value", result])
        except MemoryError:
            self.ballast = None
            return _encode([number, "memory", None])
        except NotData as error:
            return _encode([number, "not_data", str(error)])
        except BaseException as error:
            return _encode([number, "raised", [type(error).__name__, _words(error), _line(error)]])

    def load(self, code: str, name: str = "candidate") -> None:
        """Execute ``code`` as a module of its own."""
        module = types.ModuleType(name)
        sys.modules[name] = module
        self.module = module.__dict__
        exec(compile(code, FILENAME, "exec", dont_inherit=True), self.module)

    def call(self, function: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function that the candidate defined; ``Class.method`` works too."""
        name, *attributes = function.split(".")
        if name not in self.module:
            raise NameError(f"the code defines no {name!r}")
        target = self.module[name]
        for attribute in attributes:
            target = getattr(target, attribute)
        return target(*args, **kwargs)

    def run(self, code: str, stdin: str) -> None:
        """Execute ``code`` as a script; leaving with status 0 is a normal end."""
        sys.stdin = io.StringIO(stdin)
        try:
            self.load(code, "__main__")
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                raise


def flush() -> None:
    """Push out what was printed, whatever became of the streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except BaseException:
            continue  # the candidate closed or replaced it


def _encode(message: list[Any]) -> bytes:
    return encode(message, VALUE_DEPTH + 3)


def _words(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except BaseException:
        return "(its text cannot be read)"


def _line(error: BaseException) -> int | None:
    """The last line of the candidate's own code that the error came through."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line if type(line) is int else None

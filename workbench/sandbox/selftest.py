"""The self-test: ten canary attacks, an endless loop, a memory bomb and one honest program decide what may be used.

A tier is used only if every canary is denied and the honest program is right. When none passes there is no sandbox, and
code is not run at all: there is no weaker tier to fall back to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from workbench.sandbox.outcome import Limits, Outcome, Reason
from workbench.sandbox.remote import InfrastructureError


class Tier(StrEnum):
    """How code is held."""

    FORK_SERVER = "fork_server"  # a process of its own behind seccomp, Landlock and limits: milliseconds a run
    WASM = "wasm"  # CPython compiled to WebAssembly: some 60 ms a run, on any system
    NONE = "none"  # not at all: code is not run, and what depends on running it is unscored


class Child(Protocol):
    """One hostile child as an engine hands it out."""

    @property
    def alive(self) -> bool:
        """It can be asked again."""

    def ask(self, verb: str, *payload: Any, seconds: float) -> Outcome:
        """One request and its answer."""

    def kill(self) -> None:
        """End it from any thread."""

    def close(self) -> None:
        """End it and give back what it held."""


class Engine(Protocol):
    """What makes children: the fork server, or WebAssembly."""

    tier: Tier
    layers: Mapping[str, str]

    def start(self) -> None:
        """Get ready, so that ``layers`` is known; raises InfrastructureError when that fails."""

    def open(self, limits: Limits) -> Child:
        """A fresh child; raises InfrastructureError when there is none."""

    def close(self) -> None:
        """End everything it started."""

    def abandon(self) -> None:
        """Forget everything, in a process forked from the one that started it."""


@dataclass(frozen=True, slots=True)
class Canary:
    """One attack of the self-test, and what came of it."""

    name: str
    denied: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Status:
    """Whether code can be run here, behind what, and if not, why and what would mend it."""

    tier: Tier
    layers: Mapping[str, str]
    canaries: tuple[Canary, ...] = ()
    why: str = ""
    remedy: str = ""

    @property
    def available(self) -> bool:
        """Code can be run."""
        return self.tier is not Tier.NONE


# Each function tries something forbidden and says whether it got through.
ATTACKS = """
import os

def read_a_file():
    return bool(open("/etc/passwd").read())

def write_a_file():
    return open("/tmp/workbench-canary", "w").write("x") == 1

def list_a_folder():
    return bool(os.listdir("/etc"))

def open_a_socket():
    import socket
    return socket.socket(socket.AF_UNIX).fileno() >= 0

def start_a_process():
    child = os.fork()
    if child == 0:
        os._exit(0)
    return True

def replace_the_process():
    os.execv("/bin/true", ["true"])

def start_a_thread():
    import threading
    threading.Thread(target=bool).start()
    return True

def signal_the_parent():
    os.kill(os.getppid(), 0)
    return True

def change_a_limit():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (2, 2))
    return True

def make_a_raw_system_call():
    import ctypes
    return ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0
"""
CANARIES = tuple(line[4:-3] for line in ATTACKS.splitlines() if line.startswith("def "))
BOMB = """
def bomb():
    hog = []
    while True:
        hog.append(bytearray(100_000_000))
"""
HONEST = """
import collections, math, re
def honest(words):
    print("counting")
    counted = collections.Counter(re.findall(r"[a-z]+", words))
    return sorted(counted.items()), math.comb(50, 25), {1, 2} | {3}
"""
HONEST_ANSWER = ([("cat", 2), ("dog", 1)], 126410606437752, {1, 2, 3})


def examine(engine: Engine) -> tuple[Canary, ...]:
    """Run the self-test on ``engine``. Every attack must be ``denied`` for the engine to be used.

    :raises InfrastructureError: when the engine cannot even make a child.
    """
    limits = Limits(seconds=20.0)
    found = [_attack(engine, limits, name) for name in CANARIES]
    loop = _once(engine, limits, "def loop():\n    while True: pass", "loop", seconds=0.1)
    bomb = _once(engine, limits, BOMB, "bomb", seconds=20.0)
    honest = _once(engine, limits, HONEST, "honest", "cat dog, cat!", seconds=20.0)
    right = honest.value == HONEST_ANSWER and honest.stdout == "counting\n"
    return (
        *found,
        Canary("loop_for_ever", loop.reason is Reason.TIMEOUT, f"{loop.reason}: {loop.detail}"),
        Canary("use_all_memory", bomb.reason is Reason.MEMORY, f"{bomb.reason}: {bomb.detail}"),
        Canary("honest_program_is_right", right, f"{honest.reason}: {honest.detail}"),
    )


def _attack(engine: Engine, limits: Limits, name: str) -> Canary:
    outcome = _once(engine, limits, ATTACKS, name, seconds=20.0)
    denied = outcome.reason is Reason.EXCEPTION or (outcome.ok and outcome.value is False)
    return Canary(name, denied, outcome.detail or f"it got {outcome.value!r}")


def _once(engine: Engine, limits: Limits, code: str, function: str, *args: Any, seconds: float) -> Outcome:
    child = engine.open(limits)
    try:
        loaded = child.ask("load", code, seconds=limits.seconds)
        outcome = child.ask("call", function, list(args), {}, seconds=seconds) if loaded.ok else loaded
    finally:
        child.close()
    if outcome.reason is Reason.INFRASTRUCTURE:
        raise InfrastructureError(outcome.detail)
    return outcome

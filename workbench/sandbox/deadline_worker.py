"""The other side of :mod:`workbench.sandbox.deadline`: a process that runs named functions, one at a time."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import time
from typing import Any

from workbench.sandbox import channel
from workbench.sandbox.outcome import Reason
from workbench.sandbox.values import NotData, decode


def work() -> None:
    """The worker's own loop: a name, then arguments; an answer each; until the other side closes."""
    descriptor, memory_mb = map(int, sys.argv[1].split())
    sys.argv[1:] = []
    _hold_memory(memory_mb)
    functions: dict[str, Any] = {}
    while (body := channel.read_frame(descriptor)) is not None:
        name = decode(body)
        try:
            if name not in functions:
                functions[name] = _find(name)
            channel.write_all(descriptor, channel.frame(True))
        except BaseException as error:
            channel.write_all(descriptor, channel.frame(f"{type(error).__name__}: {error}"))
            continue
        body = channel.read_frame(descriptor)
        if body is not None:
            channel.write_all(descriptor, _answer(functions[name], *decode(body)))


def _answer(function: Any, seconds: float, args: list[Any], kwargs: dict[str, Any]) -> bytes:
    begun = time.process_time()
    _hold_cpu(seconds)
    try:
        value = function(*args, **kwargs)
        return channel.frame([Reason.RETURNED.value, value, time.process_time() - begun])
    except NotData as error:
        reason, words = Reason.NOT_DATA, f"it returned {error}"
    except MemoryError:
        reason, words = Reason.MEMORY, "it needs more memory than it may have"
    except BaseException as error:
        reason, words = Reason.EXCEPTION, f"{type(error).__name__}: {error}"
    return channel.frame([reason.value, words, time.process_time() - begun])


def _find(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _hold_memory(memory_mb: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, resource.RLIM_INFINITY))


def _hold_cpu(seconds: float) -> None:
    """Should whoever asked be gone before the deadline, the kernel ends a worker that still computes."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit = int(time.process_time() + seconds + 5)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)

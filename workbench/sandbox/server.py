"""The fork server: one quiet process with every module loaded, which forks a child for each candidate.

It never sees a candidate's code, inputs or answers. A request brings four descriptors and some limits; three of the
descriptors become the child's channel and captured output, the fourth is the child's *string*: one byte or the end of
it kills the child, and how the child ended is reported on it. So a child lives no longer than whoever asked for it, and
is killed by its own parent before it is reaped, when its number cannot mean another process yet.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

from workbench.sandbox.child import become_child
from workbench.sandbox.preloaded import preload
from workbench.sandbox.walls import CONTROL, ChildLimits, prepare_seccomp, shut_child, shut_server

HELLO_BYTES = 1 << 16
OOM_PREFERENCE = "500"  # when the machine runs out of memory, let it be us


@dataclass
class _Forked:
    string: socket.socket
    deadline: float  # monotonic; a backstop, far behind the asker's own


class Server:
    """The loop: fork on request, kill when a string is pulled or a backstop passes, report who ended and how."""

    def __init__(self, control: socket.socket, options: dict[str, Any]) -> None:
        self.control = control
        self.children: dict[int, _Forked] = {}
        self.asker = os.getppid()
        _prefer_for_oom()
        preload(tuple(options["modules"]))
        self.seccomp = prepare_seccomp()
        self.landlock = bool(options["landlock"])
        self.base = _address_space()
        self.wake, wake_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        layers = {"seccomp": f"{len(self.seccomp.program) // 8} instructions, unlisted calls fail"}
        layers |= shut_server(options["user"], self.landlock)
        self.control.send(json.dumps({"layers": layers, "pid": os.getpid()}).encode())
        gc.collect()
        gc.freeze()

    def serve(self) -> None:
        """Until the asker is gone; then every child goes too."""
        while os.getppid() == self.asker:
            poller = select.poll()
            strings = {child.string.fileno(): pid for pid, child in self.children.items()}
            for descriptor in (self.control.fileno(), self.wake, *strings):
                poller.register(descriptor, select.POLLIN)
            for descriptor, _ in poller.poll(self._patience()):
                if descriptor in strings:
                    self._kill(strings[descriptor])
                elif descriptor == self.wake:
                    _drain(self.wake)
                elif not self._spawn():
                    return
            self._reap()

    def close(self) -> None:
        """Kill what is left."""
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)

    def _patience(self) -> float:
        """Milliseconds until the next backstop; at most two seconds, to notice that the asker is gone."""
        now = time.monotonic()
        return max(0.0, min([2.0, *(child.deadline - now for child in self.children.values())])) * 1000

    def _spawn(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self.control, HELLO_BYTES, 4)
        if not message:
            return False
        wanted = json.loads(message)
        string = socket.socket(fileno=descriptors[3])
        limits = ChildLimits(self.base + wanted["memory"], wanted["cpu"])
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _tell(string, {"failed": f"fork: {error.strerror}"})
            pid = -1
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become_child(descriptors[:3], lambda: shut_child(limits, self.seccomp, server, self.landlock))
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        if pid > 0:
            self.children[pid] = _Forked(string, time.monotonic() + wanted["wall"])
            _tell(string, {"pid": pid})
        return True

    def _kill(self, pid: int) -> None:
        if pid in self.children:
            os.kill(pid, signal.SIGKILL)
            self._report(*os.wait4(pid, 0))

    def _reap(self) -> None:
        now = time.monotonic()
        for pid in [pid for pid, child in self.children.items() if child.deadline <= now]:
            self._kill(pid)
        while self.children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            self._report(pid, status, usage)

    def _report(self, pid: int, status: int, usage: Any) -> None:
        string = self.children.pop(pid).string
        code = os.waitstatus_to_exitcode(status)
        _tell(string, {"ended": code, "cpu": usage.ru_utime + usage.ru_stime, "kb": usage.ru_maxrss})
        string.close()


def _tell(string: socket.socket, news: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # perhaps nobody is listening any more
        string.send(json.dumps(news).encode() + b"\n", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def _address_space() -> int:
    """Bytes of address space this process has now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _prefer_for_oom() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(OOM_PREFERENCE)
    except OSError:
        pass  # a preference only


def main() -> None:
    """Entry point of the server's process: ``argv`` is the control descriptor and the options as JSON."""
    descriptor, options = int(sys.argv[1]), json.loads(sys.argv[2])
    if descriptor != CONTROL:  # a child's descriptors must not collide with those it is given
        os.dup2(descriptor, CONTROL)
        os.close(descriptor)
    server = Server(socket.socket(fileno=CONTROL), options)
    os.dup2(1, 2)  # from here on nobody reads the errors; both are /dev/null
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        server.serve()
    finally:
        server.close()

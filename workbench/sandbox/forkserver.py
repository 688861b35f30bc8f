"""The trusted handle of the fork server's process: start it, ask it for children, notice when it is gone."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from workbench.sandbox import channel
from workbench.sandbox.outcome import Limits
from workbench.sandbox.remote import InfrastructureError, RemoteChild, ServerGone
from workbench.sandbox.selftest import Tier

HELLO_SECONDS = 60.0  # importing some eighty modules, on a busy machine
BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[3]); from workbench.sandbox.server import main; main()"


class ForkServer:
    """A process of its own that forks children on request; restarted when it is found dead.

    :param modules: further modules that candidates may import; loaded before the walls go up.
    :param user: become this user at once instead of keeping root for the empty root directory and another user;
        with it, root can see how the walls of an ordinary user hold.
    :param landlock: raise Landlock too; off only to see that the other walls hold without it.
    """

    tier = Tier.FORK_SERVER

    def __init__(self, modules: tuple[str, ...] = (), *, user: int | None = None, landlock: bool = True) -> None:
        self.options = {"modules": list(modules), "user": user, "landlock": landlock}
        self.layers: Mapping[str, str] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start the process, unless it runs.

        :raises InfrastructureError: when it does not come up; the text says why.
        """
        self._running()

    def open(self, limits: Limits) -> RemoteChild:
        """A fresh child.

        :raises InfrastructureError: when there is none to be had, not even at the second attempt.
        """
        try:
            return self._attempt(limits)
        except InfrastructureError:
            return self._attempt(limits)

    def close(self) -> None:
        """End the server, and with it every child."""
        with self._lock:
            self._stop()

    @property
    def pid(self) -> int | None:
        """The process number of the server while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def _running(self) -> socket.socket:
        with self._lock:
            if self.pid is None or self._control is None:
                self._stop()
                self._start()
            assert self._control is not None
            return self._control

    def _attempt(self, limits: Limits) -> RemoteChild:
        control = self._running()
        try:
            return _fork(control, limits)
        except (OSError, ServerGone) as error:
            with self._lock:
                if self._control is control:  # nobody else has started another meanwhile
                    self._stop()
            raise InfrastructureError(f"the fork server cannot be reached: {error}") from error

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = json.dumps([entry or os.getcwd() for entry in sys.path])
        command = [sys.executable, "-P", "-s", "-B", "-X", "utf8", "-c", BOOT]
        self._control = ours
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*command, str(theirs.fileno()), json.dumps(self.options), path],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env={"PYTHONHASHSEED": "0"},
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                raise InfrastructureError(f"the fork server cannot be started: {error}") from error
        self.layers = self._hello(ours)["layers"]

    def _hello(self, ours: socket.socket) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stderr is not None
        message = b""
        if channel.readable(ours.fileno(), HELLO_SECONDS):
            with contextlib.suppress(OSError):
                message = ours.recv(1 << 16)
        if message:
            self._process.stderr.close()
            hello: dict[str, Any] = json.loads(message)
            return hello
        self._process.kill()
        words = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        raise InfrastructureError(f"the fork server did not start: {words[-1] if words else 'it said nothing'}")

    def _stop(self) -> None:
        """With the lock held: let go of the server; the end of its control channel ends it."""
        process, self._process = self._process, None
        if self._control is not None:
            self._control.close()
            self._control = None
        if process is None:
            return
        if process.stderr is not None:
            process.stderr.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def abandon(self) -> None:
        """In a process forked from the one that started the server: forget it without ending it."""
        self._lock = threading.Lock()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
            self._process = None


def _fork(server: socket.socket, limits: Limits) -> RemoteChild:
    """Ask for a child: send it the far ends of its channel, its two output pipes and its string."""
    (control, far_control), (string, far_string) = socket.socketpair(), socket.socketpair()
    (out, far_out), (err, far_err) = os.pipe(), os.pipe()
    wanted = {
        "memory": limits.memory_mb << 20,
        "cpu": math.ceil(limits.lifetime) + 1,
        "wall": limits.lifetime * 2 + 30,
    }
    try:
        given = [far_out, far_err, far_control.fileno(), far_string.fileno()]
        socket.send_fds(server, [json.dumps(wanted).encode()], given)
    except OSError:
        control.close()
        string.close()
        os.close(out)
        os.close(err)
        raise
    finally:
        far_control.close()
        far_string.close()
        os.close(far_out)
        os.close(far_err)
    return RemoteChild(control, out, err, string, limits)

"""The trusted side of one hostile child: ask it, hold it to its limits, find out why it is gone, kill it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from typing import Any

from workbench.sandbox import channel
from workbench.sandbox.outcome import Limits, Outcome, Reason, printable
from workbench.sandbox.values import NotData, decode

START_SECONDS = 20.0  # ours, not the candidate's: forking and raising the walls on a busy machine
GONE_SECONDS = 5.0  # how long a killed process may take to be reaped


class InfrastructureError(Exception):
    """The sandbox itself failed; its text says how."""


class ServerGone(InfrastructureError):
    """The fork server is dead, or does not answer."""


class _Flood(Exception):
    """More was printed than may be."""


class Capture:
    """What one pipe says, read as it comes and counted from the last :meth:`take`."""

    def __init__(self, descriptor: int, cap: int) -> None:
        self.descriptor, self.cap, self.data = descriptor, cap, bytearray()
        os.set_blocking(descriptor, False)

    def read(self) -> bool:
        """Read what is there; False at the end of it."""
        try:
            data = os.read(self.descriptor, channel.CHUNK)
        except BlockingIOError:
            return True
        self.data += data
        if len(self.data) > self.cap:
            raise _Flood
        return bool(data)

    def take(self) -> str:
        """What was printed since the last call, cut to the cap."""
        text = bytes(self.data[: self.cap]).decode("utf-8", "replace")
        self.data.clear()
        return text


class RemoteChild:
    """A child behind its walls. Not for two threads at once, except :meth:`kill`, which any thread may call."""

    def __init__(self, control: socket.socket, out: int, err: int, string: socket.socket, limits: Limits) -> None:
        self.control, self.string, self.limits = control, string, limits
        self.out, self.err = Capture(out, limits.output_kb << 10), Capture(err, limits.output_kb << 10)
        self.ended: dict[str, Any] | None = None
        self._news = b""
        self._closed = False
        control.setblocking(False)
        try:
            self.pid = self._started()
        except BaseException:
            with contextlib.suppress(InfrastructureError):
                self.close()
            raise

    def ask(self, verb: str, *payload: Any, seconds: float) -> Outcome:
        """One request and its answer within ``seconds``. After any outcome that ends the child, ``alive`` is False.

        :raises NotData: when the payload is not plain data: the caller's mistake, not the child's.
        """
        number = secrets.token_hex(8)
        request = channel.frame([number, verb, *payload])
        begun, cpu = time.monotonic(), self._cpu()
        reason, detail, value = self._exchange(number, request, begun + seconds, seconds)
        spent = self._cpu()
        if spent is not None and cpu is not None:
            spent -= cpu
        elapsed = time.monotonic() - begun
        return Outcome(value, reason, detail, self.out.take(), self.err.take(), spent, elapsed)

    @property
    def alive(self) -> bool:
        """It can be asked again."""
        return self.ended is None and not self._closed

    def kill(self) -> None:
        """Have it killed now; whoever waits for its answer gets an infrastructure failure."""
        with contextlib.suppress(OSError):  # perhaps it is gone already
            self.string.send(b"k", socket.MSG_NOSIGNAL)

    def close(self) -> None:
        """Kill it, wait until it is gone, and give its descriptors back."""
        if self._closed:
            return
        try:
            self._end()
        finally:
            self._closed = True
            self.control.close()
            self.string.close()
            os.close(self.out.descriptor)
            os.close(self.err.descriptor)

    def _started(self) -> int:
        deadline = time.monotonic() + START_SECONDS
        news = self._next_news(START_SECONDS)
        if news is None:
            raise ServerGone("the fork server is gone, or does not answer")
        if "pid" not in news:
            raise InfrastructureError(f"the fork server made no child: {news.get('failed')}")
        try:
            _, kind, why = decode(channel.exchange(self.control, b"", deadline, channel.CHUNK))
        except channel.ChannelError as error:
            raise InfrastructureError(f"the child never came up ({type(error).__name__})") from None
        if kind != "ready":
            raise InfrastructureError(f"the walls did not go up: {why}")
        return int(news["pid"])

    def _exchange(self, number: str, request: bytes, deadline: float, seconds: float) -> tuple[Reason, str, Any]:
        watch = {capture.descriptor: capture.read for capture in (self.out, self.err)}
        try:
            if not channel.idle(self.control):
                return self._stop(Reason.PROTOCOL, "it answered before it was asked")
            body = channel.exchange(self.control, request, deadline, self.limits.reply_kb << 10, watch)
            for capture in (self.out, self.err):
                while channel.readable(capture.descriptor) and capture.read():
                    pass
            return self._read(number, body)
        except channel.Late:
            return self._stop(Reason.TIMEOUT, f"still running after {seconds:g} s")
        except channel.TooLarge:
            return self._stop(Reason.OUTPUT, f"it returned more than {self.limits.reply_kb} kB")
        except _Flood:
            return self._stop(Reason.OUTPUT, f"it printed more than {self.limits.output_kb} kB")
        except channel.OutOfTurn:
            return self._stop(Reason.PROTOCOL, "it sent more than one answer")
        except channel.Closed:
            return self._gone()

    def _read(self, number: str, body: bytes) -> tuple[Reason, str, Any]:
        reason, detail, value = read_answer(number, body, self.limits)
        return self._stop(reason, detail) if reason in (Reason.MEMORY, Reason.PROTOCOL) else (reason, detail, value)

    def _stop(self, reason: Reason, detail: str) -> tuple[Reason, str, Any]:
        try:
            self._end()
        except InfrastructureError as error:
            return Reason.INFRASTRUCTURE, str(error), None
        return reason, detail, None

    def _end(self) -> None:
        """Kill it and wait for the report that it is gone."""
        deadline = time.monotonic() + GONE_SECONDS
        self.kill()
        while self.ended is None:
            news = self._next_news(deadline - time.monotonic())
            if news is None:
                self.ended = {}
                raise ServerGone("the fork server is gone, or does not say that the child is")
            if "ended" in news:
                self.ended = news

    def _gone(self) -> tuple[Reason, str, Any]:
        """Its end of the channel is closed: say why, from what the kernel told its parent."""
        news = self._next_news(0.25)
        if news is None and not self._hung_up():
            return self._stop(Reason.PROTOCOL, "it closed its channel")
        if news is None:
            self.ended = {}
            return Reason.INFRASTRUCTURE, "the fork server died", None
        self.ended = news
        code, cpu = news.get("ended", 0), news.get("cpu", 0.0)
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu >= self.limits.lifetime):
            return Reason.TIMEOUT, f"it used up its {cpu:.1f} CPU seconds", None
        if code == -signal.SIGKILL:
            if news.get("kb", 0) >= self.limits.memory_mb << 9:  # half of what it may have
                return Reason.MEMORY, "the machine ran out of memory while it held much", None
            return Reason.INFRASTRUCTURE, "something outside the sandbox killed it", None
        if code < 0:
            return Reason.CRASH, f"it died of {_signal_name(-code)}", None
        return Reason.CRASH, f"it left with status {code} before answering", None

    def _next_news(self, seconds: float) -> dict[str, Any] | None:
        """The next line on the string within ``seconds``; None when none comes or the server is gone."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._news:
            left = deadline - time.monotonic()
            if left <= 0 or not channel.readable(self.string.fileno(), left):
                return None
            try:
                data = self.string.recv(4096)
            except OSError:
                data = b""
            if not data:
                return None
            self._news += data
        line, _, self._news = self._news.partition(b"\n")
        news: dict[str, Any] = json.loads(line)
        return news

    def _hung_up(self) -> bool:
        return channel.readable(self.string.fileno()) and not self.string.recv(1, socket.MSG_PEEK)

    def _cpu(self) -> float | None:
        """CPU seconds it has used so far: the kernel's clock of that process, or its parent's report once it ended."""
        if self.ended is not None:
            return self.ended.get("cpu")
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return None


def read_answer(number: str, body: bytes, limits: Limits) -> tuple[Reason, str, Any]:
    """What the hostile bytes of one answer say: ``(reason, detail, value)``. Whatever they are, nothing is raised."""
    try:
        message = decode(body)
    except NotData as error:
        return Reason.PROTOCOL, f"its answer is {error}", None
    match message:
        case [str() as told, "value", value] if told == number:
            return Reason.RETURNED, "", value
        case [str() as told, "raised", [str() as name, str() as words, line]] if told == number:
            place = f" (line {line})" if isinstance(line, int) else ""
            return Reason.EXCEPTION, printable(f"{name}: {words}" if words else name) + place, None
        case [str() as told, "memory", None] if told == number:
            return Reason.MEMORY, f"it needs more than {limits.memory_mb} MB", None
        case [str() as told, "not_data", str() as words] if told == number:
            return Reason.NOT_DATA, printable(f"it returned {words}"), None
    return Reason.PROTOCOL, "its answer is not one that was asked for", None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

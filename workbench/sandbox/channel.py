"""Framed messages over a socket to a process that may be hostile: with a deadline, a size cap, and never blocking.

A frame is its length (four bytes, big-endian) and that many bytes of tagged JSON.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from workbench.sandbox.values import VALUE_DEPTH, encode

HEADER = struct.Struct(">I")
CHUNK = 1 << 16


class ChannelError(Exception):
    """No whole frame came back."""


class Late(ChannelError):
    """The deadline passed first."""


class Closed(ChannelError):
    """The other side closed, or died, first."""


class TooLarge(ChannelError):
    """The other side announced a frame larger than the cap."""


class OutOfTurn(ChannelError):
    """The other side sent more than the one frame it was asked for, or sent it before it was asked."""


def frame(message: Any) -> bytes:
    """``message`` as the bytes of one frame."""
    body = encode(message, VALUE_DEPTH + 3)
    return HEADER.pack(len(body)) + body


def exchange(
    sock: socket.socket,
    outgoing: bytes,
    deadline: float,
    cap: int,
    watch: Mapping[int, Callable[[], bool]] | None = None,
) -> bytes:
    """Send ``outgoing`` and return the body of the one frame that comes back.

    Meanwhile every descriptor in ``watch`` that becomes readable has its function called; when that returns False the
    descriptor is watched no longer, and what it raises ends the exchange. ``deadline`` is on the monotonic clock.

    :raises ChannelError: one of its four kinds.
    """
    watch = watch or {}
    poller = select.poll()
    poller.register(sock, select.POLLIN | (select.POLLOUT if outgoing else 0))
    for descriptor in watch:
        poller.register(descriptor, select.POLLIN)
    pending, received = memoryview(outgoing), bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Late
        for descriptor, event in poller.poll(left * 1000 + 1):
            if descriptor != sock.fileno():
                if not watch[descriptor]():
                    poller.unregister(descriptor)
                continue
            if event & select.POLLOUT and pending:
                pending = pending[_send(sock, pending) :]
                if not pending:
                    poller.modify(sock, select.POLLIN)
            if event & ~select.POLLOUT and (body := _receive(sock, received, cap)) is not None:
                if pending:
                    raise OutOfTurn
                return body


def idle(sock: socket.socket) -> bool:
    """Nothing is waiting to be read: the other side has not spoken out of turn (nor hung up)."""
    return not readable(sock.fileno())


def readable(descriptor: int, seconds: float = 0.0) -> bool:
    """``descriptor`` can be read (or is at its end) within ``seconds``."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _send(sock: socket.socket, data: memoryview) -> int:
    try:
        return sock.send(data)
    except BlockingIOError:
        return 0
    except OSError:
        raise Closed from None


def _receive(sock: socket.socket, received: bytearray, cap: int) -> bytes | None:
    try:
        data = sock.recv(CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        data = b""
    if not data:
        raise Closed
    received += data
    if len(received) < HEADER.size:
        return None
    (size,) = HEADER.unpack_from(received)
    if size > cap:
        raise TooLarge
    if len(received) > HEADER.size + size:
        raise OutOfTurn
    return bytes(received[HEADER.size :]) if len(received) == HEADER.size + size else None


def read_frame(descriptor: int) -> bytes | None:
    """The body of the next frame, waiting for ever; None at the end. For the side that serves."""
    head = _read_exactly(descriptor, HEADER.size)
    return None if head is None else _read_exactly(descriptor, HEADER.unpack(head)[0])


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``, waiting as long as it takes. For the side that serves."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_exactly(descriptor: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        data = os.read(descriptor, min(CHUNK, size - len(parts)))
        if not data:
            return None
        parts += data
    return bytes(parts)

"""The hostile side of the fork server: a forked process raises its walls, then answers until it is killed."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable
from typing import NoReturn

from workbench.sandbox.channel import HEADER, frame, read_frame, write_all
from workbench.sandbox.runner import FILENAME, Runner, flush
from workbench.sandbox.values import decode
from workbench.sandbox.walls import CONTROL, keep_only

SETUP_FAILED = 70


def become_child(descriptors: list[int], raise_walls: Callable[[], None]) -> NoReturn:
    """Turn this forked process into a child: walls first, then serve. Never returns."""
    try:
        os.setsid()
        keep_only(descriptors)
        _forget_the_host()
        raise_walls()
    except BaseException as error:
        try:
            write_all(CONTROL, frame(["", "failed", f"{type(error).__name__}: {error}"]))
        finally:
            os._exit(SETUP_FAILED)
    try:
        write_all(CONTROL, frame(["", "ready", None]))
        serve(Runner())
    finally:
        os._exit(0)


def serve(runner: Runner) -> None:
    """Answer requests from the control channel until the other side closes it."""
    while (body := read_frame(CONTROL)) is not None:
        answer = runner.answer(*decode(body))
        flush()
        write_all(CONTROL, HEADER.pack(len(answer)) + answer)


def _forget_the_host() -> None:
    """Paths and arguments are none of the candidate's business; a fixed seed makes runs repeat exactly."""
    sys.argv[:] = sys.orig_argv[:] = [FILENAME]
    sys.path[:] = []
    sys.path_importer_cache.clear()
    os.environ.clear()
    random.seed(0)
    gc.enable()

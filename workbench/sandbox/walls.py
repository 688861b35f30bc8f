"""The walls around a child, built by the child's own process before it reads a line of hostile code.

Three kinds, each enough on its own for most attacks: the kernel refuses every system call that pure computation does
not need (seccomp), the kernel refuses every file, port and signal (Landlock), and the process owns little and may not
have more (another user, an empty root directory, resource limits). seccomp and resource limits must hold; Landlock, the
empty root and the other user are raised wherever the kernel and our own rights allow, and reported where they do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

NOBODY = 65534
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
SIGKILL = 9
EPERM = 1
MAP_ANONYMOUS, PROT_EXEC = 0x20, 0x4
LOWEST, CONTROL = 0, 3  # a child's descriptors: 0 empty input, 1 and 2 captured output, 3 the control channel

# What an interpreter needs to compute, print and answer, once all modules are loaded. No call here takes a path, makes
# a process, a thread, a socket or a descriptor, sends a signal, or changes a limit.
ALLOWED = (
    *("futex", "brk", "munmap", "mremap", "madvise", "clock_gettime", "gettimeofday", "time", "clock_getres"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "sched_yield", "membarrier"),
    *("nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "getrandom", "getrusage", "times"),
    *("getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "close", "exit", "exit_group"),
)


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What the kernel holds one child to: bytes of address space in all, and CPU seconds in all."""

    address_space: int
    cpu_seconds: int


def prepare_seccomp() -> Any:
    """The system-call filter, compiled once; each child loads it. Unlisted calls fail with EPERM.

    :raises OSError: when this kernel cannot filter system calls.
    """
    import landlockpy
    import seccompy
    from seccompy import Action, ArgCmp, CmpOp, Filter

    landlockpy.abi_version()  # both libraries look for libc at their first call, while there still are files

    filt = Filter(default=int(Action.ERRNO) | EPERM)
    for descriptor in (LOWEST, CONTROL):
        filt.allow("read", args={0: descriptor})
    for descriptor in (1, 2, CONTROL):
        filt.allow("write", args={0: descriptor})
    no_exec = ArgCmp(2, CmpOp.MASKED_EQ, 0, mask=PROT_EXEC)
    filt.allow("mmap", args=[no_exec, ArgCmp(3, CmpOp.MASKED_EQ, MAP_ANONYMOUS, mask=MAP_ANONYMOUS)])
    filt.allow("mprotect", args=[no_exec])
    for name in ALLOWED:
        with contextlib.suppress(ValueError):  # arm64 has no poll, select or time of its own
            filt.allow(name)
    if not seccompy.supported():
        raise OSError("this kernel cannot filter system calls (seccomp)")
    assert filt.program  # compiled here, once
    return filt


def shut_server(user: int | None, landlock: bool) -> dict[str, str]:
    """Give up what the fork server, and so every child, can do without; say layer by layer what was raised.

    As root: an empty, already unlinked root directory, and another user. As anybody: Landlock with no exception.

    :raises OSError: when root cannot become another user.
    """
    layers = {"chroot": "off: only root can", "user": f"the same user ({os.geteuid()})"}
    if user is not None:
        _become(user)
        layers["user"] = f"the same user ({user})"
    elif os.geteuid() == 0:
        layers["chroot"] = _empty_root()
        _become(NOBODY)
        layers["user"] = f"another user ({NOBODY})"
    _prctl(PR_SET_DUMPABLE, 0)
    layers["landlock"] = _landlock() if landlock else "off: not asked for"
    return layers


def shut_child(limits: ChildLimits, seccomp: Any, parent: int, landlock: bool) -> None:
    """Raise a child's own walls: its limits, its own Landlock domain, and last the filter on system calls.

    :raises OSError: when any of them does not hold; then nothing hostile may run.
    """
    _prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        raise OSError("the fork server is gone")
    for name, value in (
        *(("RLIMIT_NPROC", 0), ("RLIMIT_FSIZE", 0), ("RLIMIT_CORE", 0), ("RLIMIT_MEMLOCK", 0), ("RLIMIT_MSGQUEUE", 0)),
        ("RLIMIT_AS", limits.address_space),
    ):
        resource.setrlimit(getattr(resource, name), (value, value))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))
    if landlock:
        _landlock()
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONTROL + 1, CONTROL + 1))
    seccomp.load()


def keep_only(descriptors: Iterable[int]) -> None:
    """Make ``descriptors`` (output, errors, channel; none below 4) this process's 1, 2 and 3, and close all above."""
    for target, descriptor in enumerate(descriptors, start=1):
        os.dup2(descriptor, target)
    os.closerange(CONTROL + 1, 65536)


def _empty_root() -> str:
    folder = tempfile.mkdtemp()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir(folder)  # nothing can be created in a folder that is gone
    try:
        os.fchdir(handle)
        os.chroot(".")
        return "an empty root directory"
    except OSError as error:
        return f"off: {error.strerror}"
    finally:
        os.close(handle)


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _landlock() -> str:
    """Refuse every file, every port, and every signal or abstract socket outside, as far as this kernel knows how."""
    import landlockpy
    from landlockpy import Ruleset, Scope

    try:
        with Ruleset(scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL) as ruleset:
            ruleset.restrict()
    except landlockpy.UnsupportedError as error:
        return f"off: {error.strerror or error}"
    return f"no file, no port (ABI {landlockpy.abi_version()})"


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")

"""The walls themselves: every system call that is not on the list, and what one candidate leaves for the next."""

import pytest
import seccompy

from workbench.sandbox import Reason
from workbench.sandbox.walls import ALLOWED

PRELUDE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
"""


# uretprobe and uprobe (x86-64): the kernel takes them past every filter, and answers anything but its own trampoline
# with SIGILL or ENXIO
UNFILTERED = {335, 336}


def allowed_numbers():
    numbers = UNFILTERED | {seccompy.syscall_nr(name) for name in ("read", "write", "mmap", "mprotect")}
    for name in ALLOWED:
        try:
            numbers.add(seccompy.syscall_nr(name))
        except ValueError:
            continue
    return sorted(numbers)


SWEEP = (
    PRELUDE
    + """
def solve(skip, last):
    got = []
    for number in range(last):
        if number in skip:
            continue
        ctypes.set_errno(0)
        result = libc.syscall(number, 0, 0, 0, 0, 0, 0)
        if result != -1 or ctypes.get_errno() != 1:
            got.append([number, result, ctypes.get_errno()])
    return got
"""
)


def test_every_system_call_outside_the_list_is_refused(walled):
    """All of them, one by one: ptrace, bpf, io_uring, keyctl, userfaultfd, namespaces, and those not invented yet."""
    outcome = walled.call(SWEEP, "solve", [allowed_numbers(), 600], seconds=20.0)
    assert outcome.value == [], outcome


def test_no_door_is_open_because_the_list_is_short():
    assert len(ALLOWED) < 45
    never = ("open", "openat", "socket", "clone", "clone3", "fork", "execve", "kill", "tgkill", "prctl", "prlimit64")
    assert set(ALLOWED).isdisjoint({*never, "ioctl", "dup", "fcntl", "sendmsg", "recvmsg", "ptrace", "seccomp"})


@pytest.mark.parametrize(
    "call",
    [
        "libc.read(1, b'12345678', 1)",
        "libc.read(4, b'12345678', 1)",
        "libc.write(0, b'x', 1)",
        "libc.write(4, b'x', 1)",
    ],
)
def test_read_and_write_reach_only_the_childs_own_descriptors(walled, call):
    outcome = walled.call(PRELUDE + f"\ndef solve(x): return {call}, ctypes.get_errno()", "solve", [1], seconds=5.0)
    assert outcome.value in ((-1, 1), (-1, 9)), outcome  # refused, or no such descriptor


def test_foreign_system_call_tables_are_closed(walled):
    """The x32 table of x86-64 has numbers of its own, with a bit set that a careless filter overlooks."""
    code = PRELUDE + "\ndef solve(x): return [n for n in range(60) if libc.syscall(n | 0x40000000, 0, 0, 0) != -1]"
    outcome = walled.call(code, "solve", [1], seconds=5.0)
    assert outcome.value == [] or outcome.reason is Reason.CRASH, outcome


def test_the_next_candidate_finds_nothing_of_the_last(walled):
    first = (
        "import builtins, sys, random\nbuiltins.left = 1\nsys.left = 1\nrandom.seed(5)\nlen = None\ndef f(): return 1"
    )
    second = """
import builtins, sys, random
def f():
    return hasattr(builtins, "left"), hasattr(sys, "left"), len("ab"), random.random()
"""
    before = walled.call(second, "f", seconds=5.0).value
    assert walled.call(first, "f", seconds=5.0).value == 1
    assert walled.call(second, "f", seconds=5.0).value == before == (False, False, 2, before[3])

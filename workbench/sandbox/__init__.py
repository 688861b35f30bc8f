"""Runs code that a model wrote, so that the worst it can do is to be wrong.

    with Sandbox(workers=2) as box:
        outcome = box.call(code, "solve", [3, "x"], seconds=1.0)   # in threads; await box.acall(...) in an event loop
        outcome.value, outcome.reason, outcome.detail

**Values out, verdicts never.** Tests and expected values stay on this side. Inputs go in, plain data comes out, and
every comparison is made here (:func:`check_cases`, :class:`Grader`). What a hostile candidate sends can be wrong; it
cannot be a reward.

How it is held: a fork server with every module preloaded forks a child for each candidate. The child may have no file,
no socket, no process, no thread and no signal: seccomp lets through some forty system calls that pure computation
needs, Landlock refuses every path and port, resource limits hold memory, CPU and descriptors, and as root the child is
also another user in an empty root directory. It is killed by its own parent, at the deadline or as soon as it has
answered. A self-test of canary attacks at the first use decides whether that can be trusted on this machine; if not,
CPython on WebAssembly is used where it was prepared, and otherwise no code is run (``Sandbox.status`` says why).

Covered (each line is a family of tests in ``tests/sandbox/test_attacks.py``):

- leaving early: ``sys.exit``, ``os._exit``, ``SystemExit``, ``quit``, ``os.abort``, at import or in the call
- objects that equal everything, subclasses that lie, proxies
- patching builtins, modules and the runner that calls the candidate
- forged output ("passed"), forged, early, extra and malformed answers on the control channel
- walks over frames, the garbage collector and loaded modules in search of tests and expected values
- reading files of the host, ``/proc``, other file systems
- secrets in the environment, arguments and paths
- the network: IPv4, IPv6, Unix, abstract, netlink and packet sockets; name look-ups
- more processes: fork, vfork, clone, exec, spawn, threads
- memory: bombs, and bombs that swallow ``MemoryError``
- endless loops, also with signals ignored and exceptions swallowed; sleeping; stalls inside one C call
- floods of output and of answers
- strange values: NaN, infinities, huge integers, lone surrogates, values that contain themselves or nest too deep
- recursion without end, crashes by ctypes, ``faulthandler`` or deep syntax
- raw system calls by ctypes: ptrace, process_vm_readv, memfd, io_uring, bpf, keyctl, userfaultfd, namespaces, seccomp
- killing the parent and others; stopping them
- raising limits, changing user, leaving the empty root
- writing files, making folders, links, pipes and devices
- ``atexit``, ``sys.excepthook``, finalisers, forged exceptions, exceptions whose text raises
- new executable memory, and pages that are both writable and executable

Not covered. It raises the bar; it is not a virtual machine:

- a fault in the kernel's own handling of the calls that are let through, or in the processor (side channels)
- a candidate that finds out *that* it is being graded, and how long: clocks are readable
- answers that are right for the inputs of the test only; use fresh inputs
- state kept between calls of one session: a candidate can remember earlier inputs
- a machine that is already overloaded: deadlines are wall time (an infrastructure failure is never blamed on code, a
  late answer is)
- as an ordinary user: children run as that user, so a kernel without Landlock has seccomp and limits as its only walls
- systems other than Linux on x86-64 and arm64 have only the WebAssembly tier

An outcome without a value has a reason. ``Reason.INFRASTRUCTURE`` is ours: it must become ``Score(None, detail)``,
never 0. For our own functions that may hang on hostile input there is :func:`run_with_deadline`.
"""

from workbench.sandbox.box import Sandbox
from workbench.sandbox.deadline import DeadlinePool, run_with_deadline
from workbench.sandbox.forkserver import ForkServer
from workbench.sandbox.grading import Case, Grader, Verdict, check_cases, check_here, same
from workbench.sandbox.outcome import Limits, Outcome, Reason
from workbench.sandbox.remote import InfrastructureError
from workbench.sandbox.selftest import Canary, Status, Tier
from workbench.sandbox.session import Session
from workbench.sandbox.values import NotData
from workbench.sandbox.wasm import WasmEngine
from workbench.sandbox.wasm import prepare as prepare_wasm

__all__ = [
    "Canary",
    "Case",
    "DeadlinePool",
    "ForkServer",
    "Grader",
    "InfrastructureError",
    "Limits",
    "NotData",
    "Outcome",
    "Reason",
    "Sandbox",
    "Session",
    "Status",
    "Tier",
    "Verdict",
    "WasmEngine",
    "check_cases",
    "check_here",
    "prepare_wasm",
    "run_with_deadline",
    "same",
]

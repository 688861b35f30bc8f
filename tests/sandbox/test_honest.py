"""Honest programs are not disturbed by the walls: what a HumanEval solution uses works, and answers stay exact."""

import pytest

from workbench.sandbox import Reason, Sandbox

PROGRAMS = {
    "math": ("import math, cmath\ndef f(): return math.gcd(12, 18), math.pi > 3, cmath.sqrt(-1)", (6, True, 1j)),
    "re": (
        "import re\ndef f(): return re.sub(r'(?P<a>\\d+)', '#', 'a1b22', flags=re.I), re.split(r'\\W', 'a b')",
        ("a#b#", ["a", "b"]),
    ),
    "collections": (
        "import collections as c\nP = c.namedtuple('P', 'x y')\n"
        "def f(): return c.Counter('aab'), c.OrderedDict(a=1), c.defaultdict(list, a=[1]), list(c.deque([1])), P(1, 2)",
        ({"a": 2, "b": 1}, {"a": 1}, {"a": [1]}, [1], (1, 2)),
    ),
    "itertools_functools_operator": (
        "import itertools, functools, operator\n@functools.lru_cache(None)\ndef fib(n): return n if n < 2 else "
        "fib(n - 1) + fib(n - 2)\ndef f(): return list(itertools.permutations([1, 2])), "
        "functools.reduce(operator.mul, [2, 3]), fib(90)",
        ([(1, 2), (2, 1)], 6, 2880067194370816120),
    ),
    "heapq_bisect": (
        "import heapq, bisect\ndef f(): return heapq.nsmallest(2, [3, 1, 2]), bisect.insort([1], 2)",
        ([1, 2], None),
    ),
    "string_textwrap_unicode": (
        "import string, textwrap, unicodedata\ndef f(): return string.ascii_lowercase[:3], textwrap.fill('a b', 1), "
        "unicodedata.normalize('NFC', 'e\\u0301'), 'straße'.casefold(), '\\N{BULLET}'.encode('utf-16-le')",
        ("abc", "a\nb", "é", "strasse", b'" '),
    ),
    "random": ("import random\nr = random.Random(1)\ndef f(): return r.random() < 1, random.choice([7])", (True, 7)),
    "datetime": (
        "import datetime, calendar, time\ndef f(): return datetime.date(2024, 2, 29).isoformat(), "
        "datetime.datetime.strptime('03-04-2021', '%m-%d-%Y').day, calendar.monthrange(2023, 2)[1], time.time() > 0",
        ("2024-02-29", 4, 28, True),
    ),
    "typing_dataclasses_enum": (
        "from __future__ import annotations\nfrom typing import List, Optional\nimport dataclasses, enum, abc\n"
        "@dataclasses.dataclass(order=True)\nclass P:\n    x: int\n"
        "    y: List[int] = dataclasses.field(default_factory=list)\n"
        "class Colour(enum.IntEnum):\n    RED = 1\n"
        "def f() -> Optional[int]:\n    return dataclasses.asdict(P(1)), Colour.RED",
        ({"x": 1, "y": []}, 1),
    ),
    "json_csv_io": (
        "import json, csv, io\ndef f(): return json.loads(json.dumps({'a': [1, None]})), "
        "list(csv.reader(io.StringIO('a,b')))",
        ({"a": [1, None]}, [["a", "b"]]),
    ),
    "statistics_fractions_decimal": (
        "import statistics, fractions, decimal\ndef f(): return statistics.median([1, 3]), "
        "str(fractions.Fraction(1, 3) + fractions.Fraction(1, 6)), "
        "str(decimal.Decimal('0.1') + decimal.Decimal('0.2'))",
        (2.0, "1/2", "0.3"),
    ),
    "copy_pickle": (
        "import copy, pickle\ndef f(): return copy.deepcopy([[1]]), pickle.loads(pickle.dumps({1}))",
        ([[1]], {1}),
    ),
    "hashlib": (
        "import hashlib, base64, zlib, hmac\ndef f(): return hashlib.md5(b'a').hexdigest()[:6], "
        "hashlib.sha3_256(b'').hexdigest()[:4], base64.b64encode(b'x'), zlib.crc32(b'a')",
        ("0cc175", "a7ff", b"eA==", 3904355907),
    ),
    "deep_recursion": (
        "import sys\nsys.setrecursionlimit(20000)\ndef g(n): return n and 1 + g(n - 1)\ndef f(): return g(9000)",
        9000,
    ),
    "big_integers": ("import math\ndef f(): return math.factorial(300) % 1000007, 2**2000", (340779, 2**2000)),
    "exceptions_are_caught": (
        "def f():\n    try:\n        open('data.txt')\n    except OSError:\n        return 'no file'",
        "no file",
    ),
    "generators_and_closures": ("def f():\n    def g():\n        yield from range(3)\n    return [*g()]", [0, 1, 2]),
    "classes_and_methods": ("class Solution:\n    def f(self): return 1\ndef f(): return Solution().f()", 1),
    "special_floats": ("def f(): return [1e308 * 10, -0.0, 5e-324]", [float("inf"), -0.0, 5e-324]),
    "a_hundred_megabytes": ("def f(): return len(bytearray(100_000_000))", 100_000_000),
    "the_system_says_no_politely": (
        "import os, platform\ndef f():\n    return os.path.exists('/etc'), os.environ.get('HOME'), os.getpid() > 0",
        (False, None, True),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_honest_program_is_right(box, name):
    code, expected = PROGRAMS[name]
    outcome = box.call(code, "f", seconds=20.0)
    assert outcome.value == expected, outcome
    assert type(outcome.value) is type(expected)
    assert outcome.stderr == ""


def test_printing_is_captured_and_not_mixed_up(box):
    code = """
import sys
print('loading')
def f(x):
    print('x =', x, '…')
    print('warn', file=sys.stderr)
    return x
"""
    outcome = box.call(code, "f", [1], seconds=20.0)
    assert (outcome.value, outcome.stdout, outcome.stderr) == (1, "loading\nx = 1 …\n", "warn\n")


def test_a_script_reads_its_input_and_leaves_with_status_zero(box):
    code = "import sys\nname = input()\nprint('hello', name, sys.stdin.read())\nif __name__ == '__main__': sys.exit(0)"
    outcome = box.run(code, stdin="Ann\nrest", seconds=20.0)
    assert outcome.ok
    assert outcome.stdout == "hello Ann rest\n"


def test_a_script_that_fails_says_so(box):
    assert box.run("import sys; sys.exit(3)", seconds=20.0).reason is Reason.EXCEPTION
    failed = box.run("x = 1\ny = 1 / 0", seconds=20.0)
    assert failed.detail == "ZeroDivisionError: division by zero (line 2)"


def test_runs_repeat_exactly(box):
    code = "import random\ndef f(): return random.random(), list({'a', 'b', 'c', 'd'}), hash('x')"
    assert box.call(code, "f", seconds=20.0).value == box.call(code, "f", seconds=20.0).value


def test_keyword_arguments_methods_and_every_kind_of_value_cross_unchanged(box):
    values = [
        None,
        True,
        0,
        -(2**200),
        1.5,
        2j,
        "é\ud800",
        b"\x00\xff",
        (1, (2,)),
        {1: {"a": {3, (4,)}}},
        frozenset({1}),
    ]
    code = "class A:\n    @staticmethod\n    def same(v, *, twice=False): return [v, v] if twice else v"
    outcome = box.call(code, "A.same", [values], {"twice": True}, seconds=20.0)
    assert outcome.value == [values, values]


def test_cpu_seconds_are_the_childs(box):
    spin = "import time\ndef f():\n    end = time.process_time() + 0.2\n    while time.process_time() < end: pass"
    assert 0.15 < box.call(spin, "f", seconds=30.0).cpu_seconds < 1.0


def test_more_modules_can_be_offered():
    with Sandbox(workers=1, modules=["wave"]) as made:
        assert made.call("import wave\ndef f(): return wave.WAVE_FORMAT_PCM", "f", seconds=20.0).value == 1
    with Sandbox(workers=1, modules=["no_such_module"]) as made:
        outcome = made.call("def f(): return 1", "f")
        assert outcome.reason is Reason.INFRASTRUCTURE
        assert "no_such_module" in outcome.detail

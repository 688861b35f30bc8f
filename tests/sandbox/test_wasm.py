"""The second tier, where its runtime is installed and compiled: the same answers, and the same attacks denied."""

import pytest

from workbench.sandbox import Case, Reason, Sandbox, Tier, WasmEngine, check_cases, wasm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def box():
    if not wasm.installed():
        pytest.skip("the extra `wasm` is not installed")
    if not wasm.prepared():
        done = wasm.prepare()  # minutes, once a machine
        assert done.ok, done
    with Sandbox(workers=2, engine=WasmEngine()) as made:
        yield made


def test_wasm_passes_the_same_self_test(box):
    assert box.status.tier is Tier.WASM, box.status
    assert all(canary.denied for canary in box.status.canaries)


def test_wasm_gives_values_output_and_scripts(box):
    outcome = box.call("print('hi')\ndef f(x, *, y): return {x: (y, 2**100)}", "f", [1], {"y": {2}}, seconds=20.0)
    assert (outcome.value, outcome.stdout) == ({1: ({2}, 2**100)}, "hi\n"), outcome
    assert box.run("print(input())", stdin="Ann", seconds=20.0).stdout == "Ann\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(x):\n    while True: pass", Reason.TIMEOUT),
        ("def f(x): return len(str(10 ** 10 ** 8))", Reason.TIMEOUT),
        ("while True: pass", Reason.TIMEOUT),
        ("def f(x):\n    h = []\n    while True: h.append(bytearray(10**8))", Reason.MEMORY),
        ("def f(x): print('x' * 1_000_000)", Reason.OUTPUT),
        ("def f(x): return 'x' * 3_000_000", Reason.OUTPUT),
        ("import os\ndef f(x): os._exit(0)", Reason.CRASH),
        ("import sys\ndef f(x): sys.exit(0)", Reason.EXCEPTION),
        ("def f(x): return f", Reason.NOT_DATA),
        ("def f(", Reason.EXCEPTION),
        (
            "from host import tools\ndef f(x):\n    tools.reply('[1]')\n    tools.reply('[2]')\n    return 1",
            Reason.PROTOCOL,
        ),
        ("from host import tools\nimport os\ndef f(x):\n    tools.reply('[1]')\n    os._exit(0)", Reason.PROTOCOL),
    ],
)
def test_wasm_reasons_are_those_of_the_first_tier(box, code, reason):
    outcome = box.call(code, "f", [1], seconds=2.0)
    assert outcome.reason is reason, outcome
    assert outcome.value is None
    assert box.call("def f(x): return x", "f", [5], seconds=20.0).value == 5


def test_wasm_cheats_earn_nothing(box):
    code = "class Y(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\ndef f(x): return Y()"
    (verdict,) = check_cases(box, code, "f", [Case((1,), 2)], seconds=20.0)
    assert verdict.passed is False

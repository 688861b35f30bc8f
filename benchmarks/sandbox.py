"""How fast the sandbox is: runs a second, what a check costs, and a batch with endless loops in it.

python benchmarks/sandbox.py [--seconds 5]
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

from workbench.sandbox import Grader, Outcome, Reason, Sandbox

CODE = "import math\ndef solve(n): return [math.isqrt(i) for i in range(n)]"
LOOP = "def solve(n):\n    while True: pass"
TEST = "def check(candidate):\n    assert candidate(5) == [0, 1, 1, 1, 2]\n    assert candidate(0) == []"


def rate(box: Sandbox, threads: int, seconds: float) -> float:
    """Whole runs a second, each in a fresh child."""
    end, done = time.perf_counter() + seconds, 0
    with ThreadPoolExecutor(threads) as pool:
        begun = time.perf_counter()
        while time.perf_counter() < end:
            outcomes = list(pool.map(lambda _: box.call(CODE, "solve", [100]), range(8 * threads)))
            assert all(outcome.ok for outcome in outcomes), outcomes
            done += len(outcomes)
        return done / (time.perf_counter() - begun)


def batch(box: Sandbox) -> tuple[float, list[Outcome]]:
    """64 completions, 4 of them endless loops with a deadline of one second."""
    codes = [LOOP if i % 16 == 0 else CODE for i in range(64)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda code: box.call(code, "solve", [100], seconds=1.0), codes))
    return time.perf_counter() - begun, outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with Sandbox(workers=2) as box:
        begun = time.perf_counter()
        print(f"tier {box.status.tier}, ready with its self-test in {time.perf_counter() - begun:.2f} s")
        for threads in (1, 2):
            runs = rate(box, threads, seconds)
            print(f"{threads} at a time: {runs:.0f} runs/s, {1000 * threads / runs:.1f} ms each")
        took, outcomes = batch(box)
        late = sum(outcome.reason is Reason.TIMEOUT for outcome in outcomes)
        print(f"64 completions, {late} timed out, two workers: {took:.2f} s")
        with box.session(CODE) as session:
            begun = time.perf_counter()
            for _ in range(1000):
                session.call("solve", [100])
            print(f"calls in one session: {1000 / (time.perf_counter() - begun):.0f}/s")
    with Grader(workers=1) as grader:
        grader.check(CODE, "solve", TEST)
        begun = time.perf_counter()
        for _ in range(100):
            assert grader.check(CODE, "solve", TEST, seconds=5.0).passed
        print(f"graded candidates, one at a time: {100 / (time.perf_counter() - begun):.0f}/s")


if __name__ == "__main__":
    main()

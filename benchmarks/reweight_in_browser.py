"""How long a moved weight takes to change the chart, in a real browser: our screen beside a plain Gradio page.

Both pages draw the same figure of the same 16-completion group, in the same run, in the same Chromium. Printed for
each: the median time from the slider's event to the first painted frame in which a bar has moved ("moved"), and, for
ours, to the end of its short motion ("settled"). Run it on an idle machine:

    python benchmarks/reweight_in_browser.py [--moves 40] [--chromium /usr/bin/chromium]
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

K = 16
MOVE = """async ([selector, place, value]) => {
  const slider = document.querySelector(selector + ' input[type=range]');
  const paths = () => [...document.querySelectorAll(place + ' .bars path')].map((p) => p.getAttribute('d')).join();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const before = paths(), start = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  while (paths() === before) { await frame(); if (performance.now() - start > 5000) throw Error('no bar moved'); }
  await frame();
  const moved = performance.now() - start;
  const motion = [...document.querySelectorAll(place + ' .bars path')].flatMap((p) => p.getAnimations());
  await Promise.all(motion.map((animation) => animation.finished.catch(() => null)));
  return [moved, performance.now() - start];
}"""


def a_group():
    """A group of 16 flawed answers to a desk task, scored by the real reward, tokens and all."""
    from workbench.rewards import score_group
    from workbench.tasks.desk.demonstrations import flawed_answer
    from workbench.tasks.desk.generator import desk_task
    from workbench.types import Completion, Group, SamplingConfig

    rng = random.Random(11)
    task = desk_task(11)
    completions = []
    for _ in range(K):
        text = flawed_answer(task, rng)[0]
        tokens = tuple(text[i : i + 3] for i in range(0, len(text), 3))
        logps = tuple(-rng.expovariate(3) for _ in tokens)
        ids = tuple(range(len(tokens)))
        completions.append(Completion(text, ids, tokens, logps, tuple(-v for v in logps)))
    return Group(task, tuple(completions), score_group(task, completions), "nano", SamplingConfig(K))


def serve_ours(port: int) -> None:
    from workbench.runs import recorded
    from workbench.runs.groups import write_groups
    from workbench.ui.app import launch

    with tempfile.TemporaryDirectory() as folder:
        recorded.RECORDED = Path(folder)
        write_groups(recorded.RECORDED / "nano.parquet", [a_group()])
        launch(port=port, quiet=True)


def serve_plain(port: int) -> None:
    """The page one would write first: four sliders, one gr.Plot, the default wiring."""
    import gradio as gr

    from workbench.figures import group_bars
    from workbench.rewards import DEFAULT_WEIGHTS

    group = a_group()

    def draw(*weights):
        return group_bars(group, dict(zip(group.dimensions, weights, strict=True)))

    with gr.Blocks(analytics_enabled=False) as page:
        sliders = [gr.Slider(0, 1, DEFAULT_WEIGHTS[n], step=0.01, elem_id=f"wb-{n}", label=n) for n in group.dimensions]
        plot = gr.Plot(draw(*DEFAULT_WEIGHTS.values()), elem_id="wb-bars")
        for slider in sliders:
            slider.change(draw, sliders, plot)
    page.launch(server_name="127.0.0.1", server_port=port, quiet=True, ssr_mode=False, run_history=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(page, moves: int) -> list[tuple[float, float]]:
    page.wait_for_selector("#wb-bars .bars path", state="attached", timeout=60_000)
    values = [round(0.2 + 0.6 * ((i * 7) % moves) / moves, 2) for i in range(moves)]
    results = [page.evaluate(MOVE, ["#wb-task_completion", "#wb-bars", value]) for value in [0.5, 0.31, *values]]
    return [tuple(r) for r in results[2:]]  # the first two warm both ends up


def start(which: str, port: int) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, __file__, "--serve", which, "--port", str(port)])
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()
            return process
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"the {which} page ended before it served") from None
            time.sleep(0.1)
    process.terminate()
    raise SystemExit(f"the {which} page did not serve within 90 s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--serve", choices=("ours", "plain"))
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if options.serve:
        return {"ours": serve_ours, "plain": serve_plain}[options.serve](options.port)
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=flags)
        for which in ("ours", "plain"):
            port = free_port()
            process = start(which, port)
            try:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.goto(f"http://127.0.0.1:{port}/")
                found[which] = measure(page, options.moves)
                page.close()
            finally:
                process.terminate()
                process.wait()
        browser.close()
    ours, plain = ([moved for moved, _ in found[w]] for w in ("ours", "plain"))
    settled = [last for _, last in found["ours"]]
    print(f"{K} completions, {options.moves} moves of one weight, medians (worst):")
    print(f"  our screen    moved {told(ours)}   settled {told(settled)}")
    print(f"  plain Gradio  moved {told(plain)}")
    print(f"  plain / ours  {statistics.median(plain) / statistics.median(ours):.2f}")


def told(times: list[float]) -> str:
    return f"{statistics.median(times):4.0f} ms ({max(times):.0f})"


if __name__ == "__main__":
    main()

"""A server process on a free loopback port, and pages of a real headless Chromium looking at it."""

import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.rewards import score_group
from workbench.runs.groups import write_groups
from workbench.tasks import get_task
from workbench.tasks.desk.demonstrations import flawed_answer
from workbench.tasks.desk.generator import gold_answer
from workbench.types import Completion, Group, SamplingConfig

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("WORKBENCH_CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
BROKEN = '<tool_call>{"name": "set_timer", "arguments": {"minutes": 5'
HOSTILE = [
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "\ud800 lone surrogate, \u202eright to left\u202c, nul \x00",
    "</code></td></table><svg onload='window.hacked = 1'></svg>",
    "word " * 10_000,
    '<tool_call>{"name": "<img src=x onerror=window.hacked=1>", "arguments": {}}</tool_call>',
    BROKEN,
]


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


def group_of(task_id, texts, seed=0):
    task = get_task(task_id)
    completions = []
    for text in texts:
        step = max(3, len(text) // 12_000)
        tokens = tuple(text[i : i + step] for i in range(0, len(text), step))
        logps = tuple(-0.1 * (1 + i % 7) for i in range(len(tokens)))
        completions.append(Completion(text, tuple(range(len(tokens))), tokens, logps, tuple(0.3 for _ in tokens)))
    scores, sampling = score_group(task, completions), SamplingConfig(len(texts), seed=seed)
    return Group(task, tuple(completions), scores, "nano", sampling)


def clerks_group(index, k):
    rng = random.Random(index)
    return group_of(f"desk-{index}", [flawed_answer(get_task(f"desk-{index}"), rng)[0] for _ in range(k)], index)


def recording():
    """Groups of 8 and 16; one that is dead, one whose signs turn when efficiency counts most, one of hostile text."""
    groups = [clerks_group(index, 16 if index % 2 else 8) for index in range(8)]
    dead = group_of("desk-20", ["I cannot do that."] * 8)
    gold = gold_answer(get_task("desk-22"))
    wordy, terse = (
        "Sure, I will do that now. " * 4 + gold,
        gold.replace('"arguments": {', '"arguments": {"note": "x", '),
    )
    tilting = group_of("desk-22", [wordy] * 4 + [terse] * 2 + [BROKEN] * 2)
    hostile = group_of("desk-21", HOSTILE)
    return [*groups, dead, tilting, replace(hostile, sampling=SamplingConfig(len(HOSTILE), seed=21))]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a running app; the process is ended by its own id."""
    folder = tmp_path_factory.mktemp("recorded")
    write_groups(folder / "nano.parquet", recording())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (folder / "server.log").open("w")
    command = [sys.executable, str(Path(__file__).with_name("serve.py")), str(folder), str(port)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=settings)
    address = f"http://127.0.0.1:{port}/"
    try:
        _until_served(address, process, folder / "server.log")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)
        log.close()


def _until_served(address, process, log):
    deadline = time.monotonic() + 90
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the app did not serve within 90 s"


@pytest.fixture(scope="module")
def browser():
    """One headless Chromium for the session; skipped where there is none."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; name one in WORKBENCH_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, server):
    """A function opening the app in a browser of its own; at the end, no page may have logged an error."""
    contexts, faults = [], []

    def open_one(query="", *, ready="#wb-bars .bars path", width=1440, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.goto(server + query)
        page.wait_for_selector(ready, state="attached", timeout=30_000)
        page.wait_for_function("() => document.querySelector('#wb-task input').value !== ''")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not faults

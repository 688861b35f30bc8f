"""Completions scored a second on one core, and calls parsed a second, beside bfcl-eval's own checker.

    python benchmarks/rewards.py

The first figures cover everything from the text: parsing, four dimensions, four sentences. bfcl-eval's covers its AST
checker alone, on right calls that are parsed already, so our comparison alone stands beside it (it is left out when
``bfcl-eval`` is not installed). CPU time, best of five.
"""

from __future__ import annotations

import importlib.resources
import json
import sys
import time
import types
from collections.abc import Callable
from types import SimpleNamespace

from workbench.rewards import parse_completion, score_completion
from workbench.rewards.probes import gold_text
from workbench.rewards.rubric import Attempt, rubric
from workbench.tasks import load_tasks


def best_rate(work: Callable[[], object], items: int, repeats: int = 5) -> float:
    """Items a CPU second of the fastest of several runs."""
    rates = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        rates.append(items / (time.process_time() - began))
    return max(rates)


def bfcl_rate(sources: dict[str, str]) -> float | None:
    """bfcl-eval's checks a second on the gold answers of the same tasks."""
    try:
        folder = importlib.resources.files("bfcl_eval") / "data"
    except ModuleNotFoundError:
        return None
    stub = types.ModuleType("bfcl_eval.constants.model_config")
    stub.MODEL_CONFIG_MAPPING = {"any/model": SimpleNamespace(underscore_to_dot=False)}  # type: ignore[attr-defined]
    sys.modules["bfcl_eval.constants.model_config"] = stub
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    jobs = []
    for source, category in sources.items():
        name = f"BFCL_v4_{category}.json"
        rows = {row["id"]: row for row in map(json.loads, (folder / name).read_text("utf-8").splitlines())}
        answers = map(json.loads, (folder / "possible_answer" / name).read_text("utf-8").splitlines())
        right = {answer["id"]: answer["ground_truth"] for answer in answers}
        for task in load_tasks(source):
            key = task.id.removeprefix("bfcl-")
            calls = [{call.name: call.gold()} for call in task.expected]
            jobs.append((rows[key]["function"], calls, right[key], category))

    def work() -> None:
        for functions, calls, answer, category in jobs:
            ast_checker(functions, calls, answer, Language.PYTHON, category, "any_model")

    return best_rate(work, len(jobs))


def main() -> None:
    sources = {"bfcl_simple": "simple_python", "bfcl_live_multiple": "live_multiple", "bfcl_parallel": "parallel"}
    tasks = [task for source in sources for task in load_tasks(source)]
    texts = [gold_text(task) for task in tasks]
    desk = load_tasks("desk", limit=500)
    desk_texts = [gold_text(task) for task in desk]
    score = best_rate(lambda: [score_completion(t, x) for t, x in zip(tasks, texts, strict=True)], len(tasks))
    desk_score = best_rate(lambda: [score_completion(t, x) for t, x in zip(desk, desk_texts, strict=True)], len(desk))
    parse = best_rate(lambda: [parse_completion(text) for text in texts], len(texts))
    block = '<tool_call>{"name": "timer", "arguments": {"minutes": 5, "label": "tea"}}</tool_call>\n'
    blocks = 1000 / best_rate(lambda: parse_completion(block * 1000), 1000)
    print(f"BFCL completions scored in four dimensions  {score:10,.0f} a second on one core")
    print(f"desk completions scored in four dimensions  {desk_score:10,.0f}")
    print(f"BFCL completions parsed                     {parse:10,.0f}")
    print(f"1,000 blocks in one completion              {blocks * 1000:10.1f} ms")
    pairs = [(rubric(task), parse_completion(text)) for task, text in zip(tasks, texts, strict=True)]
    compare = best_rate(lambda: [Attempt(rules, parsed).matched for rules, parsed in pairs], len(pairs))
    print(f"our comparison with the right calls alone   {compare:10,.0f}")
    theirs = bfcl_rate(sources)
    if theirs is None:
        print("bfcl-eval's checker: not installed (pip install --no-deps bfcl-eval==2026.3.23)")
    else:
        print(f"bfcl-eval's AST checker alone               {theirs:10,.0f}")
        print(f"ratio to its checker: our comparison alone {compare / theirs:.2f}, everything {score / theirs:.2f}")


if __name__ == "__main__":
    main()

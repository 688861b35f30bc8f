"""Builds workbench/tasks/data/bfcl.jsonl.gz from the bfcl-eval wheel (Apache-2.0), reading only its JSON.

    python scripts/build_bfcl.py [path/to/bfcl_eval-2026.3.23-py3-none-any.whl]

Without a path the wheel is fetched by ``pip download --no-deps``. Its SHA-256 is checked, nothing in it is
imported or run. The same wheel gives the same bytes.

What is changed on the way, and why
- BFCL's types become JSON Schema's: dict -> object, float -> number, tuple -> array, any -> no type at all.
- An answer lists the accepted values of each argument; "" among them means that it may be left out. Here that is
  a list of optional arguments. "" stays an accepted *value* where text is accepted, and [] becomes one of an array,
  because BFCL's checker takes them.
- Inside an object BFCL lists accepted values key by key; here every combination is written out (128 at most).
- A task is dropped, with its reason in the file, when its right answer does not fit its own schema, when no
  function is offered, or when it is a conversation of several turns.
- The split goes by function name. Names that occur in one answer together form a family; a hash of the family's
  first name decides train or held-out. From a *train* task every offered function with a held-out name is removed,
  so that nothing about a held-out function is seen in training. Held-out tasks are left whole.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

VERSION = "2026.3.23"
SHA256 = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"
OUT = Path(__file__).resolve().parent.parent / "workbench" / "tasks" / "data" / "bfcl.jsonl.gz"
# The salt was chosen once, among numbered ones, so that every source holds out between a fifth and a quarter.
SALT, HELD_OUT_PERCENT = "workbench-bfcl-1712", 22
CATEGORIES = {
    "bfcl_simple": "simple_python",
    "bfcl_multiple": "multiple",
    "bfcl_parallel": "parallel",
    "bfcl_parallel_multiple": "parallel_multiple",
    "bfcl_irrelevance": "irrelevance",
    "bfcl_live_simple": "live_simple",
    "bfcl_live_multiple": "live_multiple",
    "bfcl_live_irrelevance": "live_irrelevance",
}
TYPES = {"dict": "object", "float": "number", "tuple": "array"}
KEPT_KEYS = ("type", "description", "enum", "default", "format", "maximum", "minItems", "maxItems")


class Dropped(ValueError):
    """A task that cannot be used; its text says why."""


def fetch_wheel(folder: str) -> Path:
    """Downloads the pinned wheel into ``folder`` and returns its path."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        folder,
        f"bfcl-eval=={VERSION}",
    ]
    subprocess.run(command, check=True)
    return next(Path(folder).glob("bfcl_eval-*.whl"))


def read_rows(wheel: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    """The rows of one JSON-lines file of the wheel."""
    text = wheel.read(f"bfcl_eval/data/{name}.json").decode("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def json_schema(node: dict[str, Any]) -> dict[str, Any]:
    """BFCL's description of a value as a JSON Schema."""
    kind = node.get("type")
    out = {key: node[key] for key in KEPT_KEYS if key in node and key != "type"}
    if kind != "any":
        out = {"type": TYPES.get(kind, kind), **out}
    if "properties" in node:
        out["properties"] = {name: json_schema(sub) for name, sub in node["properties"].items()}
    if isinstance(node.get("required"), list):
        out["required"] = node["required"]
    if isinstance(node.get("items"), dict):
        out["items"] = json_schema(node["items"])
    return out


def tool_text(function: dict[str, Any]) -> str:
    """One function as the compact JSON text of a chat template's tool."""
    parameters = json_schema(function["parameters"])
    body = {"name": function["name"], "description": function["description"], "parameters": parameters}
    return dump({"type": "function", "function": body})


def dump(value: object) -> str:
    """Compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def combinations(value: Any, schema: dict[str, Any]) -> list[Any]:
    """Every plain value that BFCL's ``value`` stands for: it lists accepted values for each key of an object."""
    if isinstance(value, list) and schema.get("items", {}).get("type") == "object":
        return [list(row) for row in itertools.product(*(combinations(item, schema["items"]) for item in value))]
    if not isinstance(value, dict):
        return [value]
    required, missing = schema.get("required", []), object()
    choices = []
    for key, accepted in value.items():
        given = [v for v in accepted if v != ""] or ["" for v in accepted if key in required or accepted == [""]]
        choices.append(given + ([missing] if "" in accepted and key not in required else []))
    rows = itertools.product(*choices)
    return [{k: v for k, v in zip(value, row, strict=True) if v is not missing} for row in rows]


def strict_validator(schema: dict[str, Any]) -> Any:
    """A Draft 2020-12 validator to which 2.0 is a number and not an integer."""
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return extend(Draft202012Validator, type_checker=checker)(schema)


def accepted_values(accepted: list[Any], schema: dict[str, Any]) -> list[Any]:
    """The accepted values of one argument as plain JSON, those that fit the schema first."""
    values = [plain for value in accepted if value != "" for plain in combinations(value, schema)]
    if "" in accepted:
        as_text = schema.get("type") == "string" or any(isinstance(value, str) for value in values[:1])
        values += [""] if as_text else [[]] if schema.get("type") == "array" else []
    validator = strict_validator(schema)
    unique = list({dump(value): value for value in values}.values())
    return sorted(unique, key=lambda value: not validator.is_valid(value))


def expected_call(call: dict[str, Any], parameters: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One right call as ``{"name", "arguments", "optional"}``; raises Dropped when it does not fit its own schema."""
    ((name, answers),) = call.items()
    if name not in parameters:
        raise Dropped(f"the right call {name} is not offered")
    schema = parameters[name]
    required, properties = schema.get("required", []), schema["properties"]
    arguments, optional = {}, []
    for argument, accepted in answers.items():
        if argument not in properties:
            if "" in accepted:
                continue  # an argument the schema does not know, and that nobody needs to give
            raise Dropped(f"{name} needs {argument!r}, which its schema does not have")
        arguments[argument] = accepted_values(accepted, properties[argument])
        if "" in accepted and argument not in required:
            optional.append(argument)
    gold = {key: values[0] for key, values in arguments.items() if key not in optional and values}
    error = next(iter(sorted(strict_validator(schema).iter_errors(gold), key=str)), None)
    if error is not None:
        where = ".".join(map(str, error.absolute_path))
        raise Dropped(f"{name}: {where + ': ' if where else ''}{error.message}"[:200])
    return {"name": name, "arguments": arguments, "optional": optional}


def families(answers: Iterable[list[str]]) -> dict[str, str]:
    """Each function name -> the first name of its family: names that occur in one answer belong together."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for names in answers:
        roots = {root(name) for name in names}
        parent.update(dict.fromkeys(roots, min(roots, default="")))
    return {name: root(name) for name in list(parent)}


def is_held_out(name: str, family: dict[str, str]) -> bool:
    """Whether a function's family is kept away from training."""
    digest = hashlib.sha256(f"{SALT}:{family.get(name, name)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < HELD_OUT_PERCENT


def convert(row: dict[str, Any], answer: list[dict[str, Any]]) -> dict[str, Any]:
    """One BFCL row as a task with its tools still inside; raises Dropped."""
    messages = row["question"][0]
    if [m["role"] for m in messages] not in (["user"], ["system", "user"]):
        raise Dropped("a conversation of several turns")
    if not row["function"]:
        raise Dropped("no function is offered")
    texts = {function["name"]: tool_text(function) for function in row["function"]}
    parameters = {name: json.loads(text)["function"]["parameters"] for name, text in texts.items()}
    expected = [expected_call(call, parameters) for call in answer]
    return {"id": f"bfcl-{row['id']}", "messages": messages, "texts": texts, "expected": expected}


def read_tasks(wheel: zipfile.ZipFile) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every task of every category, and the dropped ones with their reasons."""
    tasks, dropped = [], {}
    for source, category in CATEGORIES.items():
        answers: dict[str, Any] = {}
        if "irrelevance" not in category:
            rows = read_rows(wheel, f"possible_answer/BFCL_v4_{category}")
            answers = {row["id"]: row["ground_truth"] for row in rows}
        for row in read_rows(wheel, f"BFCL_v4_{category}"):
            try:
                tasks.append({"source": source, **convert(row, answers.get(row["id"], []))})
            except Dropped as why:
                dropped[f"bfcl-{row['id']}"] = str(why)
    return tasks, dropped


def assign_split(tasks: list[dict[str, Any]]) -> None:
    """Writes each task's split, and removes held-out functions from train tasks."""
    family = families([call["name"] for call in task["expected"]] for task in tasks)
    for task in tasks:
        decider = task["expected"][0]["name"] if task["expected"] else next(iter(task["texts"]))
        task["split"] = "held_out" if is_held_out(decider, family) else "train"
        if task["split"] == "train":
            task["texts"] = {n: text for n, text in task["texts"].items() if not is_held_out(n, family)}


def lines(tasks: list[dict[str, Any]], dropped: dict[str, str]) -> list[str]:
    """The shipped file: a header, then each distinct tool once, then a line a task."""
    texts = sorted({text for task in tasks for text in task["texts"].values()})
    for text in texts:
        Draft202012Validator.check_schema(json.loads(text)["function"]["parameters"])
    place = {text: number for number, text in enumerate(texts)}
    header = {"source": f"bfcl-eval=={VERSION}", "licence": "Apache-2.0", "tools": len(texts), "dropped": dropped}
    rows = [
        {
            **{key: task[key] for key in ("id", "source", "split", "messages")},
            "tools": [place[text] for text in task["texts"].values()],
            "expected": task["expected"],
        }
        for task in tasks
    ]
    return [dump(header), *texts, *map(dump, rows)]


def build(wheel_path: Path) -> bytes:
    """The bytes of the shipped file."""
    data = wheel_path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{wheel_path.name}: SHA-256 is {found}, expected {SHA256}; use bfcl-eval=={VERSION}.")
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        tasks, dropped = read_tasks(wheel)
    assign_split(tasks)
    text = "\n".join(lines(tasks, dropped)) + "\n"
    return gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)


def main() -> None:
    """Builds the file from the wheel named on the command line, or a fetched one."""
    with tempfile.TemporaryDirectory() as folder:
        data = build(Path(sys.argv[1]) if len(sys.argv) > 1 else fetch_wheel(folder))
    OUT.write_bytes(data)
    print(f"{OUT.name}: {len(data):,} bytes")


if __name__ == "__main__":
    main()

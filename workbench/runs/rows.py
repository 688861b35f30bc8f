"""A group as rows of a table and back, one row a completion: the columns that :mod:`workbench.runs.groups` stores.

Columns: ``group_index``, ``completion_index``; ``task_id``, ``source``, ``split``, ``kind``, ``messages_json``,
``tools_json``, ``expected_json``; ``model``, ``sampling_json``; ``text``, ``token_ids``, ``tokens``, ``logps``,
``entropies``, ``ref_logps`` (float32 lists; ``ref_logps`` null when no reference was asked), ``stop_reason``,
``error``, ``prefill``; ``dimensions`` and for each of them ``score_<name>`` (null: unscored; 0 means zero) and
``reason_<name>``.

Model text may hold lone surrogates, which UTF-8 cannot carry. :func:`to_utf8` writes each as U+F8FF and four
hexadecimal digits, and U+F8FF itself twice; every other string is stored as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.types import Completion, ExpectedCall, Group, SamplingConfig, Score, Split, StopReason, Task

if TYPE_CHECKING:
    import pyarrow as pa

_ESCAPE = "\uf8ff"  # private use: no assigned character is lost by giving it this meaning
_NEEDS_ESCAPE = re.compile("[\ud800-\udfff\uf8ff]")
_ESCAPED = re.compile("\uf8ff(\uf8ff|[0-9a-f]{4})")
_TEXT_COLUMNS = (
    *("task_id", "source", "split", "kind", "messages_json", "tools_json", "expected_json"),
    *("model", "sampling_json", "text", "stop_reason", "error", "prefill"),
)
_FLOAT_LISTS = ("logps", "entropies", "ref_logps")
OWN_COLUMNS = ("group_index", "completion_index", *_TEXT_COLUMNS, "token_ids", "tokens", *_FLOAT_LISTS, "dimensions")


def to_utf8(text: str) -> str:
    r"""The text with every lone surrogate (and the escape character itself) escaped, so that UTF-8 can carry it.

    >>> to_utf8("ok") == "ok", to_utf8("\ud800") == "\uf8ffd800"
    (True, True)
    """
    return _NEEDS_ESCAPE.sub(lambda m: _ESCAPE * 2 if m[0] == _ESCAPE else f"{_ESCAPE}{ord(m[0]):04x}", text)


def from_utf8(text: str) -> str:
    r"""The inverse of :func:`to_utf8`.

    >>> from_utf8(to_utf8("a\udcffb\uf8ff")) == "a\udcffb\uf8ff"
    True
    """
    return _ESCAPED.sub(lambda m: _ESCAPE if m[1] == _ESCAPE else chr(int(m[1], 16)), text)


def schema_of(dimensions: Sequence[str]) -> pa.Schema:
    """The columns and their types, for groups scored on these dimensions."""
    import pyarrow as pa

    fields = [pa.field("group_index", pa.int32()), pa.field("completion_index", pa.int32())]
    fields += [pa.field(name, pa.string()) for name in _TEXT_COLUMNS]
    fields += [pa.field("token_ids", pa.list_(pa.int32())), pa.field("tokens", pa.list_(pa.string()))]
    fields += [pa.field(name, pa.list_(pa.float32())) for name in _FLOAT_LISTS]
    fields.append(pa.field("dimensions", pa.list_(pa.string())))
    for name in dimensions:
        fields += [pa.field(f"score_{name}", pa.float64()), pa.field(f"reason_{name}", pa.string())]
    return pa.schema(fields)


def rows_of(index: int, group: Group) -> Iterator[dict[str, Any]]:
    """One dictionary a completion, by column name; a column that does not apply is left out."""
    if not group.completions:
        raise InputError(f"groups: group {index} ({group.task.id}) has no completions; there is no row to write.")
    shared = {name: to_utf8(value) for name, value in _group_texts(group).items()}
    for k, completion in enumerate(group.completions):
        row: dict[str, Any] = {"group_index": index, "completion_index": k, **shared}
        row |= _completion_row(completion)
        row["dimensions"] = list(group.dimensions)
        for name, score in (group.scores[k] if group.scores else {}).items():
            row |= {f"score_{name}": score.value, f"reason_{name}": to_utf8(score.reason)}
        yield row


def _group_texts(group: Group) -> dict[str, str]:
    task = group.task
    return {
        "task_id": task.id,
        "source": task.source,
        "split": str(task.split),
        "kind": task.kind,
        "messages_json": _json([dict(m) for m in task.messages]),
        "tools_json": task.tools_json,
        "expected_json": _json([_expected_row(call) for call in task.expected]),
        "model": group.model,
        "sampling_json": _json(asdict(group.sampling)),
    }


def _expected_row(call: ExpectedCall) -> dict[str, Any]:
    arguments = {name: list(values) for name, values in call.arguments.items()}
    return {"name": call.name, "arguments": arguments, "optional": sorted(call.optional)}


def _completion_row(completion: Completion) -> dict[str, Any]:
    return {
        "text": to_utf8(completion.text),
        "token_ids": list(completion.token_ids),
        "tokens": [to_utf8(token) for token in completion.tokens],
        "logps": list(completion.logps),
        "entropies": list(completion.entropies),
        "ref_logps": None if completion.ref_logps is None else list(completion.ref_logps),
        "stop_reason": str(completion.stop_reason),
        "error": None if completion.error is None else to_utf8(completion.error),
        "prefill": to_utf8(completion.prefill),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def groups_from(columns: dict[str, list[Any]]) -> Iterator[Group]:
    """The groups of these columns, in the order of their rows; the inverse of :func:`rows_of`.

    Raises :class:`InputError` when a group lacks a completion or rows of groups are mixed.
    """
    index = columns["completion_index"]
    starts = [row for row, k in enumerate(index) if k == 0]
    if index and (not starts or starts[0] != 0):
        raise InputError("the first group lacks its first completion.")
    for start, end in zip(starts, [*starts[1:], len(index)], strict=False):
        if index[start:end] != list(range(end - start)):
            raise InputError(f"group {columns['group_index'][start]} lacks a completion, or rows were moved.")
        if len(set(columns["group_index"][start:end])) != 1:
            raise InputError(f"rows of different groups are mixed from row {start}.")
        yield _group(columns, start, end)


def _group(columns: dict[str, list[Any]], start: int, end: int) -> Group:
    texts = {name: from_utf8(columns[name][start]) for name in _TEXT_COLUMNS[:9]}
    scores = tuple(_scores(columns, row) for row in range(start, end))
    return Group(
        task=_task(**{name: texts[name] for name in _TEXT_COLUMNS[:7]}),
        completions=tuple(_completion(columns, row) for row in range(start, end)),
        scores=scores if any(scores) else (),
        model=texts["model"],
        sampling=SamplingConfig(**json.loads(texts["sampling_json"])),
    )


@lru_cache(maxsize=4096)
def _task(
    task_id: str, source: str, split: str, kind: str, messages_json: str, tools_json: str, expected_json: str
) -> Task:
    expected = tuple(
        ExpectedCall(
            call["name"], {k: tuple(v) for k, v in call["arguments"].items()}, optional=frozenset(call["optional"])
        )
        for call in json.loads(expected_json)
    )
    return Task(task_id, source, Split(split), tuple(json.loads(messages_json)), tools_json, expected, kind)


def _completion(columns: dict[str, list[Any]], row: int) -> Completion:
    error = columns["error"][row]
    return Completion(
        text=from_utf8(columns["text"][row]),
        token_ids=columns["token_ids"][row],
        tokens=tuple(from_utf8(token) for token in columns["tokens"][row]),
        logps=columns["logps"][row],
        entropies=columns["entropies"][row],
        ref_logps=columns["ref_logps"][row],
        stop_reason=StopReason(columns["stop_reason"][row]),
        error=None if error is None else from_utf8(error),
        prefill=from_utf8(columns["prefill"][row]),
    )


def _scores(columns: dict[str, list[Any]], row: int) -> dict[str, Score]:
    return {
        name: Score(columns[f"score_{name}"][row], from_utf8(columns[f"reason_{name}"][row]))
        for name in columns["dimensions"][row]
    }

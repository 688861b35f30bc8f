"""Groups survive the trip to disk exactly, and a file that is torn or not ours is refused in one sentence."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.runs.groups import extra_columns, read_groups, write_groups
from workbench.runs.rows import from_utf8, to_utf8
from workbench.types import Completion, ExpectedCall, Group, SamplingConfig, Score, Split, StopReason, Task

HOSTILE = "\x00 \U0001f600 \ud83d\ude00 \udcff \uf8ff \uf8ffd800 </td> \r\n"
texts = st.text(st.characters(exclude_categories=()), max_size=20) | st.just(HOSTILE)  # lone surrogates included
float32s = st.floats(width=32, allow_nan=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
expected_calls = st.builds(
    ExpectedCall,
    name=texts,
    arguments=st.dictionaries(texts, st.lists(json_values, max_size=2).map(tuple), max_size=2),
    optional=st.frozensets(texts, max_size=2),
)
tasks = st.builds(
    Task,
    id=texts,
    source=texts,
    split=st.sampled_from(Split),
    messages=st.lists(st.dictionaries(texts, json_values, max_size=2), max_size=2).map(tuple),
    tools_json=st.just("[]"),
    expected=st.lists(expected_calls, max_size=2).map(tuple),
    kind=texts,
)
floats = st.lists(float32s, max_size=3).map(tuple)
completions = st.builds(
    Completion,
    text=texts,
    token_ids=st.lists(st.integers(0, 2**31 - 1), max_size=3).map(tuple),
    tokens=st.lists(texts, max_size=3).map(tuple),
    logps=floats,
    entropies=floats,
    ref_logps=st.none() | floats,
    stop_reason=st.sampled_from(StopReason),
    error=st.none() | texts,
    prefill=texts,
)
scores = st.builds(Score, st.none() | st.floats(allow_nan=False, allow_infinity=False), texts)


@st.composite
def groups(draw) -> Group:
    rows = draw(st.lists(completions, min_size=1, max_size=3))
    names = draw(st.lists(st.sampled_from(["task_completion", "safety", "efficiency"]), unique=True))
    scored = tuple({name: draw(scores) for name in names} for _ in rows) if names else ()
    return Group(draw(tasks), tuple(rows), scored, draw(texts), SamplingConfig(seed=draw(st.integers(0, 2**63 - 1))))


@settings(max_examples=60, deadline=None)
@given(st.lists(groups(), max_size=3))
def test_what_is_written_is_read_back_equal(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("groups") / "g.parquet"
    write_groups(path, written)
    read = read_groups(path)
    assert read == written
    assert [g.dimensions for g in read] == [g.dimensions for g in written], "the order of dimensions is part of a group"


@given(texts)
@example("\ud83d\ude00")
@example("\uf8ff\uf8ff\uf8ffd800\ud800")
def test_u6_any_python_text_fits_into_utf8_and_comes_back(text):
    encoded = to_utf8(text)
    encoded.encode("utf-8")
    assert from_utf8(encoded) == text


def small_group(**changes) -> Group:
    task = Task("desk-3", "desk", Split.HELD_OUT, ({"role": "user", "content": "set a timer"},))
    rows = tuple(Completion(f"answer {k}", (k, 2), ("a", "b"), (-0.5, -1.25), (0.5, 0.0)) for k in range(3))
    marks = ({"safety": Score(0.0, "unsafe")}, {"safety": Score(None, "judge away")}, {"safety": Score(1.0, "safe")})
    return dataclasses.replace(Group(task, rows, marks, "nano"), **changes)


def test_unscored_stays_none_and_zero_stays_zero(tmp_path):
    group = read_groups(write_groups(tmp_path / "g.parquet", [small_group()]))[0]
    assert [row["safety"].value for row in group.scores] == [0.0, None, 1.0]
    np.testing.assert_array_equal(group.rewards_per_func(), [[0.0], [math.nan], [1.0]])


def test_token_numbers_come_back_as_the_nearest_float32(tmp_path):
    group = small_group(completions=(Completion("x", (1,), ("x",), (-0.1,), (math.inf,), (-math.inf,)),), scores=())
    read = read_groups(write_groups(tmp_path / "g.parquet", [group]))[0].completions[0]
    assert read.logps == (float(np.float32(-0.1)),)
    assert read.entropies == (math.inf,)
    assert read.ref_logps == (-math.inf,)


def test_groups_scored_on_different_dimensions_share_a_file(tmp_path):
    other = small_group(scores=tuple({"efficiency": Score(None, "later"), "safety": Score(1, "")} for _ in range(3)))
    written = [small_group(), other, small_group(scores=())]
    assert read_groups(write_groups(tmp_path / "g.parquet", written)) == written


def test_columns_of_the_caller_are_kept(tmp_path):
    group = small_group()
    first = write_groups(
        tmp_path / "a.parquet", [group], extra={"note": ["a", None, "c"], "score_elsewhere": [1, 2, 3]}
    )
    assert read_groups(first) == [group]
    again = write_groups(tmp_path / "b.parquet", read_groups(first), extra=extra_columns(first))
    assert extra_columns(again) == {"note": ["a", None, "c"], "score_elsewhere": [1, 2, 3]}


@pytest.mark.parametrize(
    ("extra", "sentence"), [({"note": ["a"]}, "needs 3 values"), ({"text": ["a"] * 3}, "one of the workbench's own")]
)
def test_a_wrong_extra_column_is_refused(tmp_path, extra, sentence):
    with pytest.raises(InputError, match=sentence):
        write_groups(tmp_path / "g.parquet", [small_group()], extra=extra)


def test_a_group_without_completions_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(InputError, match="has no completions"):
        write_groups(tmp_path / "g.parquet", [small_group(completions=(), scores=())])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file_whole(tmp_path, monkeypatch):
    path = write_groups(tmp_path / "g.parquet", [small_group()])

    def torn(table, where, **options):
        with open(where, "wb") as file:
            file.write(b"PAR1 and then the power went")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", torn)
    with pytest.raises(KeyboardInterrupt):
        write_groups(path, [small_group(model="other")])
    assert [p.name for p in tmp_path.iterdir()] == ["g.parquet"]
    assert read_groups(path) == [small_group()]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_torn_file_is_refused(tmp_path, share):
    path = write_groups(tmp_path / "g.parquet", [small_group()] * 5)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match="not a readable parquet file"):
        read_groups(path)


def test_files_that_are_not_ours_are_refused(tmp_path):
    path = tmp_path / "other.parquet"
    with pytest.raises(InputError, match="no such file"):
        read_groups(path)
    pq.write_table(pa.table({"prompt": ["a"], "advantage": [0.5]}), path)
    with pytest.raises(InputError, match="not one of groups"):
        read_groups(path)


def edited(path, edit) -> None:
    pq.write_table(edit(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda t: t.replace_schema_metadata({"workbench_groups": "99"}), "schema 99; this workbench reads up to 1"),
        (lambda t: t.drop_columns(["logps"]), "without its column 'logps'"),
        (lambda t: t.slice(1), "lacks its first completion"),
        (lambda t: t.take([0, 2, 3, 4, 5]), "group 0 lacks a completion"),
        (lambda t: t.take([0, 1, 5, 3, 4, 2]), "rows of different groups are mixed"),
        (lambda t: t.set_column(11, "text", pa.array([None] * 6, pa.string())), "damaged row"),
        (lambda t: t.set_column(10, "sampling_json", pa.array(['{"K": 8}'] * 6)), "damaged row"),
        (lambda t: t.set_column(10, "sampling_json", pa.array(['{"num_generations": 1}'] * 6)), "needs at least 2"),
        (lambda t: t.set_column(12, "stop_reason", pa.array(["bored"] * 6)), "damaged row"),
        (lambda t: t.drop_columns(["reason_safety"]), "damaged row"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, edit, sentence):
    path = write_groups(tmp_path / "g.parquet", [small_group(), small_group()])
    names = pq.read_table(path).column_names
    assert (names[10], names[11], names[12]) == ("sampling_json", "text", "stop_reason")
    edited(path, edit)
    with pytest.raises(InputError, match=sentence):
        read_groups(path)


def test_a_file_rewritten_in_several_row_groups_and_wide_types_still_reads(tmp_path):
    written = [small_group() for _ in range(4)]
    path = write_groups(tmp_path / "g.parquet", written)
    table = pq.read_table(path)
    wide = [
        pa.field(f.name, pa.large_list(f.type.value_type) if pa.types.is_list(f.type) else f.type) for f in table.schema
    ]
    table = table.cast(pa.schema(wide, metadata=table.schema.metadata))
    pq.write_table(table, path, row_group_size=2)
    assert read_groups(path) == written

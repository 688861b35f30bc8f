"""The conversion script: types, optional values, combinations, families; and that it gives the shipped bytes."""

from __future__ import annotations

import gzip
import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("build_bfcl", ROOT / "scripts" / "build_bfcl.py")
build_bfcl = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_bfcl)


def test_bfcl_build_maps_types_by_place_and_not_by_word():
    schema = build_bfcl.json_schema(
        {
            "type": "dict",
            "properties": {
                "type": {"type": "any", "description": "d"},
                "pair": {"type": "tuple", "items": {"type": "float"}, "optional": True},
            },
            "required": ["type"],
        }
    )
    assert schema == {
        "type": "object",
        "properties": {"type": {"description": "d"}, "pair": {"type": "array", "items": {"type": "number"}}},
        "required": ["type"],
    }


@pytest.mark.parametrize(
    ("accepted", "schema", "plain"),
    [
        (["a", ""], {"type": "string"}, ["a", ""]),
        ([3, ""], {"type": "integer"}, [3]),
        (["dontcare", ""], {"type": "integer"}, ["dontcare", ""]),
        ([[1], ""], {"type": "array", "items": {"type": "integer"}}, [[1], []]),
        ([None, "x"], {"type": "string"}, ["x", None]),
        ([2.0, 2], {"type": "integer"}, [2, 2.0]),
        ([{"a": [1, 2], "b": ["", 3]}], {"type": "object"}, [{"a": 1, "b": 3}, {"a": 1}, {"a": 2, "b": 3}, {"a": 2}]),
        ([{"a": [""]}], {"type": "object"}, [{"a": ""}, {}]),
        ([{}], {"type": "object"}, [{}]),
        ([[{"a": [1]}, {"a": [2, 3]}]], {"type": "array", "items": {"type": "object"}},
         [[{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}]]),
    ],
)  # fmt: skip
def test_bfcl_build_writes_accepted_values_out_with_those_that_fit_first(accepted, schema, plain):
    assert build_bfcl.accepted_values(accepted, schema) == plain


def test_bfcl_build_drops_an_answer_that_does_not_fit_its_schema():
    parameters = {"f": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    assert build_bfcl.expected_call({"f": {"a": [1, ""]}}, parameters)["optional"] == []
    for call, words in (
        ({"g": {}}, "g is not offered"),
        ({"f": {"a": ["x"]}}, "'x' is not of type 'integer'"),
        ({"f": {}}, "'a' is a required property"),
        ({"f": {"a": [1], "b": [2]}}, "needs 'b'"),
    ):
        with pytest.raises(build_bfcl.Dropped, match=words):
            build_bfcl.expected_call(call, parameters)


def test_bfcl_build_puts_names_of_one_answer_into_one_family():
    family = build_bfcl.families([["b", "c"], ["d"], ["c", "a"], []])
    assert family == {"a": "a", "b": "a", "c": "a", "d": "d"}
    assert build_bfcl.is_held_out("b", family) == build_bfcl.is_held_out("c", family)


def test_bfcl_build_refuses_another_wheel(tmp_path):
    wheel = tmp_path / "bfcl_eval-2026.3.23-py3-none-any.whl"
    wheel.write_bytes(b"not it")
    with pytest.raises(SystemExit, match="SHA-256"):
        build_bfcl.build(wheel)


@pytest.mark.bfcl
@pytest.mark.slow
def test_bfcl_build_gives_the_shipped_file_again():
    wheel = os.environ.get("BFCL_WHEEL")
    if not wheel:
        pytest.skip("set BFCL_WHEEL to the path of bfcl_eval-2026.3.23-py3-none-any.whl to build the file again")
    assert gzip.decompress(build_bfcl.build(Path(wheel))) == gzip.decompress(build_bfcl.OUT.read_bytes())

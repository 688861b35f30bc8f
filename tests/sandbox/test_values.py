"""Values cross as data: they come back equal and of exact builtin types, and no bytes can do more than be refused."""

import contextlib
import enum
import json
import math
from collections import Counter, OrderedDict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workbench.sandbox.outcome import Limits, Reason
from workbench.sandbox.remote import read_answer
from workbench.sandbox.values import NotData, decode, encode

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()) | st.binary()
)
SCALARS |= st.integers(-(2**3000), 2**3000) | st.complex_numbers(allow_nan=False)
KEYS = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=20,
)


def types_of(value):
    inside = []
    if isinstance(value, dict):
        inside = [*value.items()]
    elif isinstance(value, (list, tuple)):
        inside = list(value)
    elif isinstance(value, (set, frozenset)):
        inside = sorted(value, key=repr)
    return type(value), [types_of(v) for v in inside]


@settings(deadline=None)
@given(VALUES)
def test_what_is_sent_comes_back_equal_and_of_the_same_types(value):
    back = decode(encode(value))
    assert back == value
    assert types_of(back) == types_of(value)


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b'{"int":"0x' + b"f" * 100 + b'"}')
@example(b"1e999")
@example(b'{"complex":[1,2]}')
@example(b'{"set":[[1]]}')
@example(b'{"dict":[[[1],2]]}')
@example(b'{"bytes":"zz"}')
def test_any_bytes_are_data_or_refused(data):
    with contextlib.suppress(NotData):
        decode(data)


@pytest.mark.parametrize("data", [b"[" * 10**6, b'{"set":[' * 10**5, b'"' + b"\\" * 10**6, b'"' + b'\\"[' * 10**5])
def test_a_megabyte_of_brackets_or_backslashes_is_refused(data):
    with pytest.raises(NotData):
        decode(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["int", "float", "bytes", "complex", "tuple", "set", "frozenset", "dict", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
def test_any_json_is_an_answer_or_a_protocol_failure(message):
    reason, detail, value = read_answer("n", json.dumps(message).encode(), Limits())
    assert reason is not Reason.INFRASTRUCTURE
    assert detail.isprintable()
    assert value is None or reason is Reason.RETURNED


@settings(deadline=None)
@given(JSON)
def test_an_answer_never_claims_an_infrastructure_failure(payload):
    for kind in ("value", "raised", "memory", "not_data", "infrastructure", "failed", "ready"):
        reason, _, _ = read_answer("n", json.dumps(["n", kind, payload]).encode(), Limits())
        assert reason is not Reason.INFRASTRUCTURE


class Colour(enum.IntEnum):
    RED = 1


class Word(str):
    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (Colour.RED, 1),
        (Word("a"), "a"),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (bytearray(b"x"), b"x"),
    ],
)
def test_subclasses_are_sent_as_the_builtin_they_derive_from(value, sent):
    back = decode(encode(value))
    assert (back, type(back)) == (sent, type(sent))


def test_nan_and_infinities_cross():
    back = decode(encode([math.nan, math.inf, -math.inf, complex(math.nan, 0.0)]))
    assert math.isnan(back[0])
    assert back[1:3] == [math.inf, -math.inf]
    assert math.isnan(back[3].real)


@pytest.mark.parametrize("value", [object(), len, (i for i in ()), range(3), iter([]), {1: object()}, Ellipsis, int])
def test_what_is_no_data_is_refused(value):
    with pytest.raises(NotData, match="not plain data"):
        encode(value)


def test_depth_is_bounded_both_ways():
    deep = []
    for _ in range(70):
        deep = [deep]
    with pytest.raises(NotData, match="nested too deeply"):
        encode(deep)
    with pytest.raises(NotData, match="nested deeper"):
        decode(b"[" * 300 + b"]" * 300)
    assert decode(b'"' + b"[" * 300 + b'"') == "[" * 300


def test_brackets_in_strings_do_not_count_as_depth():
    text = ['["\\' * 200] * 3
    assert decode(encode(text)) == text


def test_keys_chosen_to_collide_are_refused():
    prime = 2**61 - 1  # Python's modulus for the hash of numbers
    keys = [[{"int": hex(i * prime)}, 0] for i in range(1, 100)]
    assert decode(json.dumps({"dict": keys[:60]}).encode())
    with pytest.raises(NotData, match="chosen to collide"):
        decode(json.dumps({"dict": keys}).encode())
    with pytest.raises(NotData, match="chosen to collide"):
        decode(json.dumps({"set": [key for key, _ in keys]}).encode())

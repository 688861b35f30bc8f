"""The pieces of a row join to its whole text, whatever the bytes and whatever the tokenizer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from workbench.models.untrained import byte_tokenizer
from workbench.rollouts.pieces import PieceReader, decode, stands_alone

BYTES = byte_tokenizer()


def sentencepiece_like():
    """Tokens carry their leading space as a mark, and the first one loses it: text depends on what precedes."""
    words = ["?", "\u2581one", "\u2581two", ",", "\u2581(", "three", ")", "\u2581four"]
    core = Tokenizer(models.Unigram([(word, -1.0) for word in words], unk_id=0))
    core.pre_tokenizer, core.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=core, unk_token="?")


def read(tokenizer, ids):
    reader = PieceReader(tokenizer)
    return [reader.push(i) for i in ids], reader.flush()


@given(st.text(max_size=40))
def test_pieces_of_any_text_join_to_it(text):
    ids = BYTES(text, add_special_tokens=False)["input_ids"]
    pieces, rest = read(BYTES, ids)
    assert "".join(pieces) + rest == decode(BYTES, ids)


@given(st.lists(st.integers(0, 258), max_size=60))
@settings(max_examples=300)
def test_pieces_of_any_bytes_join_to_the_whole_decoded_once(ids):
    pieces, rest = read(BYTES, ids)
    assert "".join(pieces) + rest == decode(BYTES, ids)


def test_a_character_of_several_tokens_appears_whole_with_its_last_one():
    ids = BYTES("a\u20acb", add_special_tokens=False)["input_ids"]
    assert read(BYTES, ids) == (["a", "", "", "\u20ac", "b"], "")


def test_an_unfinished_character_is_shown_at_the_end_only():
    ids = BYTES("a\u20ac", add_special_tokens=False)["input_ids"][:-1]
    assert read(BYTES, ids) == (["a", "", ""], "\ufffd")


def test_a_tokenizer_whose_text_depends_on_context_is_read_in_context():
    tokenizer = sentencepiece_like()
    assert not stands_alone(tokenizer)
    assert stands_alone(BYTES)
    text = "one two (three) four one two, one"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    pieces, rest = read(tokenizer, ids)
    assert "".join(pieces) + rest == decode(tokenizer, ids) == text
    assert pieces[1] == " two"


@pytest.mark.parametrize("mark", ["<tool_call>", "<|im_start|>"])
def test_special_tokens_keep_their_text(mark):
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<tool_call>"]})
    assert decode(tokenizer, [tokenizer.convert_tokens_to_ids(mark)]) == mark

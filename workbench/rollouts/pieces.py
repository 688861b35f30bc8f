"""The text of each sampled token, such that the pieces join to the whole text, whatever bytes a token holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

BROKEN = "\ufffd"  # what decoding shows for bytes that are not (yet) a character

HELD = 12  # tokens held back before a run of broken bytes is given piecemeal

_STANDALONE: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_PIECES: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of ``ids``, special tokens kept (a model's ``<tool_call>`` may be one) and no clean-up of spaces."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


class PieceReader:
    """Feed one row's tokens one by one and get the text each of them completes.

    A token that ends in the middle of a character gives ``""``, and the token that completes it gives the whole
    character, so nothing is ever shown that is taken back later.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.pending: list[int] = []  # ids whose text has not been given yet
        self.context: list[int] = []  # ids before them, for tokenizers whose text depends on what precedes
        self.standalone = stands_alone(tokenizer)
        self.memo = _PIECES.setdefault(tokenizer, {})

    def push(self, token_id: int) -> str:
        """The text that ``token_id`` completes."""
        if self.standalone and not self.pending:
            piece = self.memo.get(token_id)
            if piece is None:
                piece = self.memo[token_id] = decode(self.tokenizer, [token_id])
            if BROKEN not in piece:
                return piece
        self.pending.append(token_id)
        piece = self._pending_text()
        if not piece.endswith(BROKEN):
            return self._given(piece)
        return self._settled(piece) if len(self.pending) > HELD else ""

    def flush(self) -> str:
        """The text still held back at the end of a row (a character that was never completed)."""
        return self._given(self._pending_text()) if self.pending else ""

    def _settled(self, piece: str) -> str:
        """Of a long run of bytes that make no character: all but its last tokens, where the text splits cleanly."""
        head, tail = self.pending[:-4], self.pending[-4:]
        text = decode(self.tokenizer, [*self.context, *head])[len(decode(self.tokenizer, self.context)) :]
        if text + decode(self.tokenizer, tail) != piece:
            return ""
        self.pending = head
        self._given(text)
        self.pending = tail
        return text

    def _pending_text(self) -> str:
        before = decode(self.tokenizer, self.context)
        return decode(self.tokenizer, [*self.context, *self.pending])[len(before) :]

    def _given(self, piece: str) -> str:
        self.context = [] if self.standalone else self.pending[-4:]
        self.pending = []
        return piece


def stands_alone(tokenizer: Any) -> bool:
    """Whether a token's text does not depend on the tokens before it (byte-level BPE: yes; SentencePiece: no)."""
    known = _STANDALONE.get(tokenizer)
    if known is None:
        ids = tokenizer("one two, (three) four", add_special_tokens=False)["input_ids"]
        known = "".join(decode(tokenizer, [i]) for i in ids) == decode(tokenizer, ids)
        _STANDALONE[tokenizer] = known
    return known

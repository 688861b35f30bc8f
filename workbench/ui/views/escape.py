"""Text that others wrote, made safe to put into a page. Everything in `views/` passes through here."""

from __future__ import annotations

import html
import re

FOLD_AT = 1200  # characters shown before "show all"
_INVISIBLE = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")  # can make text read as what it is not
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escaped(text: object) -> str:
    """``text`` with markup, control characters, lone surrogates and direction overrides made visible and harmless.

    >>> escaped('<img src=x onerror="alert(1)">')
    '&lt;img src=x onerror=&quot;alert(1)&quot;&gt;'
    >>> escaped("a" + chr(0xD800) + "b" + chr(0x202E) + "c")
    'a⟨U+D800⟩b⟨U+202E⟩c'
    """
    shown = _UNPRINTABLE.sub(_named, _INVISIBLE.sub(_named, str(text)))
    return html.escape(shown, quote=True)


def folded(text: str, *, limit: int = FOLD_AT, tag: str = "span") -> str:
    """Escaped text; when longer than ``limit`` characters, cut at a word with the whole behind "show all"."""
    if len(text) <= limit:
        return f"<{tag}>{escaped(text)}</{tag}>"
    head = cut_at_word(text, limit)
    size = f"{len(text):,}".replace(",", " ")
    return (
        f"<details class='fold'><summary><{tag}>{escaped(head)}…</{tag}> "
        f"<span class='more'>show all {size} characters</span>"
        f"</summary><{tag}>{escaped(text)}</{tag}></details>"
    )


def cut_at_word(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, ending at a space where there is one in the second half.

    >>> cut_at_word("one two three", 9)
    'one two'
    """
    if len(text) <= limit:
        return text
    space = text.rfind(" ", limit // 2, limit + 1)
    return text[: space if space > 0 else limit].rstrip()


def first_line(text: str, limit: int = 80) -> str:
    """The first line that says something, cut at a word; escaped."""
    line = next((part for part in text.splitlines() if part.strip()), "")
    short = cut_at_word(line.strip(), limit)
    return escaped(short) + ("…" if len(short) < len(text.strip()) else "")


def visible_token(text: str) -> str:
    """A token as it stands in a strip: its own text, with line ends and lone spaces given a visible sign; escaped."""
    return escaped(text).replace("\r", "␍").replace("\n", "⏎\n").replace("\t", "⇥\t")


def _named(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match.group()):04X}⟩"

"""Random draws from one half of the split, and what may fill each slot of a phrasing.

The randomness is our own use of ``random.Random(seed).random()``, the one method whose sequence Python guarantees.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from workbench.tasks.desk.phrasings import Phrasing
from workbench.tasks.desk.tools import CURRENCIES, DAYS
from workbench.tasks.desk.values import HALVES, half
from workbench.types import Split

T = TypeVar("T")


class Draw:
    """Random choices from one half of the split; reproducible from its seed on every Python version."""

    def __init__(self, seed: int, split: Split):
        self.random = random.Random(seed).random
        self.split = split

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, each as likely."""
        return choices[int(self.random() * len(choices))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""
        keyed = sorted((self.random(), index) for index in range(len(items)))
        return [items[index] for _, index in keyed]

    def word(self, pool: str) -> str:
        """A word of the named pool, from this draw's half."""
        return self.pick(HALVES[pool, self.split])

    def number(self, kind: str, low: int, high: int) -> int:
        """A whole number from low to high, from this draw's half of the numbers of that kind."""
        return self.pick(_numbers(kind, low, high, self.split))


@lru_cache(maxsize=64)
def _numbers(kind: str, low: int, high: int, split: Split) -> tuple[int, ...]:
    return tuple(n for n in range(low, high + 1) if half(f"{kind} {n}") == split)


def _amount(draw: Draw) -> int | float:
    whole = draw.number("amount", 5, 999) if draw.chance(0.7) else draw.number("amount", 5, 99)
    return whole + 0.5 if draw.chance(0.12) else whole


def _sum(draw: Draw) -> tuple[str, str, tuple[str, ...]]:
    """A sum as words, as a symbol expression, and the ways of writing it that are accepted."""
    word, sign = draw.pick((("plus", "+"), ("minus", "-"), ("times", "*"), ("divided by", "/")))
    a = draw.number("sum", 12, 499)
    b = draw.number("sum", 2, 99)
    orders = [(a, b), (b, a)] if sign in "+*" else [(a, b)]
    accepted = [form for x, y in orders for form in (f"{x} {sign} {y}", f"{x}{sign}{y}")]
    return f"{a} {word} {b}", f"{a} {sign} {b}", tuple(accepted)


def _cased(text: str) -> tuple[str, ...]:
    """The spellings of a name or title that are accepted, the one in the request first."""
    return tuple(dict.fromkeys((text, text.lower(), text[0].upper() + text[1:], text.title())))


def _subject(text: str) -> tuple[str, ...]:
    plain = text.removeprefix("the ")
    forms = (*_cased(text), *_cased(plain), *_cased(f"the {plain}"))
    return tuple(dict.fromkeys(forms))


def slots(draw: Draw, phrasing: Phrasing) -> tuple[dict[str, str], dict[str, tuple[Any, ...]]]:
    """What to write into a phrasing, and the accepted values of each argument that its tool has.

    Arguments the phrasing fixes itself (``urgent``, ``day: tomorrow``) come from ``phrasing.fixed``.
    """
    text: dict[str, str] = {}
    accepted: dict[str, tuple[Any, ...]] = {}
    for slot in phrasing.slots:
        text[slot], accepted[slot] = SLOTS[slot](draw, phrasing)
        while slot == "target" and text[slot] == text["source"]:
            text[slot], accepted[slot] = SLOTS[slot](draw, phrasing)
    accepted.update({key: (value,) for key, value in phrasing.fixed.items()})
    renamed = {phrasing.argument(slot): values for slot, values in accepted.items()}
    return text, renamed


Slot = Callable[[Draw, Phrasing], tuple[str, tuple[Any, ...]]]


def _word_slot(pool: str, forms: Callable[[str], tuple[str, ...]]) -> Slot:
    def fill(draw: Draw, phrasing: Phrasing) -> tuple[str, tuple[Any, ...]]:
        del phrasing
        word = draw.word(pool)
        return word, forms(word)

    return fill


def _plain_slot(choose: Callable[[Draw], Any]) -> Slot:
    def fill(draw: Draw, phrasing: Phrasing) -> tuple[str, tuple[Any, ...]]:
        del phrasing
        value = choose(draw)
        return str(value), (value,)

    return fill


def _sum_slot(spoken: bool) -> Slot:
    def fill(draw: Draw, phrasing: Phrasing) -> tuple[str, tuple[Any, ...]]:
        del phrasing
        words, signs, accepted = _sum(draw)
        return (words if spoken else signs), accepted

    return fill


def _time(draw: Draw) -> str:
    return f"{7 + int(draw.random() * 14):02d}:{draw.pick(('00', '15', '30', '45'))}"


def days_of(phrasing: Phrasing, split: Split) -> tuple[str, ...]:
    """The days a wording of ``list_events`` may ask about: (wording, day) pairs are split, for days are too few."""
    return tuple(day for day in DAYS if half(f"{day}|{phrasing.text}") == split)


def _event_day(draw: Draw, phrasing: Phrasing) -> tuple[str, tuple[Any, ...]]:
    day = draw.pick(days_of(phrasing, draw.split))
    return day, (day,)


SLOTS: dict[str, Slot] = {
    "name": _word_slot("name", _cased),
    "city": _word_slot("city", lambda city: (city,)),
    "file": _word_slot("file", lambda name: (name,)),
    "event": _word_slot("event", _cased),
    "topic": _word_slot("topic", _subject),
    "errand": _word_slot("errand", _cased),
    "label": _word_slot("label", _cased),
    "minutes": _plain_slot(lambda draw: draw.number("minutes", 2, 180)),
    "amount": _plain_slot(_amount),
    "limit": _plain_slot(lambda draw: 2 + int(draw.random() * 8)),
    "day": _plain_slot(lambda draw: draw.pick(DAYS)),
    "event_day": _event_day,
    "time": _plain_slot(_time),
    "hour": _plain_slot(lambda draw: 7 + int(draw.random() * 15)),
    "spoken": _sum_slot(spoken=True),
    "signs": _sum_slot(spoken=False),
    "source": _plain_slot(lambda draw: draw.pick(CURRENCIES)),
    "target": _plain_slot(lambda draw: draw.pick(CURRENCIES)),
}

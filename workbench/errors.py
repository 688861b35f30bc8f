"""Refusals a person can act on: one sentence naming the field, the value and the nearest right one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A value the caller gave cannot be used; its text is one sentence fit to show to a person."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice most like ``name``, or None when nothing is close.

    >>> nearest("safty", ["safety", "efficiency"])
    'safety'
    >>> nearest("zzz", ["safety"]) is None
    True
    """
    matches = get_close_matches(str(name).lower(), [str(c) for c in choices], n=1, cutoff=0.5)
    return matches[0] if matches else None


def unknown(field: str, value: object, choices: Iterable[str]) -> InputError:
    """An :class:`InputError` for a value outside ``choices``, with the nearest one and the whole list.

    >>> str(unknown("std", "sampel", ["sample", "population"]))
    "std: 'sampel' is not known; did you mean 'sample'? Known: sample, population."
    """
    choices = [str(c) for c in choices]
    near = nearest(str(value), choices)
    hint = f"; did you mean {near!r}?" if near else "."
    return InputError(f"{field}: {value!r} is not known{hint} Known: {', '.join(choices)}.")


def checked_range(field: str, value: float, low: float, high: float, *, unit: str = "") -> float:
    """``value`` itself when low <= value <= high; otherwise an :class:`InputError` naming the nearest bound.

    >>> checked_range("temperature", 1.0, 0.0, 2.0)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{field}: {value!r} is not a number; give one from {low:g} to {high:g}{unit}.")
    if not low <= value <= high:  # NaN fails this too
        best = high if value > high else low
        raise InputError(
            f"{field}: {value!r} is outside {low:g} to {high:g}{unit}; the nearest allowed value is {best:g}."
        )
    return value

"""How a number is written for a person: two or three significant digits, a real minus sign, never a bare NaN."""

from __future__ import annotations

import math
from collections.abc import Iterable

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"


def signed(value: float | None, digits: int = 2) -> str:
    """An advantage with its sign always written, so that colour never carries the meaning alone.

    >>> signed(0.944), signed(-0.306), signed(0.0), signed(float("nan"))
    ('+0.94', '−0.31', '0', 'not scored')
    """
    if value is None or math.isnan(value):
        return "not scored"
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0.0:
        return "0"
    return ("+" if value > 0 else MINUS) + text


def plain(value: float | None, digits: int = 2) -> str:
    """A score or a reward, such as ``0.62``; a missing one is a dash.

    >>> plain(0.616), plain(-1.5), plain(None)
    ('0.62', '−1.50', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{abs(value):.{digits}f}"
    return MINUS + text if value < 0 and float(text) != 0.0 else text


def significant(value: float, digits: int = 2) -> str:
    """A number of unknown size at a few significant digits, without a run of zeros.

    >>> significant(0.01234), significant(1234.5), significant(0.0), significant(-3.1e-9)
    ('0.012', '1200', '0', '−3.1e-9')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 6:
        text = f"{round(value, digits - 1 - exponent):.{max(0, digits - 1 - exponent)}f}"
    else:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        text = f"{mantissa}e{int(power)}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def percent(share: float, digits: int = 2) -> str:
    """A share as a percentage.

    >>> percent(0.714), percent(0.0123), percent(0.0), percent(1.0)
    ('71 %', '1.2 %', '0 %', '100 %')
    """
    return "100 %" if share >= 0.995 and share <= 1 else f"{significant(100 * share, digits)} %"


def factor(ratio: float) -> str:
    """How many times likelier something became.

    >>> factor(1.314), factor(0.5), factor(12.3), factor(2.5e9)
    ('×1.31', '×0.50', '×12', '×2.5e9')
    """
    if not math.isfinite(ratio):
        return f"{TIMES}∞"
    if 0.01 <= ratio < 10:
        return f"{TIMES}{ratio:.2f}"
    return f"{TIMES}{significant(ratio)}"


def listed(numbers: Iterable[int]) -> str:
    """A short list of completion numbers in words.

    >>> listed([3]), listed([3, 7]), listed([1, 2, 5])
    ('3', '3 and 7', '1, 2 and 5')
    """
    words = [str(n) for n in numbers]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""

"""Arithmetic from hostile text: numbers, + - * / and brackets, nothing else, bounded in length and size."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

from workbench.errors import InputError

MAX_LENGTH = 64  # characters
LARGEST = 1e12  # no intermediate result may be further from 0
ALLOWED = re.compile(r"[0-9+\-*/(). ]+", re.ASCII)

Number = int | float
OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def calculate(expression: str) -> Number:
    """The value of an arithmetic expression; nothing in it is ever executed.

    Raises :class:`InputError` for anything but numbers, ``+ - * /`` and brackets, for division by zero, and for
    results beyond ``LARGEST``. Whole results come back as ``int``.

    >>> calculate("(12 + 7) * 3")
    57
    >>> calculate("7 / 2")
    3.5
    """
    if len(expression) > MAX_LENGTH or not ALLOWED.fullmatch(expression):
        raise InputError(
            f"expression: {expression[:MAX_LENGTH]!r} is not arithmetic; use numbers, + - * / and brackets, "
            f"at most {MAX_LENGTH} characters."
        )
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"expression: {expression!r} does not parse; write it like '12 * (3 + 4)'.") from None
    value = _value(tree.body, expression)
    return int(value) if float(value).is_integer() else value


def _value(node: ast.expr, expression: str) -> Number:
    """The value of one node of the tree, checked against ``LARGEST``."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            result: Number = value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            inner = _value(operand, expression)
            result = -inner if isinstance(sign, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            a, b = _value(left, expression), _value(right, expression)
            if b == 0 and isinstance(op, ast.Div):
                raise InputError(f"expression: {expression!r} divides by zero; change the divisor.")
            result = OPERATORS[type(op)](a, b)
        case _:
            raise InputError(f"expression: {expression!r} uses more than numbers, + - * / and brackets.")
    if not abs(result) <= LARGEST or not math.isfinite(result):
        raise InputError(f"expression: {expression!r} leaves the range of ±{LARGEST:g}; use smaller numbers.")
    return result

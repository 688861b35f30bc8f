"""Plain values and strict JSON: what leaves the workbench can be read by every parser."""

from __future__ import annotations

import json
import math
from typing import Any


def strict_json(value: Any) -> str:
    """JSON text that every parser takes: no NaN or infinity (they become null), pure ASCII, two-space indent.

    >>> strict_json({"logps": (float("-inf"), 0.5)}).split()
    ['{', '"logps":', '[', 'null,', '0.5', ']', '}']
    """
    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False, indent=2)


def plain(value: Any) -> Any:
    """The value with tuples as lists, keys as text, and every number that JSON cannot say as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist())
    return value

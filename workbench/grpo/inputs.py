"""What the arithmetic accepts: anything that is plainly numbers, as float64; one clear sentence for the rest.

Torch tensors are taken by their own methods, so torch is never imported here.
"""

from __future__ import annotations

from reprlib import repr
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InputError, unknown

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGEST = float(np.finfo(np.float32).max)
"""The largest reward accepted, 3.4e38: the trainers keep rewards in float32, where anything above is infinite."""


def numbers(name: str, values: Any, axes: str) -> tuple[Array, Mask | None]:
    """``values`` as float64 with one axis for each letter of ``axes``, and the mask of those that are not NaN.

    None and masked entries become NaN; booleans become 0 and 1. The mask is None when every entry is a number.
    Raises InputError, naming the position, for text, infinities, ragged rows, empty input and a wrong number of axes.
    """
    array = floats(name, values)
    if array.ndim != len(axes) or not array.size:
        shape, got = f"({', '.join(axes)}{',' * (len(axes) == 1)})", f"shape {array.shape}"
        fix = f"; for one group write [{name}]" if array.ndim == len(axes) - 1 and array.size and axes[0] == "P" else ""
        raise InputError(f"{name}: expected shape {shape}, got {got + ', which is empty' * (not array.size)}{fix}.")
    usable = np.abs(array) <= LARGEST  # False for NaN too
    if usable.all():
        return array, None
    scored = ~np.isnan(array)
    if (scored > usable).any():
        place = tuple(int(i) for i in np.argwhere(scored > usable)[0])
        raise InputError(
            f"{_at(name, place)}: {float(array[place])!r} is not a finite number up to {LARGEST:.1e}; "
            "give None (or NaN) for what could not be scored."
        )
    return array, scored


def groups(name: str, values: Any, axes: str = "PK") -> tuple[Array, Mask | None]:
    """:func:`numbers` for groups: the second axis is K, the completions of one prompt, and K is at least 2."""
    array, scored = numbers(name, values, axes)
    if array.shape[1] < 2:
        raise InputError(f"{name}: K = 1 completion leaves nothing to compare with; a group needs at least 2.")
    return array, scored


def tokens(name: str, values: Any, shape: tuple[int, ...], used: Mask | None = None) -> Array:
    """Per-token numbers, float64 of exactly ``shape`` (B, T), finite; what is not ``used`` becomes 0 unread."""
    array = floats(name, values)
    if array.shape != shape:
        raise InputError(f"{name}: expected shape {shape} (B, T), got {array.shape}.")
    array = array if used is None else np.where(used, array, 0.0)
    if not np.isfinite(array).all():
        row, token = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(
            f"{name}: row {row}, token {token} is {float(array[row, token])!r}; every token needs a number."
        )
    return array


def chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    """``value`` when it is one of ``choices``; otherwise an InputError with the nearest one."""
    if not isinstance(value, str) or value not in choices:
        raise unknown(name, value, choices)
    return value


def _at(name: str, place: tuple[int, ...]) -> str:
    return name + "".join(f"[{i}]" for i in place)


def floats(name: str, values: Any) -> Array:
    """``values`` as float64 of whatever shape; None and masked entries become NaN; an InputError for the rest."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    plain = _without_torch(values)
    try:
        array = np.asarray(plain)
    except ValueError:
        lengths = sorted({len(row) if hasattr(row, "__len__") else 1 for row in plain})
        got = f"rows of {' and '.join(map(str, lengths))}" if len(lengths) > 1 else "rows of unlike shapes"
        raise InputError(f"{name}: expected rows of equal length, got {got}; use None for what is missing.") from None
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    boxes = np.asarray(plain, dtype=object)
    if not boxes.ndim:
        raise InputError(f"{name}: expected an array of numbers, got {type(values).__name__}.")
    flat = [_one(_at(name, place), item) for place, item in np.ndenumerate(boxes)]
    return np.array(flat, dtype=np.float64).reshape(boxes.shape)


def _without_torch(values: Any) -> Any:
    """Tensors as NumPy arrays (from any device, with or without gradient, bfloat16 too); masked entries as NaN."""
    if hasattr(values, "detach"):
        return values.detach().cpu().double().numpy()
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return [_without_torch(item) for item in values] if isinstance(values, (list, tuple)) else values


def _one(place: str, item: Any) -> float:
    if item is None:
        return np.nan
    if isinstance(item, (str, bytes)) or not hasattr(item, "__float__"):
        _refuse(place, item)
    try:
        return float(item)
    except (TypeError, ValueError, OverflowError):
        _refuse(place, item)


def _refuse(place: str, item: Any) -> NoReturn:
    kind = "text" if isinstance(item, (str, bytes)) else f"of type {type(item).__name__}"
    raise InputError(
        f"{place}: {repr(item)} is {kind}, not a usable number; give a finite number, or None if unscored."
    )

"""Models that are loaded, shared by every page and never changed: a step is taken on a copy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from workbench.errors import InputError
from workbench.models.registry import MODELS, resolve

KEPT_POLICIES = 2


class PolicyShelf:
    """The policies used last, loaded when first asked for; :mod:`torch` is imported then and not before."""

    def __init__(self, kept: int = KEPT_POLICIES) -> None:
        self._policies: OrderedDict[str, Any] = OrderedDict()
        self._kept, self._lock = kept, threading.Lock()

    def get(self, name: str, tell: Callable[[str], None]) -> Any:
        """The policy of this name; ``tell`` hears what loading does. Raises :class:`InputError` as load_policy does."""
        with self._lock:
            if name in self._policies:
                self._policies.move_to_end(name)
                return self._policies[name]
            resolve(name)  # a wrong name is refused before anything heavy is imported
            tell(f"Loading {name}{_size(name)}: starting torch")
            from workbench.models.policy import load_policy

            tell(f"Loading {name}{_size(name)}: reading its weights")
            policy = load_policy(name, progress=tell)
            self._policies[name] = policy
            while len(self._policies) > self._kept:
                self._policies.popitem(last=False)
            return policy


def checked_model(name: str, any_model: bool) -> str:
    """``name`` when this server may load it: on a shared server only the embedded models."""
    if name in MODELS or any_model:
        return name
    raise InputError(f"model: {name!r} cannot be loaded on a shared server; choose one of {', '.join(MODELS)}.")


def _size(name: str) -> str:
    card = MODELS.get(name)
    return f" ({card.parameters / 1e6:.3g} million parameters)" if card else ""


SHELF = PolicyShelf()

"""The words the desk is made of (``words.json``: people, cities, files, events, subjects), each fixed to one half.

A word's half is decided by its own SHA-256, so adding a word never moves another one. About one in five is held
out: a policy trained on the train half has never seen those names.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files

from workbench.types import Split


def half(word: str) -> Split:
    """The half of the split that ``word`` belongs to, for ever.

    >>> half("Nina"), half("Omar")
    (<Split.TRAIN: 'train'>, <Split.HELD_OUT: 'held_out'>)
    """
    return Split.HELD_OUT if hashlib.sha256(word.encode()).digest()[0] % 5 == 0 else Split.TRAIN


POOLS: dict[str, tuple[str, ...]] = {
    pool: tuple(words)
    for pool, words in json.loads(files("workbench.tasks.desk").joinpath("words.json").read_text("utf-8")).items()
}
"""name, city, file, event, topic, errand, label (for timers) and talk (small talk) -> every word there is."""
HALVES: dict[tuple[str, Split], tuple[str, ...]] = {
    (name, split): tuple(word for word in pool if half(word) == split)
    for name, pool in POOLS.items()
    for split in Split
}
"""(pool, split) -> the words of that pool in that half, in a fixed order."""

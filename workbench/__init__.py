"""GRPO workbench: sample a group, score it, see who is pushed up, train, compare and ship.

Importing this package is light: no torch, no gradio. Start at :mod:`workbench.types` (the nouns) and
:mod:`workbench.grpo` (the arithmetic).
"""

__version__ = "0.1.0"

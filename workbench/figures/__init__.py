"""Plain data in, a Plotly figure out: one function draws the notebook's figure, the app's and the README's."""

from workbench.figures.group import (
    advantage_bars,
    advantage_bars_spec,
    axis_name,
    bar_sentences,
    flipped_signs,
    group_bars,
)
from workbench.figures.step import before_after_bars, reward_steps
from workbench.figures.theme import DIMENSION_COLOURS, PALETTE, contrast, dimension_colour, push_colour, template
from workbench.figures.tokens import READINGS, TokenShades, token_shades

__all__ = [
    "DIMENSION_COLOURS",
    "PALETTE",
    "READINGS",
    "TokenShades",
    "advantage_bars",
    "advantage_bars_spec",
    "axis_name",
    "bar_sentences",
    "before_after_bars",
    "contrast",
    "dimension_colour",
    "flipped_signs",
    "group_bars",
    "push_colour",
    "reward_steps",
    "template",
    "token_shades",
]

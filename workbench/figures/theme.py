"""The one Plotly template, light and dark, and every colour the workbench uses; `ui/` writes its CSS from here.

Blue is pushed up, orange is pushed down, greys are the rest, red is for errors and unsafe calls alone. Marks (bars,
dots) keep one colour on both grounds and stand out from each by at least 3 : 1; words have a darker and a lighter
twin, at least 4.5 : 1 on their ground (WCAG 2.2; tested in tests/figures/test_theme.py).
"""

from __future__ import annotations

import plotly.graph_objects as go

UP = "#2f74d0"
DOWN = "#d06a0c"
REST = "#868e9b"
BAND = "rgba(128, 138, 156, 0.16)"  # behind what is selected; works on both grounds
GUIDE = "rgba(128, 138, 156, 0.30)"

# Four fixed hues, used wherever a dimension is drawn, chosen to differ for colour-blind eyes too (in lightness where
# hue fails); further dimensions take the greys that follow.
DIMENSION_COLOURS = {
    "task_completion": "#a851f6",
    "tool_accuracy": "#227274",
    "efficiency": "#7f6826",
    "safety": "#d66eb8",
}
SPARE_COLOURS = ("#6b7f94", "#8d7b6a", "#5f8a5f", "#86789c")

# CSS custom properties: name -> (light, dark).
PALETTE = {
    "ground": ("#f6f7f9", "#0e1116"),
    "panel": ("#ffffff", "#161a21"),
    "sunken": ("#eef0f3", "#1e242d"),
    "line": ("#dfe2e7", "#2a313c"),
    "ink": ("#16181d", "#e8eaee"),
    "muted": ("#565d69", "#a0a8b4"),
    "up-ink": ("#1d5fbf", "#7fb2ff"),
    "down-ink": ("#a34a00", "#f0a35c"),
    "bad-ink": ("#b3261e", "#ff8f86"),
    "accent": ("#1d5fbf", "#7fb2ff"),
    "on-accent": ("#ffffff", "#0e1116"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'SF Mono', 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def dimension_colour(name: str, index: int = 0) -> str:
    """The hue of a dimension; one that is not ours takes a spare by its place.

    >>> dimension_colour("safety")
    '#d66eb8'
    """
    return DIMENSION_COLOURS.get(name) or SPARE_COLOURS[index % len(SPARE_COLOURS)]


def push_colour(advantage: float) -> str:
    """Blue above the group's mean, orange below, grey at it (or where there is no score)."""
    return UP if advantage > 0 else DOWN if advantage < 0 else REST


def template(dark: bool = False) -> go.layout.Template:
    """The Plotly template of every figure here: transparent ground, thin guides, system font, no chart junk."""
    ink, muted = PALETTE["ink"][dark], PALETTE["muted"][dark]
    axis = {
        "showline": False,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"color": muted, "size": 12},
        "title": {"font": {"color": muted, "size": 12}},
        "fixedrange": True,
    }
    layout = go.Layout(
        font={"family": FONT, "color": ink, "size": 12},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis=axis,
        yaxis={**axis, "showgrid": True, "gridcolor": GUIDE, "gridwidth": 1},
        legend={"font": {"color": muted, "size": 12}, "orientation": "h", "itemclick": False, "itemdoubleclick": False},
        hoverlabel={
            "bgcolor": PALETTE["ink"][dark],
            "bordercolor": PALETTE["ink"][dark],
            "font": {"color": PALETTE["panel"][dark], "family": FONT, "size": 12},
            "align": "left",
        },
        margin={"l": 34, "r": 8, "t": 6, "b": 6},
        bargap=0.28,
        showlegend=True,
    )
    return go.layout.Template(layout=layout)


def contrast(one: str, other: str) -> float:
    """The WCAG contrast ratio of two ``#rrggbb`` colours, 1 to 21.

    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

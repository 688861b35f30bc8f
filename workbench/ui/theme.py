"""How the app looks: a plain Gradio theme on system fonts, and our CSS with the colours of figures/theme.py."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from workbench.figures import DIMENSION_COLOURS, PALETTE
from workbench.figures.theme import DOWN, FONT, MONO, REST, UP

CSS = Path(__file__).parent / "assets" / "workbench.css"


def theme() -> gr.themes.Base:
    """Gradio's plain theme with the system's own fonts, so that no page asks another server for one."""
    return gr.themes.Base(
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
        radius_size=gr.themes.sizes.radius_sm,
        spacing_size=gr.themes.sizes.spacing_sm,
        text_size=gr.themes.sizes.text_sm,
    )


def css() -> str:
    """The whole style sheet: colours as custom properties, light and dark, then the rules."""
    return f":root {{{_colours(0)}}}\n.dark {{{_colours(1)}}}\n{CSS.read_text(encoding='utf-8')}"


def _colours(dark: int) -> str:
    names = {f"--wb-{name}": pair[dark] for name, pair in PALETTE.items()}
    names |= {f"--wb-{name.replace('_', '-')}": colour for name, colour in DIMENSION_COLOURS.items()}
    names |= {"--wb-up": UP, "--wb-down": DOWN, "--wb-rest": REST, "--wb-font": FONT, "--wb-mono": MONO}
    return " ".join(f"{name}: {value};" for name, value in names.items())

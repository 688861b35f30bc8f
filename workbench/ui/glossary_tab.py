"""The Glossary tab: every metric a run logs, and the words of the workbench beside other projects' words."""

from __future__ import annotations

import gradio as gr

from workbench.ui.views.glossary import glossary_page


def build_tab() -> None:
    """Lay out the page; it is text and has no handlers."""
    gr.HTML(glossary_page(), elem_id="wb-glossary", js_on_load=None, apply_default_css=False)

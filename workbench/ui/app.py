"""The app: a table of contents of its tabs, and how it is launched."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
import gradio as gr

from workbench.errors import InputError, checked_range
from workbench.ui import glossary_tab, group_tab
from workbench.ui.sessions import SessionStore
from workbench.ui.theme import css, theme

TITLE = "GRPO workbench"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def build_app(*, any_model: bool = True) -> gr.Blocks:
    """The app's pages, ready to launch; ``any_model`` lets people name hub ids and folders to load."""
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
        sessions = SessionStore()
        gr.HTML(
            f"<div class='wb-brand'>{TITLE}</div><button id='wb-theme' aria-label='switch to dark'>☾</button>"
            "<button id='wb-drawer' aria-expanded='false' aria-controls='wb-rail'>Controls</button>",
            elem_id="wb-header",
            js_on_load=None,
            apply_default_css=False,
        )
        with gr.Tabs(elem_id="wb-tabs"):
            with gr.Tab("Group", id="group"):
                group_tab.build_tab(blocks, sessions, any_model=any_model)
            with gr.Tab("Glossary", id="glossary"):
                glossary_tab.build_tab()
    return blocks


def launch(
    host: str = "127.0.0.1",
    port: int = 7860,
    *,
    auth: tuple[str, str] | None = None,
    share: bool = False,
    any_model: bool | None = None,
    prevent_thread_lock: bool = False,
    quiet: bool = False,
) -> gr.Blocks:
    """Serve the app; on this machine only, unless ``host`` or ``share`` says otherwise.

    Args:
        host, port: where to listen; a port that is taken is refused with a sentence, never swapped for another.
        auth: (user, password) that a visitor must give.
        share: open a public tunnel; needs ``auth``.
        any_model: whether visitors may load any hub id or folder; None: only where the page is not shared.
        prevent_thread_lock: return at once and serve from a thread, as inside a notebook.
        quiet: print nothing.

    Raises:
        InputError: a port outside 1 to 65535 or already taken, or ``share`` without ``auth``.
    """
    checked_range("port", port, 1, 65535)
    if share and not auth:
        raise InputError(
            "share: a public link without a password lets anyone use this machine; give auth=(user, password)."
        )
    private = host in LOOPBACK and not share
    blocks = build_app(any_model=private if any_model is None else any_model)
    options: dict[str, Any] = {
        "theme": theme(),
        "css": css(),
        "ssr_mode": False,
        "run_history": False,
        "footer_links": [],
    }
    try:
        blocks.queue(default_concurrency_limit=16, max_size=64).launch(
            server_name=host,
            server_port=port,
            auth=auth,
            share=share,
            prevent_thread_lock=prevent_thread_lock,
            quiet=quiet,
            show_error=True,
            enable_monitoring=False,
            pwa=False,
            mcp_server=False,
            **options,
        )
    except OSError as error:
        raise InputError(
            f"port: {port} on {host} cannot be used ({error}); close what uses it or give another --port."
        ) from error
    return blocks

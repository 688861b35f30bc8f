"""The Group tab: which control calls which handler. Wiring only; what happens is in handlers.py and live.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

from workbench.figures import template
from workbench.grpo import AGGREGATIONS, LOSS_TYPES, SCALE_REWARDS, STD_CONVENTIONS
from workbench.rewards import DIMENSIONS
from workbench.ui import handlers, library, live
from workbench.ui.group_state import HELP, RANGES, GroupState
from workbench.ui.handlers import Reply
from workbench.ui.sessions import Session, SessionStore

ASSETS = Path(__file__).parent / "assets"
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
LABELS = {
    "num_generations": "K",
    "temperature": "temperature",
    "top_p": "top-p",
    "max_completion_length": "max length",
    "learning_rate": "learning rate",
    "loss_type": "loss type",
    "scale_rewards": "scaling",
}
Controls = dict[str, Any]


def build_tab(blocks: gr.Blocks, sessions: SessionStore, *, any_model: bool = True) -> None:
    """Lay out the Group screen in the current context and wire it to its handlers."""
    opening = handlers.opening_state()
    with gr.Row(elem_id="wb-screen", equal_height=False):
        with gr.Column(elem_id="wb-rail", min_width=0, scale=0):
            controls, buttons = _rail(opening, any_model)
        with gr.Column(elem_id="wb-main", min_width=0, scale=1):
            stage = _stage()
    wire = Wiring(blocks, sessions, controls, stage, any_model)
    wire.settings()
    wire.choices(buttons)
    wire.stage_events()
    wire.live(buttons)


def _rail(state: GroupState, any_model: bool) -> tuple[Controls, dict[str, gr.Button]]:
    controls: Controls = {}
    task = library.find_task(state)
    controls["model"] = gr.Dropdown(
        library.model_choices(),
        value=state.model,
        label="model",
        info=HELP["model"] + (" Type a hub id or a folder for any other." if any_model else ""),
        allow_custom_value=any_model,
        elem_id="wb-model",
    )
    controls["source"] = gr.Dropdown(
        library.source_choices(state), value=task.source, label="source", info=HELP["source"], elem_id="wb-source"
    )
    with gr.Row(elem_classes="wb-line"):
        controls["task"] = gr.Textbox(value=task.id, label="task", info=HELP["task"], elem_id="wb-task", max_lines=1)
        buttons = {"next": gr.Button("⟳ next", elem_id="wb-next", size="sm", min_width=0)}
    for name in ("num_generations", "temperature", "top_p"):
        controls[name] = _slider(name, state)
    with gr.Accordion("Seed and length", open=False, elem_classes="wb-more"):
        controls["seed"] = gr.Number(
            state.seed, label="seed", info=HELP["seed"], precision=0, minimum=0, elem_id="wb-seed"
        )
        controls["max_completion_length"] = _slider("max_completion_length", state)
    with gr.Row(elem_classes="wb-line"):
        buttons["sample"] = gr.Button("Sample", variant="primary", elem_id="wb-sample", min_width=0)
        buttons["cancel"] = gr.Button("Cancel", elem_id="wb-cancel", min_width=0)
    _heading("Reward weights")
    for name in DIMENSIONS:
        controls[name] = _slider(name, state, "wb-weight")
    controls["scale_rewards"] = _dropdown("scale_rewards", SCALE_REWARDS, state)
    controls["std"] = _dropdown("std", tuple(STD_CONVENTIONS), state)
    controls["aggregation"] = _dropdown("aggregation", AGGREGATIONS, state)
    _heading("Objective")
    for name in ("beta", "epsilon"):
        controls[name] = _slider(name, state)
    controls["loss_type"] = _dropdown("loss_type", LOSS_TYPES, state)
    controls["learning_rate"] = gr.Number(
        state.learning_rate,
        label=LABELS["learning_rate"],
        info=HELP["learning_rate"],
        elem_id="wb-learning_rate",
        min_width=0,
    )
    with gr.Row(elem_classes="wb-line"):
        buttons["step"] = gr.Button("Take one GRPO step", variant="primary", elem_id="wb-take-step", min_width=0)
        buttons["reset"] = gr.Button("Reset", elem_id="wb-reset", min_width=0)
    return controls, buttons


def _slider(name: str, state: GroupState, classes: str = "wb-number") -> gr.Slider:
    limits = RANGES[name]
    return gr.Slider(
        limits.low,
        limits.high,
        getattr(state, name),
        step=limits.step,
        label=LABELS.get(name, name),
        info=HELP[name],
        elem_id=f"wb-{name}",
        elem_classes=["wb-slider", classes],
        min_width=0,
    )


def _dropdown(name: str, choices: tuple[str, ...], state: GroupState) -> gr.Dropdown:
    return gr.Dropdown(
        list(choices),
        value=getattr(state, name),
        label=LABELS.get(name, name),
        info=HELP[name],
        elem_id=f"wb-{name}",
        filterable=False,
        min_width=0,
    )


def _heading(words: str) -> None:
    gr.HTML(f"<h2>{words}</h2>", elem_classes="wb-heading")


def _stage() -> gr.HTML:
    gr.set_static_paths([str(PLOTLY_JS)])
    first = {**handlers.open_page(Session(), {}).payload, "opening": True}
    return gr.HTML(
        value=first,
        html_template=(ASSETS / "stage.html").read_text(encoding="utf-8"),
        js_on_load=(ASSETS / "stage.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        elem_id="wb-stage",
        templates=[template(dark).to_plotly_json() for dark in (False, True)],
        plotly=f"gradio_api/file={PLOTLY_JS.as_posix()}",
    )


class Wiring:
    """Connects controls, stage and handlers; every handler gets the page's own session and all settings by name."""

    def __init__(
        self, blocks: gr.Blocks, sessions: SessionStore, controls: Controls, stage: gr.HTML, any_model: bool
    ) -> None:
        self.blocks, self.sessions, self.controls, self.stage = blocks, sessions, controls, stage
        self.any_model = any_model
        self.names = list(controls)
        self.inputs = list(controls.values())
        self.outputs = [stage, *self.inputs]

    def settings(self) -> None:
        """Settings that only re-weigh what is there: the fast path, one output, no queue, the last move wins."""
        for name in (*DIMENSIONS, "scale_rewards", "std", "aggregation", "beta", "epsilon", "loss_type"):
            self.controls[name].input(self._quick(handlers.reweigh), self.inputs, self.stage, **FAST)
        for name in ("num_generations", "temperature", "top_p", "max_completion_length", "seed", "learning_rate"):
            self.controls[name].input(self._quick(handlers.reweigh), self.inputs, self.stage, **FAST)

    def choices(self, buttons: dict[str, gr.Button]) -> None:
        """Another model, source or task: the whole screen changes."""
        controls = self.controls
        controls["model"].input(self._whole(handlers.choose_model), self.inputs, self.outputs, **CALM)
        controls["source"].input(self._whole(handlers.choose_source, "source"), self.inputs, self.outputs, **CALM)
        controls["task"].submit(self._whole(handlers.choose_task, "task"), self.inputs, self.outputs, **CALM)
        buttons["next"].click(self._whole(handlers.next_task, "source"), self.inputs, self.outputs, **CALM)
        buttons["reset"].click(self._whole(handlers.reset), self.inputs, self.outputs, **CALM)
        self.blocks.load(self._load, None, self.outputs, **CALM)
        self.blocks.unload(self._forget)

    def stage_events(self) -> None:
        """What is pressed inside the stage itself."""
        for event, name, handler in (
            ("pick", "number", handlers.pick),
            ("step_pick", "direction", handlers.step_pick),
            ("reading", "reading", handlers.read_by),
            ("sort", "column", handlers.sort_by),
            ("export", "kind", handlers.export),
        ):
            getattr(self.stage, event)(self._pressed(handler, name), None, self.stage, **FAST)
        self.stage.graded(self._graded, None, self.outputs, **CALM)

    def live(self, buttons: dict[str, gr.Button]) -> None:
        """What needs a model: queued, streamed, many at once (the models themselves take turns)."""
        slow: dict[str, Any] = {
            "show_progress": "hidden",
            "concurrency_limit": None,
            "trigger_mode": "once",
            "api_visibility": "private",
        }
        buttons["sample"].click(self._streamed(live.sample), self.inputs, self.outputs, **slow)
        buttons["step"].click(self._streamed(live.take_step), self.inputs, self.outputs, **slow)
        self.stage.more_samples(self._streamed(live.sample, more=True), self.inputs, self.outputs, **slow)
        self.stage.rendered(self._streamed(live.rendered), self.inputs, self.outputs, **slow)
        buttons["cancel"].click(self._cancel, None, None, **FAST)

    def _session(self, request: gr.Request) -> Session:
        return self.sessions.get(request.session_hash or "")

    def _values(self, values: tuple[Any, ...]) -> dict[str, Any]:
        return {name: value for name, value in zip(self.names, values, strict=True) if name != "source"}

    def _quick(self, handler: Callable[..., Reply]) -> Callable[..., Any]:
        def run(request: gr.Request, *values: Any) -> Any:
            return handler(self._session(request), self._values(values)).payload

        return run

    def _whole(self, handler: Callable[..., Reply], also: str | None = None) -> Callable[..., list[Any]]:
        def run(request: gr.Request, *values: Any) -> list[Any]:
            extra = [values[self.names.index(also)]] if also else []
            return self._updates(handler(self._session(request), self._values(values), *extra))

        return run

    def _pressed(self, handler: Callable[..., Reply], name: str) -> Callable[..., Any]:
        def run(request: gr.Request, event: gr.EventData) -> Any:
            return handler(self._session(request), (event._data or {}).get(name)).payload

        return run

    def _streamed(self, handler: Callable[..., Iterator[Reply]], **options: Any) -> Callable[..., Iterator[list[Any]]]:
        def run(request: gr.Request, *values: Any) -> Iterator[list[Any]]:
            session = self._session(request)
            for reply in handler(session, self._values(values), any_model=self.any_model, **options):
                yield self._updates(reply)

        return run

    def _graded(self, request: gr.Request) -> list[Any]:
        return self._updates(handlers.graded(self._session(request)))

    def _cancel(self, request: gr.Request) -> None:
        live.cancel(self._session(request))

    def _forget(self, request: gr.Request) -> None:
        self.sessions.drop(request.session_hash or "")

    def _load(self, request: gr.Request) -> list[Any]:
        return self._updates(handlers.open_page(self._session(request), dict(request.query_params)))

    def _updates(self, reply: Reply) -> list[Any]:
        """A reply as Gradio's outputs: the stage's value, and an update for each control that changes."""
        changes = dict(reply.controls)
        sources = changes.pop("source_choices", None)
        updates: list[Any] = [reply.payload or gr.skip()]
        for name in self.names:
            if name == "source" and sources is not None:
                updates.append(gr.update(choices=sources, value=changes["source"]))
            else:
                updates.append(changes[name] if name in changes else gr.skip())
        return updates


QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
FAST = {**QUIET, "trigger_mode": "always_last"}  # a slider in motion: one call at a time, and the last one always
CALM = {**QUIET, "trigger_mode": "once"}

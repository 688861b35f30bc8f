"""What one GRPO step did: how many times likelier each completion became, and the mean reward step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.numbers import TIMES, factor, percent, plain, signed
from workbench.figures.theme import DOWN, REST, UP, push_colour, template


def before_after_bars(before_logps: Any, after_logps: Any, advantages: Any, *, dark: bool = False) -> go.Figure:
    """Bars of probability after / before for each completion, on a log axis whose zero line is "as likely as before".

    Args:
        before_logps, after_logps: (K,) log-probability of each whole completion, nats, before and after the step.
        advantages: (K,); colours the bars, so that blue above the line means the push did what it should.

    Returns:
        A figure of one trace; y is the base-2 logarithm of the ratio, cut at :func:`shown_power`.
    """
    before, after = np.asarray(before_logps, float), np.asarray(after_logps, float)
    values = np.asarray(advantages, float)
    powers = (after - before) / np.log(2.0)
    ratios = np.exp(np.clip(after - before, -700.0, 700.0))
    top = shown_power(powers)
    beyond = np.abs(powers) > top
    figure = go.Figure(layout={"template": template(dark)})
    figure.add_trace(
        go.Bar(
            name="times likelier",
            x=list(range(1, len(before) + 1)),
            y=np.clip(powers, -top, top).tolist(),
            marker={"color": [push_colour(v) for v in values], "line": {"width": 0}},
            text=[f"…{factor(r)}" if far else factor(r) for r, far in zip(ratios, beyond, strict=True)],
            textposition="outside",
            textfont={"size": 12 if len(before) <= 12 else 10},
            textangle=0,
            cliponaxis=False,
            constraintext="none",
            hovertext=_sentences(before, after, ratios, values),
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )
    _lay_out(figure, top, len(before))
    return figure


def shown_power(powers: np.ndarray) -> float:
    """How far the axis goes: the largest change, unless it would flatten the others; a longer bar is cut and says so.

    >>> shown_power(np.array([0.04, 0.05, -0.06, -15.0]))
    0.5
    """
    sizes = np.abs(powers)
    typical = max(0.5, 4.0 * float(np.median(sizes))) if sizes.size else 0.5
    return min(typical, max(0.05, float(sizes.max(initial=0.0))))


def reward_steps(mean_rewards: Sequence[float], *, dark: bool = False) -> go.Figure:
    """The group's mean reward before any step and after each one; entry 0 is the model as it was loaded."""
    steps = list(range(len(mean_rewards)))
    figure = go.Figure(layout={"template": template(dark)})
    figure.add_trace(
        go.Scatter(
            name="mean reward",
            x=steps,
            y=[float(r) for r in mean_rewards],
            mode="lines+markers+text",
            line={"color": REST, "width": 2},
            marker={"size": 8, "color": [REST] + [UP if r >= mean_rewards[0] else DOWN for r in mean_rewards[1:]]},
            text=[plain(r) for r in mean_rewards],
            textposition="top center",
            hovertext=[
                f"after step {s}: mean reward {plain(r)}" if s else f"before: mean reward {plain(r)}"
                for s, r in enumerate(mean_rewards)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
    )
    low, high = min(0.0, *mean_rewards), max(1.0, *mean_rewards)
    figure.update_layout(
        height=220,
        margin={"b": 26},
        xaxis={"dtick": max(1, len(steps) // 8), "range": [-0.4, max(4, len(steps) - 1) + 0.4]},
        yaxis={"range": [low, high * 1.12], "nticks": 4},
    )
    return figure


def _sentences(before: np.ndarray, after: np.ndarray, ratios: np.ndarray, advantages: np.ndarray) -> list[str]:
    return [
        f"<b>Completion {k + 1}</b> (advantage {signed(a)}): probability {percent(float(np.exp(b)))} before,"
        f" {percent(float(np.exp(c)))} after, {factor(r)}"
        for k, (b, c, r, a) in enumerate(zip(before, after, ratios, advantages, strict=True))
    ]


def _lay_out(figure: go.Figure, top: float, count: int) -> None:
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 0, "y1": 0}
    figure.update_layout(
        height=220,
        margin={"l": 52, "b": 26},
        xaxis={"tickmode": "linear", "tick0": 1, "dtick": 1, "tickangle": 0, "range": [0.4, count + 0.6]},
        yaxis={
            "range": [-1.8 * top, 1.8 * top],
            "tickvals": [-top, 0, top],
            "ticktext": [factor(2.0**-top), f"{TIMES}1", factor(2.0**top)],
        },
        shapes=[{**line, "line": {"color": REST, "width": 1}}],
    )

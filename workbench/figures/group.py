"""One group as a picture: who is pushed up, who is pushed down, and which dimension made it so.

Upper row: one bar a completion, its advantage, above or below the group's mean. Lower row, under each bar: the thin
stack of its weighted scores, whose height is the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.numbers import plain, signed
from workbench.figures.theme import BAND, REST, dimension_colour, push_colour, template
from workbench.grpo import combine_rewards
from workbench.types import Group

FLIP = "\N{UP DOWN ARROW}"


def group_bars(
    group: Group,
    reward_weights: Mapping[str, float],
    *,
    aggregation: str = "sum_then_normalize",
    scale_rewards: str = "group",
    std: str = "sample",
    selected: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """The picture of a scored group under these weights: the door for notebooks and the README.

    ``reward_weights`` maps every dimension of the group to its weight. Raises :class:`InputError` as
    :func:`workbench.grpo.combine_rewards` does.
    """
    scores = group.rewards_per_func()
    weights = np.array([reward_weights[name] for name in group.dimensions])
    _, advantages = combine_rewards(
        scores[None], weights, aggregation=aggregation, scale_rewards=scale_rewards, std=std
    )
    return advantage_bars(
        advantages[0],
        scores,
        weights,
        group.dimensions,
        scale_rewards=scale_rewards,
        std=std,
        selected=selected,
        dark=dark,
    )


def advantage_bars(
    advantages: Any,
    rewards_per_func: Any,
    reward_weights: Any,
    dimensions: Sequence[str],
    *,
    scale_rewards: str = "group",
    std: str = "sample",
    selected: int | None = None,
    reference: Any = None,
    dark: bool = False,
) -> go.Figure:
    """Bars of advantage over thin stacks of weighted scores, one column a completion.

    Args:
        advantages: (K,).
        rewards_per_func: (K, F), NaN = unscored.
        reward_weights: (F,).
        dimensions: F names, in the order of the columns.
        scale_rewards, std: named above the bars; the bars are drawn as they are given.
        selected: index of the completion to put a band behind.
        reference: (K,) advantages under other settings; a tick marks each, and a bar whose sign differs is marked.
        dark: for a dark ground.

    Returns:
        A figure of one ``advantage`` trace, one tick trace and F dimension traces; x runs from 1 to K.
    """
    spec = advantage_bars_spec(
        advantages,
        rewards_per_func,
        reward_weights,
        dimensions,
        scale_rewards=scale_rewards,
        std=std,
        selected=selected,
        reference=reference,
    )
    return go.Figure(spec["data"], {**spec["layout"], "template": template(dark)})


def advantage_bars_spec(
    advantages: Any,
    rewards_per_func: Any,
    reward_weights: Any,
    dimensions: Sequence[str],
    *,
    scale_rewards: str = "group",
    std: str = "sample",
    selected: int | None = None,
    reference: Any = None,
) -> dict[str, Any]:
    """The figure of :func:`advantage_bars` as plain data, ``{"data": [...], "layout": {...}}``, without a template.

    Building a checked :class:`plotly.graph_objects.Figure` takes ten times as long as everything here, so a page that
    redraws while a slider moves sends this and lets Plotly in the browser check it.
    """
    values, scores = np.asarray(advantages, float), np.asarray(rewards_per_func, float)
    weights = np.asarray(reward_weights, float)
    shown = list(range(1, len(values) + 1))
    flipped = flipped_signs(values, reference)
    sentences = bar_sentences(values, scores, weights, dimensions)
    data = [_advantage_trace(shown, values, flipped, sentences), _reference_trace(shown, values, reference)]
    for index, name in enumerate(dimensions):
        data.append(_stack_trace(shown, scores[:, index], name, float(weights[index]), index))
    return {"data": data, "layout": _layout(values, weights, axis_name(scale_rewards, std), selected)}


def flipped_signs(advantages: Any, reference: Any) -> tuple[int, ...]:
    """The indices whose advantage changed sign against ``reference`` (a move from or to 0 is none).

    >>> flipped_signs([0.5, -0.2, 0.1], [-0.1, -0.3, 0.0])
    (0,)
    """
    if reference is None:
        return ()
    signs = np.sign(np.asarray(advantages, float)) * np.sign(np.asarray(reference, float))
    return tuple(int(i) for i in np.flatnonzero(signs < 0))


def axis_name(scale_rewards: str, std: str) -> str:
    """What the advantage axis measures, with the convention in it.

    >>> axis_name("group", "sample"), axis_name("none", "sample")
    ('advantage (group, sample std)', 'advantage (not scaled)')
    """
    return "advantage (not scaled)" if scale_rewards == "none" else f"advantage ({scale_rewards}, {std} std)"


def bar_sentences(advantages: Any, rewards_per_func: Any, reward_weights: Any, dimensions: Sequence[str]) -> list[str]:
    """One sentence a completion: which way it is pushed, its reward, and the terms the reward is made of."""
    scores, weights = np.asarray(rewards_per_func, float), np.asarray(reward_weights, float)
    rewards = np.where(np.isnan(scores).all(axis=1), np.nan, np.nansum(scores * weights, axis=1))
    mean = np.nan if np.isnan(rewards).all() else float(np.nanmean(rewards))
    sentences = []
    for k, (advantage, reward) in enumerate(zip(np.asarray(advantages, float), rewards, strict=True)):
        if np.isnan(reward):
            sentences.append(
                f"<b>Completion {k + 1} was not scored</b>, so it is not pushed<br>and is left out of the mean."
            )
            continue
        verb = "pushed up" if advantage > 0 else "pushed down" if advantage < 0 else "not pushed"
        side = "above" if advantage > 0 else "below" if advantage < 0 else "at"
        head = f"<b>Completion {k + 1} is {verb}, {signed(advantage)}</b>:<br>reward {plain(reward)} is"
        head += f" {side} the group's mean of {plain(mean)}."
        terms = [
            f"{name} {plain(score)} × {plain(weight)} = {plain(score * weight)}"
            for name, score, weight in zip(dimensions, scores[k], weights, strict=True)
        ]
        sentences.append("<br>".join([head, *terms]))
    return sentences


def _advantage_trace(
    shown: list[int], values: np.ndarray, flipped: Sequence[int], sentences: list[str]
) -> dict[str, Any]:
    digits = 2 if len(values) <= 16 else 1
    labels = [f"<b>{FLIP} {signed(v, digits)}</b>" if k in flipped else signed(v, digits) for k, v in enumerate(values)]
    return {
        "type": "bar",
        "name": "advantage",
        "x": shown,
        "y": values.tolist(),
        "marker": {"color": [push_colour(v) for v in values], "line": {"width": 0}},
        "text": labels,
        "textposition": "outside",
        "textfont": {"size": 12 if len(values) <= 16 else 10},
        "textangle": 0,
        "cliponaxis": False,
        "constraintext": "none",
        "hovertext": sentences,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }


def _reference_trace(shown: list[int], values: np.ndarray, reference: Any) -> dict[str, Any]:
    """A short tick at the advantage each completion has under the reference settings, where it moved."""
    was = np.full(len(values), np.nan) if reference is None else np.asarray(reference, float).copy()
    was[np.abs(was - values) < 1e-9] = np.nan
    return {
        "type": "scatter",
        "name": "by default",
        "x": [k + 0.43 for k in shown],  # beside the bar, clear of its label
        "y": _or_none(was),
        "mode": "markers",
        "marker": {"symbol": "line-ew", "size": 9 if len(values) <= 16 else 5, "line": {"width": 2.5, "color": REST}},
        "hoverinfo": "skip",
        "showlegend": bool(np.isfinite(was).any()),
        "legendrank": 2000,
    }


def _stack_trace(shown: list[int], scores: np.ndarray, name: str, weight: float, index: int) -> dict[str, Any]:
    words = [
        f"<b>{name}</b> of completion {k}: {plain(s)} × weight {plain(weight)}"
        for k, s in zip(shown, scores, strict=True)
    ]
    return {
        "type": "bar",
        "name": name,
        "x": shown,
        "y": _or_none(scores * weight),
        "yaxis": "y2",
        "width": 0.34,
        "marker": {"color": dimension_colour(name, index), "line": {"width": 0}},
        "hovertext": words,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _or_none(values: np.ndarray) -> list[float | None]:
    return [None if v != v else v for v in values.tolist()]


def _layout(values: np.ndarray, weights: np.ndarray, title: str, selected: int | None) -> dict[str, Any]:
    top = max(1.0, float(np.ceil(np.abs(values).max(initial=0.0) * 1.22 / 0.5)) * 0.5)
    count = len(values)
    return {
        "barmode": "relative",
        "hovermode": "x",
        "height": 330,
        "xaxis": {
            "tickmode": "linear",
            "tick0": 1,
            "dtick": 1,
            "tickangle": 0,
            "range": [0.4, count + 0.6],
            "anchor": "y2",
        },
        "yaxis": {"domain": [0.33, 0.95], "range": [-top, top], "nticks": 5},
        "yaxis2": {"domain": [0.0, 0.23], "range": [0, max(1.0, float(np.abs(weights).sum()))], "nticks": 3},
        "legend": {"y": -0.08, "x": 1.0, "xanchor": "right", "yanchor": "top", "traceorder": "normal"},
        "annotations": [_caption(title, 1.0), _caption("reward = the weighted scores, stacked", 0.275)],
        "shapes": [_zero_line(), *([] if selected is None else [_band(selected)])],
    }


def _caption(words: str, y: float) -> dict[str, Any]:
    """What a row measures, written above its left end, where it reads without turning one's head."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": y, "yanchor": "middle"}
    return {**place, "text": words, "showarrow": False, "font": {"size": 12}, "opacity": 0.72, "name": "caption"}


def _zero_line() -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": 0,
        "y1": 0,
        "line": {"color": REST, "width": 1},
    }


def _band(index: int) -> dict[str, Any]:
    edges = {"x0": index + 0.5, "x1": index + 1.5, "y0": 0, "y1": 1}
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        **edges,
        "fillcolor": BAND,
        "line": {"width": 0},
        "layer": "below",
    }

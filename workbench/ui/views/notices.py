"""What the page says when something is wrong, missing, waiting or under way."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ui.group_state import GroupState
from workbench.ui.views.escape import escaped

LIVE_TEXT = 600  # characters of a row shown while it grows


def problems(sentences: Sequence[str]) -> str:
    """What was refused, one sentence each; empty when nothing was."""
    if not sentences:
        return ""
    rows = "".join(f"<li>{escaped(s)}</li>" for s in sentences)
    return f"<div class='note bad' role='alert'><ul>{rows}</ul>{_close()}</div>"


def note(sentence: str) -> str:
    """A remark that is no error, such as what a cancel left behind."""
    return f"<div class='note'><p>{escaped(sentence)}</p>{_close()}</div>"


def nothing_yet(state: GroupState) -> str:
    """The state before a group is there: what to press, and that the same seed gives the same answers."""
    return (
        f"<div class='empty'><p class='line'><b>No group of this task yet.</b> Press Sample: "
        f"{escaped(state.policy_name)} answers it {state.num_generations} times (seed {state.seed}).</p>"
        "<button class='go' data-act='press_sample'>Sample</button></div>"
    )


def working(sentence: str, seconds: float | None = None) -> str:
    """What is happening now, such as loading a model, and for how long it has been."""
    since = f" <span class='num quiet'>{seconds:.0f} s</span>" if seconds is not None and seconds >= 1 else ""
    return f"<div class='working'><i class='pulse'></i><p>{escaped(sentence)}{since}</p></div>"


def sampling(rows: Sequence[str], lengths: Sequence[int], done: int, rate: float, what: str = "sampling") -> str:
    """The rows of a group while they grow, with a count and the speed."""
    items = "".join(_row(k, text, length) for k, (text, length) in enumerate(zip(rows, lengths, strict=True)))
    share = round(100 * done / max(len(rows), 1))
    return (
        f"<div class='working'><i class='pulse'></i><p>{escaped(what)}: <b class='num'>{done}</b> of "
        f"<b class='num'>{len(rows)}</b> done, <span class='num'>{rate:.0f}</span> tokens/s</p></div>"
        f"<div class='bar' style='--done:{share}%'></div><ol class='growing'>{items}</ol>"
    )


def reading(sentence: str) -> str:
    """A quiet line while the rendered prompt is being fetched."""
    return f"<p class='facts'>{escaped(sentence)}…</p>"


def _row(k: int, text: str, length: int) -> str:
    shown = text if len(text) <= LIVE_TEXT else "…" + text[-LIVE_TEXT:]
    number, count = f"<span class='num quiet'>{k + 1}</span>", f"<span class='num quiet'>{length}</span>"
    return f"<li>{number}<code dir='ltr'>{escaped(shown)}</code>{count}</li>"


def _close() -> str:
    return "<button class='close' data-act='close' aria-label='close'>×</button>"

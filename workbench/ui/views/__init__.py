"""HTML of the Group screen, one function a part; every word a model, a task or a link wrote is escaped here."""

from workbench.ui.views.notices import note, nothing_yet, problems, reading, sampling, working
from workbench.ui.views.prompt import prompt_card, rendered_prompt
from workbench.ui.views.selected import selected_card, why_card
from workbench.ui.views.step import step_card
from workbench.ui.views.summary import summary_line
from workbench.ui.views.table import Sort, completions_table

__all__ = [
    "Sort",
    "completions_table",
    "note",
    "nothing_yet",
    "problems",
    "prompt_card",
    "reading",
    "rendered_prompt",
    "sampling",
    "selected_card",
    "step_card",
    "summary_line",
    "why_card",
    "working",
]

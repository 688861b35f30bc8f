"""Our own small office: tools, a world they really change, an endless stream of tasks, and flawed answers to them."""

from workbench.tasks.desk.changes import changes
from workbench.tasks.desk.demonstrations import MISTAKES, flawed_answer
from workbench.tasks.desk.generator import desk_task, gold_answer
from workbench.tasks.desk.tools import DESK_TOOLS
from workbench.tasks.desk.world import Desk, DeskError, ToolResult

__all__ = [
    "DESK_TOOLS",
    "MISTAKES",
    "Desk",
    "DeskError",
    "ToolResult",
    "changes",
    "desk_task",
    "flawed_answer",
    "gold_answer",
]

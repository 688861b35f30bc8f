"""The arrows of the architecture: each room imports only rooms above it, and three walls hold."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "workbench"
ROOMS = ["errors", "types", "grpo", "sandbox", "tasks", "rewards", "guide", "preflight", "runs", "models", "rollouts"]
ROOMS += ["training", "experiments", "figures", "ui", "cli", "__main__"]
TORCH = {"torch", "transformers", "peft", "trl", "unsloth", "accelerate", "bitsandbytes"}
TORCH_ROOMS = {"models", "rollouts", "training", "experiments"}


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write absolute imports, so that an arrow can be seen"
            names.add(node.module or "")
            if node.module == "workbench":
                names |= {f"workbench.{alias.name}" for alias in node.names}
    return names


def faults(path: Path, room: str) -> list[str]:
    found = []
    for name in imported_modules(path):
        top, _, rest = name.partition(".")
        target = rest.split(".")[0]
        if top == "workbench" and target in ROOMS and ROOMS.index(target) > ROOMS.index(room):
            found.append(f"{room} imports {target}, a room below it")
        if top == "gradio" and room != "ui":
            found.append(f"{room} imports gradio; only ui may")
        if top in TORCH and room not in TORCH_ROOMS:
            found.append(f"{room} imports {top}; only {sorted(TORCH_ROOMS)} may")
        if top == "plotly" and room not in {"figures", "ui"}:
            found.append(f"{room} imports plotly; only figures and ui may")
        if top == "unsloth" and path.name != "unsloth_backend.py":
            found.append(f"{path.name} imports unsloth; only its one backend file may")
    return found


FILES = [p for p in sorted(ROOT.rglob("*.py")) if p.name != "__init__.py" or p.parent != ROOT]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_rooms_above_it(path):
    assert room_of(path) in ROOMS, f"{room_of(path)} is not a room of the design; name it there first"
    assert faults(path, room_of(path)) == []


def test_the_layer_test_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("import torch, gradio\nfrom workbench.rewards import score_group\nfrom workbench import ui\n")
    assert len(faults(bad, room="grpo")) == 4


def test_handlers_of_the_app_import_no_gradio():
    wiring = {"app.py", "group_tab.py", "theme.py"}
    for path in sorted((ROOT / "ui").glob("*.py")):
        if path.name not in wiring and not path.name.endswith("_tab.py"):
            assert not {n for n in imported_modules(path) if n.split(".")[0] == "gradio"}, path.name

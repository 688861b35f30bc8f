"""The documents say what is true: their sessions print what they show, their paths exist, their targets are real."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(p for p in ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))


def sessions(text: str) -> list[tuple[str, str]]:
    """Every ``$ command`` of the console blocks, with the output printed below it."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def run(command: str) -> str:
    words = shlex.split(command)
    program = {"workbench": [sys.executable, "-m", "workbench"], "python": [sys.executable]}[words[0]]
    env = {**os.environ, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [*program, *words[1:]], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    return done.stdout + (done.stderr if done.returncode else "")


SESSIONS = [s for s in sessions(README) if s[0].split()[0] in {"workbench", "python"}]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), SESSIONS, ids=[c[:60] for c, _ in SESSIONS])
def test_the_readme_session_prints_what_it_shows(command, shown):
    assert run(command).rstrip() == shown.rstrip()


def test_the_readme_has_sessions_to_test():
    assert len(SESSIONS) >= 3


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_linked_file_exists(document):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_make_target_named_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"`make ([a-z-]+)", document.read_text(encoding="utf-8")))
    named |= set(re.findall(r"^    make ([a-z-]+)", document.read_text(encoding="utf-8"), re.M))
    assert named <= targets


def test_the_map_of_the_tree_names_every_room():
    rooms = {p.name for p in (ROOT / "workbench").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    rooms -= {"__init__.py", "__main__.py"}
    assert {r for r in rooms if r not in README} == set()

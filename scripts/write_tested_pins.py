"""Write workbench/preflight/tested.json from constraints.txt and pyproject.toml: `python scripts/write_tested_pins.py`.

The wheel does not carry constraints.txt, and `workbench doctor` compares what is installed with the tested versions.
A test fails when the two differ; running this mends it.
"""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "workbench" / "preflight" / "tested.json"


def normalised(name: str) -> str:
    """The one spelling of a package's name: lower case, with hyphens."""
    return re.sub(r"[-_.]+", "-", name).lower()


def tested_pins() -> dict[str, object]:
    """Every pin by normalised name, the packages of every extra, and the Python versions."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = {normalised(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s#;]+)", constraints, re.M)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    extras = {name: [normalised(re.split(r"[^\w.-]", line)[0]) for line in lines] for name, lines in groups.items()}
    return {"python": project["requires-python"], "extras": extras, "packages": pins}


if __name__ == "__main__":
    TARGET.write_text(json.dumps(tested_pins(), indent=2) + "\n", encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")

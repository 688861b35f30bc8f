"""One-line edits of the arithmetic must each fail the suite: a test that cannot fail tests nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = {
    "advantages.py": "test_advantages.py",
    "kl.py": "test_kl.py",
    "losses.py": "test_losses.py",
    "signal.py": "test_signal.py",
}  # the part of the suite that must notice an edit of each file
NEEDED = ["__init__.py", "errors.py", "types.py", "grpo"]

# name: (file, the line as it is, the line as a tired person might write it)
MUTANTS = {
    "the mean is not subtracted": (
        "advantages.py",
        "result -= result.sum(axis=1, keepdims=True) / np.maximum(_count(values, scored), 1)",
        "result -= 0 * result.sum(axis=1, keepdims=True)",
    ),
    "the mean counts the unscored": (
        "advantages.py",
        "result -= result.sum(axis=1, keepdims=True) / np.maximum(_count(values, scored), 1)",
        "result -= result.sum(axis=1, keepdims=True) / values.shape[1]",
    ),
    "centring without the first value": (
        "advantages.py",
        "result = values - start",
        "result = values - 0 * start",
    ),
    "rounding is taken for signal": (
        "advantages.py",
        "result[equal] = 0.0",
        "result[equal] *= 1.0",
    ),
    "the std conventions are swapped": (
        "advantages.py",
        'STD_CONVENTIONS = {"sample": (1, 1e-4), "population": (0, 1e-8)}',
        'STD_CONVENTIONS = {"sample": (0, 1e-4), "population": (1, 1e-8)}',
    ),
    "the epsilon is that of the other convention": (
        "advantages.py",
        'STD_CONVENTIONS = {"sample": (1, 1e-4), "population": (0, 1e-8)}',
        'STD_CONVENTIONS = {"sample": (1, 1e-8), "population": (0, 1e-8)}',
    ),
    "an unscorable completion counts as 0": (
        "advantages.py",
        "return np.where(scored, rewards, np.nan), scored, size",
        "return rewards, None, size",
    ),
    "leave one out leaves none out": (
        "advantages.py",
        "return centred(values, scored) * (count / np.maximum(count - 1, 1))",
        "return centred(values, scored) * (count / np.maximum(count, 1))",
    ),
    "normalize_then_sum forgets the weights": (
        "advantages.py",
        "total += weight * _scaled(deviations, deviations, _count(one, mask), std)",
        "total += _scaled(deviations, deviations, _count(one, mask), std)",
    ),
    "the clip is a maximum": (
        "losses.py",
        "return -np.minimum(one, two), -slope * credit",
        "return -np.maximum(one, two), -slope * credit",
    ),
    "the sign of the loss is flipped": (
        "losses.py",
        "return -np.minimum(one, two), -slope * credit",
        "return np.minimum(one, two), slope * credit",
    ),
    "epsilon_high is ignored": (
        "losses.py",
        "bound = np.clip(ratio, 1 - low, 1 + high)",
        "bound = np.clip(ratio, 1 - low, 1 + low)",
    ),
    "delta is ignored": (
        "losses.py",
        "free = ratio if delta is None else np.minimum(ratio, delta)",
        "free = ratio",
    ),
    "grpo averages over the batch's tokens": (
        "losses.py",
        "return mask / np.maximum(mask.sum(axis=1, keepdims=True), 1) / len(mask)",
        "return mask / np.maximum(mask.sum(), 1)",
    ),
    "the tool mask is ignored": (
        "losses.py",
        'return mask if tool_mask is None else mask * tokens("tool_mask", _binary("tool_mask", tool_mask), mask.shape)',
        "return mask",
    ),
    "the correction's gradient stops at the ratio": (
        "losses.py",
        "return kl * factor, slope * factor, np.zeros_like(kl) if ratio is None else kl",
        "return kl * factor, slope * factor, np.zeros_like(kl)",
    ),
    "the log-ratio is not capped": (
        "kl.py",
        "return np.clip(log_ratio, -cap, cap)",
        "return log_ratio",
    ),
    "k3 looks the other way": (
        "kl.py",
        "return np.expm1(gap) - gap",
        "return np.expm1(-gap) + gap",
    ),
    "all failed and all passed are one": (
        "signal.py",
        "order = tuple(GroupState)",
        "order = [tuple(GroupState)[i] for i in (0, 1, 1, 3, 4)]",
    ),
    "shares forget what functions do together": (
        "signal.py",
        'return np.einsum("pkf,pk->f", terms, total) / variance if variance else np.full(len(weights), np.nan)',
        "return terms.var(axis=1).sum(axis=0) * terms.shape[1] / (variance or np.nan)",
    ),
}


def _copy(folder: Path) -> Path:
    package = folder / "workbench"
    package.mkdir()
    for name in NEEDED:
        source = ROOT / "workbench" / name
        if source.is_dir():
            shutil.copytree(source, package / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, package / name)
    for name in SUITE.values():
        shutil.copy(ROOT / "tests" / "grpo" / name, folder / name)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -x -q -p no:cacheprovider\n")
    return package


def _suite(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", *tests]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
def test_the_unmutated_copy_passes(tmp_path):
    package = _copy(tmp_path)
    (tmp_path / "test_which_copy.py").write_text(
        f"import workbench.grpo\n\ndef test_copy():\n    assert workbench.grpo.__file__.startswith({str(package)!r})\n"
    )
    result = _suite(tmp_path, *SUITE.values(), "test_which_copy.py")
    assert result.returncode == 0, result.stdout[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fails_the_suite(name, tmp_path):
    file, line, mutant = MUTANTS[name]
    path = _copy(tmp_path) / "grpo" / file
    source = path.read_text(encoding="utf-8")
    assert source.count(line) == 1, f"{file} no longer has this line exactly once: {line}"
    path.write_text(source.replace(line, mutant), encoding="utf-8")
    result = _suite(tmp_path, SUITE[file])
    assert result.returncode == 1, f"survived: {name}\n{result.stdout[-2000:]}"
    assert " failed" in result.stdout

"""The doctor's rules: each a pure function from :class:`Facts` to findings, with the evidence and the cure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from workbench.preflight.backends import UNSLOTH_OLDEST, choose_backend, gpu_obstacle
from workbench.preflight.facts import Facts
from workbench.preflight.findings import Finding, Level, ranked
from workbench.preflight.pairs import known_failures, pairs
from workbench.preflight.pins import pin, pinned, pinned_versions

_GIB = 2**30
PURPOSE = {
    "core": "nothing works without it",
    "train": "sampling or training needs it",
    "app": "the app needs it",
    "unsloth": "4-bit LoRA through Unsloth needs it",
    "notebooks": "the notebooks need it",
}


def examine(facts: Facts) -> tuple[Finding, ...]:
    """All findings on these facts, what stops first."""
    return ranked(finding for rule in RULES for finding in rule(facts))


def python_version(facts: Facts) -> Iterator[Finding]:
    """Python must be one of those the project declares."""
    version = ".".join(map(str, facts.python))
    if not (3, 11) <= facts.python[:2] <= (3, 13):
        yield Finding(
            Level.STOP, "python", f"Python {version} is outside {pinned()['python']}.", version, "use Python 3.11"
        )


def missing_packages(facts: Facts) -> Iterator[Finding]:
    """For each use, the packages that are not there and one command that adds them all."""
    levels = {"core": Level.STOP, "train": Level.WARN, "app": Level.WARN}
    for use, purpose in PURPOSE.items():
        absent = [name for name in pinned()["extras"][use] if name not in facts.packages]
        if not absent or (use == "unsloth" and gpu_obstacle(facts)):  # a CPU never needs Unsloth
            continue
        if use == "unsloth" and "unsloth" in facts.packages:
            yield Finding(Level.WARN, "bitsandbytes", "Unsloth loads 4-bit weights with it.", "missing", pin(*absent))
            continue
        message = f"{' and '.join(absent)} missing; {purpose}."
        yield Finding(levels.get(use, Level.NOTE), use, message, fix=pin(*absent))


def untested_versions(facts: Facts) -> Iterator[Finding]:
    """Packages at another version than the tested one: a warning across major versions, a note otherwise."""
    others = {n: v for n, v in pinned_versions().items() if facts.packages.get(n, v).split("+")[0] != v}
    major = [name for name, version in others.items() if _major(facts.packages[name]) != _major(version)]
    for level, names in ((Level.WARN, major), (Level.NOTE, [name for name in others if name not in major])):
        if names:
            evidence = ", ".join(f"{name} {facts.packages[name]} (tested {others[name]})" for name in names)
            step = "another major version" if level is Level.WARN else "another version"
            yield Finding(level, "versions", f"Installed at {step} than was tested.", evidence, pin(*names))


def _major(version: str) -> str:
    return version.split(".")[0]


def accelerator(facts: Facts) -> Iterator[Finding]:
    """A GPU that torch cannot use, or that needs care."""
    obstacle = gpu_obstacle(facts)
    if facts.gpu_error:
        yield Finding(
            Level.WARN, "gpu", "The NVIDIA driver does not answer.", facts.gpu_error, "reload the driver or reboot"
        )
    if facts.gpus and obstacle and "torch" in facts.packages:
        names = ", ".join(gpu.name for gpu in facts.gpus)
        message = f"There is a GPU that torch cannot use: {obstacle}."
        yield Finding(
            Level.WARN, "torch", message, f"{names}; torch {facts.packages['torch']}", _gpu_fix(facts, obstacle)
        )
    if facts.tpu:
        yield Finding(Level.WARN, "tpu", "No backend here uses a TPU; the CPU would run.", fix="choose a GPU runtime")
    if obstacle:
        return
    old = [gpu for gpu in facts.gpus if (gpu.compute_capability or 8.0) < 8.0]
    if old:
        message = "This GPU computes bfloat16 only in software: train in float16 and watch grad_norm for NaN."
        yield Finding(Level.NOTE, "gpu", message, f"{old[0].name}, compute capability {old[0].compute_capability:g}")
    if "unsloth" in facts.packages and any((gpu.compute_capability or 8.0) < UNSLOTH_OLDEST for gpu in facts.gpus):
        yield Finding(
            Level.WARN, "unsloth", "Unsloth needs compute capability 7.0; TRL would run instead.", old[0].name
        )
    if len(facts.gpus) > 1:
        message = "One process uses one GPU; several need one process each."
        fix = f"accelerate launch --num_processes {len(facts.gpus)} ..."
        yield Finding(Level.NOTE, "gpu", message, f"{len(facts.gpus)} GPUs", fix)


def _gpu_fix(facts: Facts, obstacle: str) -> str:
    if "hides" in obstacle:
        return "unset CUDA_VISIBLE_DEVICES"
    if "driver" in obstacle:
        return "install a newer NVIDIA driver, or a build of torch for an older CUDA"
    if facts.torch_cuda is None and facts.system == "Linux":
        return "pip install --force-reinstall " + pin("torch").removeprefix("pip install ")
    return "install the build of torch that pytorch.org/get-started names for this system and GPU"


def unused_unsloth(facts: Facts) -> Iterator[Finding]:
    """Unsloth on a machine without a usable GPU is left alone."""
    if "unsloth" in facts.packages and choose_backend(facts).device == "cpu":
        message = "Unsloth is installed but not used on a CPU, where it supports only supervised fine-tuning."
        yield Finding(Level.NOTE, "unsloth", message, facts.packages["unsloth"])


def room(facts: Facts) -> Iterator[Finding]:
    """Memory and disk: nano needs about 1 GiB, smollm2 about 3 GiB and, once, 1 GiB of disk."""
    free, disk = facts.memory_available, facts.disk_free
    if free is not None and free < 3 * _GIB:
        level, model = (
            (Level.WARN, "nano needs about 1 GiB") if free < _GIB else (Level.NOTE, "smollm2 needs about 3 GiB")
        )
        yield Finding(
            level, "memory", f"Little memory is available: {model}.", f"{free / _GIB:.1f} GiB", "close programs"
        )
    if disk is not None and disk < _GIB:
        yield Finding(
            Level.WARN,
            "disk",
            "smollm2's cache and runs need about 1 GiB.",
            f"{disk / _GIB:.1f} GiB free",
            "free some disk",
        )


def models(facts: Facts) -> Iterator[Finding]:
    """Embedded models whose files are not here."""
    if facts.models.get("nano", True) is False:
        message = "The weights that ship with the package are not there, so nano cannot be sampled."
        yield Finding(Level.WARN, "nano", message, fix="install the package again, or clone the repository anew")
    if facts.models.get("smollm2", True) is False and "transformers" in facts.packages:
        message = "Not converted yet; the first use does it (93 MB to download, about half a minute)."
        yield Finding(Level.NOTE, "smollm2", message, fix="workbench sample --model smollm2 --tasks bfcl_simple")


def surroundings(facts: Facts) -> Iterator[Finding]:
    """Notebook runtimes and the browser of the tests."""
    if facts.runtime:
        message = f"This is {facts.runtime.capitalize()}: the app is reached through a share link."
        yield Finding(Level.NOTE, "runtime", message, fix="workbench app --share --auth USER:PASSWORD")
    if "playwright" in facts.packages and facts.chromium is None:
        message = "The browser tests are skipped without Chromium."
        yield Finding(
            Level.NOTE, "chromium", message, fix="apt-get install chromium" if facts.system == "Linux" else ""
        )


RULES: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    *(python_version, missing_packages, pairs, known_failures, untested_versions),
    *(accelerator, unused_unsloth, room, models, surroundings),
)

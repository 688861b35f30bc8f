"""What there is on this machine, gathered without importing torch: versions, GPUs, memory, disk, runtime.

Everything the doctor judges is in :class:`Facts`, so that a test can describe a Colab T4, a laptop or a broken
installation without having one.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

# Not ours, but when installed they must fit torch or the import of transformers fails.
NEIGHBOURS = ("torchvision", "torchaudio", "triton", "xformers", "vllm", "torchao")
_QUERY = ("name", "memory.total", "driver_version", "compute_cap")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as the driver describes it; None where the driver does not say."""

    name: str
    memory_mib: int | None
    driver: str
    compute_capability: float | None


@dataclass(frozen=True)
class Facts:
    """A machine and its Python environment. Sizes are bytes; package names are normalised (``unsloth-zoo``)."""

    python: tuple[int, int, int] = (3, 11, 0)
    system: str = "Linux"
    machine: str = "x86_64"
    runtime: str = ""  # "colab", "kaggle", or ""
    tpu: bool = False
    cpu_count: int = 1
    memory_total: int | None = None
    memory_available: int | None = None
    disk_free: int | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    requirements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # what each installed package declares
    torch_cuda: str | None = None  # the CUDA that torch was built for, "13.0"; None for a CPU build
    torch_hip: str | None = None
    gpus: tuple[Gpu, ...] = ()
    gpu_error: str = ""  # what nvidia-smi said when it is there and failed
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES
    models: Mapping[str, bool] = field(default_factory=dict)  # name -> its files are here
    chromium: str | None = None


def gather_facts(names: Iterable[str], models: Mapping[str, bool] | None = None) -> Facts:
    """Look at this machine. ``names`` are the packages of interest; what they require is looked up as well."""
    packages, requirements = installed_packages([*names, *NEIGHBOURS])
    cuda, hip = torch_build()
    gpus, gpu_error = nvidia_gpus()
    total, available = memory_bytes()
    return Facts(
        python=sys.version_info[:3],
        system=platform.system(),
        machine=platform.machine(),
        runtime=_runtime(),
        tpu=any(name in os.environ for name in ("COLAB_TPU_ADDR", "TPU_NAME", "TPU_ACCELERATOR_TYPE")),
        cpu_count=os.cpu_count() or 1,
        memory_total=total,
        memory_available=available,
        disk_free=_disk_free(),
        packages=packages,
        requirements=requirements,
        torch_cuda=cuda,
        torch_hip=hip,
        gpus=gpus,
        gpu_error=gpu_error,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        models=dict(models or {}),
        chromium=next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None),
    )


def installed_packages(names: Iterable[str]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Versions of the named packages and of everything they require, and each one's declared requirements."""
    packages: dict[str, str] = {}
    requirements: dict[str, tuple[str, ...]] = {}
    waiting, seen = [normalised(name) for name in names], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
            version, declared = found.version, found.requires or []
        except (metadata.PackageNotFoundError, KeyError, OSError):
            continue
        if not version:  # the remains of an interrupted installation
            continue
        packages[name] = version
        requirements[name] = tuple(line for line in declared if "extra ==" not in line and "extra==" not in line)
        waiting += [normalised(match[0]) for line in requirements[name] if (match := _NAME.match(line))]
    return packages, requirements


def normalised(name: str) -> str:
    """The one spelling of a package's name: lower case, with hyphens."""
    return re.sub(r"[-_.]+", "-", name).lower()


def torch_build() -> tuple[str | None, str | None]:
    """The CUDA and ROCm versions the installed torch was built for, read from its ``version.py`` without importing."""
    try:
        path = Path(str(metadata.distribution("torch").locate_file("torch/version.py")))
        text = path.read_text(encoding="utf-8")
    except (metadata.PackageNotFoundError, OSError):
        return None, None
    found = {name: re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", text, re.M) for name in ("cuda", "hip")}
    cuda, hip = (match[1] if match else None for match in found.values())
    return cuda, hip


def nvidia_gpus(run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run) -> tuple[tuple[Gpu, ...], str]:
    """The NVIDIA GPUs that ``nvidia-smi`` lists, and its complaint when it is there but does not answer."""
    program = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    if program is None:
        return (), ""
    command = [program, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        done = run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"nvidia-smi: {error}"
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        return (), f"nvidia-smi: {lines[0] if lines else f'exit {done.returncode}'}"
    return parse_gpus(done.stdout), ""


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """The GPUs in the answer of ``nvidia-smi --query-gpu=name,memory.total,driver_version,compute_cap``.

    >>> parse_gpus("Tesla T4, 15360, 580.82.07, 7.5")
    (Gpu(name='Tesla T4', memory_mib=15360, driver='580.82.07', compute_capability=7.5),)
    """
    gpus = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.rsplit(",", len(_QUERY) - 1)]
        if len(cells) == len(_QUERY):
            memory, capability = _number(cells[1]), _number(cells[3])
            gpus.append(Gpu(cells[0], None if memory is None else int(memory), cells[2], capability))
    return tuple(gpus)


def memory_bytes(
    meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")
) -> tuple[int | None, int | None]:
    """Total and available memory in bytes; None where the system does not say. A container's limit counts."""
    try:
        rows = dict(re.findall(r"^(\w+):\s+(\d+) kB", meminfo.read_text(encoding="ascii"), re.M))
        total, available = int(rows["MemTotal"]) * 1024, int(rows["MemAvailable"]) * 1024
    except (OSError, KeyError):
        names = getattr(os, "sysconf_names", {})
        known = "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names
        return (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else None), None
    limit = _read_number(cgroup / "memory.max")
    if limit is not None and limit < total:  # what the page cache holds can be had back, so it does not count
        used = (_read_number(cgroup / "memory.current") or 0) - _page_cache(cgroup / "memory.stat")
        return limit, min(available, max(0, limit - used))
    return total, available


def _page_cache(stat: Path) -> int:
    try:
        match = re.search(r"^inactive_file (\d+)$", stat.read_text(encoding="ascii"), re.M)
    except OSError:
        return 0
    return int(match[1]) if match else 0


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" means no limit
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def _disk_free() -> int | None:
    try:
        return shutil.disk_usage(Path.home()).free
    except OSError:
        return None


def _runtime() -> str:
    if "COLAB_RELEASE_TAG" in os.environ or "COLAB_GPU" in os.environ:
        return "colab"
    return "kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in os.environ else ""

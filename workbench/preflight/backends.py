"""Which backend would run on a machine, and why: Unsloth on a GPU that has it, TRL on a GPU, the lab loop on a CPU."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.preflight.facts import Facts, Gpu

_DRIVER_FOR_CUDA = {11: 450, 12: 525, 13: 580}  # first Linux driver branch that runs each CUDA major (NVIDIA's table)
_OLDEST_FOR_CUDA = {11: 3.5, 12: 5.0, 13: 7.5}  # lowest compute capability a toolkit still builds for
UNSLOTH_OLDEST = 7.0  # compute capability


@dataclass(frozen=True, slots=True)
class Backend:
    """The backend's name (``unsloth``, ``trl``, ``lab``, or ``none``), its device, and the reason in a sentence."""

    name: str
    device: str
    why: str


def choose_backend(facts: Facts) -> Backend:
    """The backend ``auto`` stands for on these facts. A CPU never touches Unsloth."""
    if "torch" not in facts.packages or "transformers" not in facts.packages:
        missing = " and ".join(name for name in ("torch", "transformers") if name not in facts.packages)
        return Backend("none", "", f"{missing} missing, so nothing can be sampled or trained; scoring works.")
    if obstacle := gpu_obstacle(facts):
        return Backend("lab", "cpu", f"on the CPU, because {obstacle}.")
    gpu = facts.gpus[0]
    if "unsloth" in facts.packages and (gpu.compute_capability or UNSLOTH_OLDEST) >= UNSLOTH_OLDEST:
        return Backend("unsloth", "cuda", f"Unsloth is installed and torch can use the {gpu.name}.")
    if "trl" in facts.packages:
        reason = "its compute capability is below 7.0" if "unsloth" in facts.packages else "Unsloth is not installed"
        return Backend("trl", "cuda", f"torch can use the {gpu.name}, and {reason}.")
    return Backend("lab", "cuda", f"torch can use the {gpu.name}, but neither Unsloth nor TRL is installed.")


def gpu_obstacle(facts: Facts) -> str:
    """Why torch cannot use an NVIDIA GPU here, as the end of a sentence; empty when it can."""
    if not facts.gpus:
        return "nvidia-smi does not answer" if facts.gpu_error else "no NVIDIA GPU was found"
    if facts.visible_devices is not None and facts.visible_devices.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={facts.visible_devices!r} hides the {facts.gpus[0].name}"
    if facts.torch_cuda is None:
        return "this build of torch has no CUDA"
    return _misfit(facts.gpus[0], int(facts.torch_cuda.split(".")[0]), facts.torch_cuda)


def _misfit(gpu: Gpu, major: int, cuda: str) -> str:
    branch, needed = gpu.driver.split(".")[0], _DRIVER_FOR_CUDA.get(major)
    if needed and branch.isdigit() and int(branch) < needed:
        return f"driver {gpu.driver} is too old for torch's CUDA {cuda}, which needs {needed} or newer"
    oldest = _OLDEST_FOR_CUDA.get(major)
    if oldest and gpu.compute_capability is not None and gpu.compute_capability < oldest:
        return (
            f"torch's CUDA {cuda} needs compute capability {oldest:g} and the {gpu.name} has {gpu.compute_capability:g}"
        )
    return ""

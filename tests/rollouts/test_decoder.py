"""Both decoders give the logits of the plain model, token by token, also after rows are retired."""

import copy

import pytest
import torch

from workbench.errors import InputError
from workbench.models.policy import Policy, as_policy
from workbench.models.untrained import byte_tokenizer, untrained_policy
from workbench.rollouts import decoder as decoder_module
from workbench.rollouts.decoder import CachedDecoder, decoder_for, packed_weights
from workbench.rollouts.llama import LlamaDecoder, PackedLinear, fits

PROMPT = tuple(range(5, 40))


def logits_of(policy, ids):
    with torch.no_grad():
        return policy.model(torch.tensor([ids])).logits[0, -1]


def with_lora(policy, **settings):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "o_proj"], init_lora_weights=False, **settings)
    return as_policy("untrained", get_peft_model(copy.deepcopy(policy.model), config), policy.tokenizer, adapter="lora")


def llama(**changes):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3}
    return as_policy("llama", LlamaForCausalLM(LlamaConfig(vocab_size=260, **shape, **changes)), byte_tokenizer())


SUBJECTS = {
    "plain": untrained_policy,
    "lora": lambda: with_lora(untrained_policy()),
    "biases": lambda: llama(attention_bias=True, mlp_bias=True, num_key_value_heads=1),
    "untied": lambda: llama(tie_word_embeddings=False, head_dim=16),
    "llama3-rope": lambda: llama(
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16,
        }
    ),
}


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("way", ["lean", "general"])
def test_decoding_equals_the_plain_model_while_rows_are_retired(subject, way):
    policy = SUBJECTS[subject]()
    if way == "lean":
        assert fits(policy)
    with torch.inference_mode():
        subject = decoder_for(policy, PROMPT, 4, 6) if way == "lean" else CachedDecoder(policy, PROMPT, 4)
        assert isinstance(subject, LlamaDecoder if way == "lean" else CachedDecoder)
        torch.testing.assert_close(subject.first_logits[0], logits_of(policy, PROMPT), atol=2e-5, rtol=1e-4)
        rows = [[*PROMPT] for _ in range(4)]
        for step, kept in enumerate([[0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 3], [2], [0]]):
            if len(kept) < len(rows):
                subject.keep(torch.tensor(kept))
                rows = [rows[i] for i in kept]
            tokens = [(17 * step + 31 * i) % 250 for i in range(len(rows))]
            rows = [[*row, token] for row, token in zip(rows, tokens, strict=True)]
            logits = subject.step(torch.tensor(tokens))
            for row, found in zip(rows, logits, strict=True):
                torch.testing.assert_close(found, logits_of(policy, row), atol=2e-5, rtol=1e-4)


def test_what_the_lean_way_does_not_know_goes_the_general_way(policy):
    from transformers import GPT2Config, GPT2LMHeadModel

    gpt2 = as_policy(
        "gpt2-like", GPT2LMHeadModel(GPT2Config(vocab_size=300, n_embd=16, n_layer=1, n_head=2)), policy.tokenizer
    )
    half = as_policy("half", copy.deepcopy(policy.model).to(torch.bfloat16), policy.tokenizer)
    for other in (gpt2, half, with_lora(policy, use_dora=True)):
        assert not fits(other)
        with torch.inference_mode():
            assert isinstance(decoder_for(other, PROMPT, 2, 4), CachedDecoder)
    turned_off = with_lora(policy)
    with turned_off.model.disable_adapter():
        assert not fits(turned_off)


def test_packed_weights_are_kept_and_made_again_when_a_weight_changes(policy):
    changing = Policy("x", copy.deepcopy(policy.model), policy.tokenizer, (2,), 0)
    first = packed_weights(changing)
    assert packed_weights(changing) is first
    optimizer = torch.optim.AdamW(changing.model.parameters(), lr=1e-2)
    changing.model(torch.tensor([PROMPT])).logits.sum().backward()
    optimizer.step()
    second = packed_weights(changing)
    assert second is not first
    changing.model.load_state_dict(policy.model.state_dict())
    assert packed_weights(changing) is not second
    with torch.inference_mode():
        found = decoder_for(changing, PROMPT, 1, 1).first_logits[0]
    torch.testing.assert_close(found, logits_of(policy, PROMPT), atol=2e-5, rtol=1e-4)


def test_packed_weights_do_not_keep_a_model_alive(policy):
    import gc

    changing = Policy("x", copy.deepcopy(policy.model), policy.tokenizer, (2,), 0)
    before = len(decoder_module._PACKED)
    packed_weights(changing)
    assert len(decoder_module._PACKED) == before + 1
    del changing
    gc.collect()
    assert len(decoder_module._PACKED) == before


@pytest.mark.parametrize("bias", [None, torch.linspace(-1, 1, 12)])
@pytest.mark.parametrize("pack_from", [0, 1_000_000])
def test_both_layouts_of_a_product_equal_the_plain_one(bias, pack_from, monkeypatch):
    monkeypatch.setattr("workbench.rollouts.llama.PACK_FROM", pack_from)
    weight, x = torch.randn(12, 20), torch.randn(5, 20)
    torch.testing.assert_close(PackedLinear(weight, bias)(x), torch.nn.functional.linear(x, weight, bias))


def test_decoding_with_packed_weights_equals_the_plain_model(policy, monkeypatch):
    monkeypatch.setattr("workbench.rollouts.llama.PACK_FROM", 0)
    fresh = Policy("x", copy.deepcopy(policy.model), policy.tokenizer, (2,), 0)
    with torch.inference_mode():
        logits = decoder_for(fresh, PROMPT, 3, 4).step(torch.tensor([7, 8, 9]))
    for token, found in zip((7, 8, 9), logits, strict=True):
        torch.testing.assert_close(found, logits_of(policy, [*PROMPT, token]), atol=2e-5, rtol=1e-4)


def test_a_prompt_that_does_not_fit_names_the_largest_length(policy):
    small = untrained_policy(positions=40)
    with pytest.raises(InputError, match="largest allowed here is 5"):
        decoder_for(small, PROMPT, 2, 6)
    with pytest.raises(InputError, match="prompt_ids"):
        decoder_for(policy, (), 2, 6)

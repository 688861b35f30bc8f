"""A policy that knows nothing: random weights and a byte-level tokenizer, made in milliseconds without any file.

For tests, and for trying a pipeline before a model is there. It is a real Llama-architecture policy in every other
respect: it samples, streams, and can be stepped.
"""

from __future__ import annotations

from typing import Any

from workbench.models.policy import Policy, as_policy, require_training_stack
from workbench.models.templates import with_tool_template

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def untrained_policy(seed: int = 0, *, width: int = 32, layers: int = 2, positions: int = 2048) -> Policy:
    """A Llama of ``layers`` blocks of ``width`` with weights drawn from ``seed``; same seed, same policy.

    Its vocabulary is the 256 bytes, so any text can be read and written, one token a byte.
    """
    require_training_stack()
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return as_policy("untrained", model, tokenizer)


def byte_tokenizer() -> Any:
    """A tokenizer of one token a byte plus ChatML's marks, with our tool template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: index for index, text in enumerate((*SPECIAL, *letters))}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    return with_tool_template(tokenizer)

"""nano's shipped files: complete, portable, and what the card says they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from workbench.tasks.desk import DESK_TOOLS, desk_task, flawed_answer, gold_answer

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

NANO = Path(__file__).parents[2] / "workbench" / "models" / "nano"
FILES = {
    "README.md",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(NANO)


@pytest.fixture(scope="module")
def model():
    return transformers.AutoModelForCausalLM.from_pretrained(NANO, dtype=torch.float32)


def rendered(tokenizer, task):
    tools = [tool.as_openai() for tool in task.tools]
    return tokenizer.apply_chat_template(list(task.messages), tools=tools, add_generation_prompt=True, tokenize=False)


def test_every_file_is_there_and_small():
    assert {path.name for path in NANO.iterdir()} == FILES
    assert sum(path.stat().st_size for path in NANO.iterdir()) < 5_000_000


def test_no_file_names_a_path_of_the_machine_it_was_made_on():
    for path in NANO.iterdir():
        if path.suffix != ".safetensors":
            assert not re.search(r"(?<![\w<])/(?:work|tmp|home|root)/", path.read_text("utf-8")), path.name


def test_it_is_a_llama_of_one_to_three_million_parameters(model):
    assert model.config.model_type == "llama"
    assert 1_000_000 <= model.num_parameters() <= 3_000_000
    assert model.config.max_position_embeddings == 1024
    assert model.config.tie_word_embeddings
    assert all(parameter.dtype is torch.float32 for parameter in model.parameters())
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def test_ends_of_turn_agree_everywhere(model, tokenizer):
    end, pad = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (end, pad)
    assert (model.config.eos_token_id, model.config.pad_token_id) == (end, pad)
    assert (model.generation_config.eos_token_id, model.generation_config.pad_token_id) == (end, pad)
    assert len(tokenizer) == model.config.vocab_size
    assert tokenizer.bos_token_id is None


@pytest.mark.parametrize("mark", ["<tool_call>", "</tool_call>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"])
def test_marks_are_single_tokens_and_only_tool_calls_survive_decoding(tokenizer, mark):
    ids = tokenizer(f"a{mark}b")["input_ids"]
    assert ids[1:-1] == [tokenizer.convert_tokens_to_ids(mark)]
    assert (mark in tokenizer.decode(ids, skip_special_tokens=True)) == ("tool_call" in mark)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Grüße, 东京! \t\n  x",
        '{"a": [1, 2.5, null], "b": "c\\"d"}',
        "1234567890",
        "naïve – “quotes” 🙂",
        "a  b   c\r\n",
    ],
)
def test_any_text_survives_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_every_answer_survives_the_round_trip_and_digits_stand_alone(tokenizer):
    import random

    rng = random.Random(0)
    for index in range(300):
        task = desk_task(index)
        for text in (gold_answer(task), flawed_answer(task, rng)[0]):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.decode(ids, skip_special_tokens=True) == text
            assert len(ids) <= 96
    assert len(tokenizer("279")["input_ids"]) == 3


def test_the_prompt_shows_every_tool_and_argument_and_is_short(tokenizer):
    longest = 0
    for index in range(200):
        task = desk_task(index)
        text = rendered(tokenizer, task)
        for tool in task.tools:
            schema = tool.parameters
            names = [name + ("" if name in schema["required"] else "?") for name in schema["properties"]]
            assert f"{tool.name}{'!' if tool.destructive else ''}({', '.join(names)})\n" in text
        assert text.endswith(f"<|im_start|>user\n{task.prompt}<|im_end|>\n<|im_start|>assistant\n")
        longest = max(longest, len(tokenizer(text)["input_ids"]))
    assert longest <= 140


def test_a_conversation_with_calls_and_results_renders_and_starts_with_its_own_prompt(tokenizer):
    tools = [DESK_TOOLS["list_events"].as_openai()]
    call = {"type": "function", "function": {"name": "list_events", "arguments": {"day": "Friday"}}}
    opening = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is on Friday?"}]
    rest = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "name": "list_events", "content": "[]"},
        {"role": "assistant", "content": "Nothing."},
    ]
    prompt = tokenizer.apply_chat_template(opening, tools=tools, add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template(opening + rest, tools=tools, tokenize=False)
    assert prompt == (
        "<|im_start|>system\nBe brief.\nlist_events(day)\n<|im_end|>\n"
        "<|im_start|>user\nWhat is on Friday?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert whole == (
        prompt
        + '<tool_call>{"name": "list_events", "arguments": {"day": "Friday"}}</tool_call><|im_end|>\n'
        + "<|im_start|>tool\n[]<|im_end|>\n<|im_start|>assistant\nNothing.<|im_end|>\n"
    )
    text = call["function"] | {"arguments": json.dumps(call["function"]["arguments"])}
    again = [rest[0] | {"tool_calls": [{"function": text}]}, *rest[1:]]
    assert tokenizer.apply_chat_template(opening + again, tools=tools, tokenize=False) == whole


def test_tools_with_odd_schemas_and_no_tools_render(tokenizer):
    user = [{"role": "user", "content": "Hi"}]
    bare = {"type": "function", "function": {"name": "ping", "description": "Ping."}}
    odd = {
        "type": "function",
        "function": {"name": "odd", "parameters": {"type": "object", "properties": {"items": {}}}},
    }
    text = tokenizer.apply_chat_template(user, tools=[bare, odd], add_generation_prompt=True, tokenize=False)
    assert "ping()\nodd(items?)\n" in text
    for tools in (None, []):
        text = tokenizer.apply_chat_template(user, tools=tools, add_generation_prompt=True, tokenize=False)
        assert text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.slow
def test_nano_starts_middling_on_held_out_tasks(model, tokenizer):
    """Temperature 1, K = 8, 48 held-out tasks: pass rate, dead groups, and a greedy policy that mostly means well."""
    from workbench.rewards import score_completion
    from workbench.types import Completion

    torch.manual_seed(0)
    tasks = [desk_task(20_004 + 5 * i) for i in range(48)]

    def right(task, ids):
        text = tokenizer.decode(ids, skip_special_tokens=True)
        return score_completion(task, Completion(text))["task_completion"].value == 1.0

    passed, sure = [], 0
    for at in range(0, len(tasks), 16):
        part = tasks[at : at + 16]
        batch = tokenizer([rendered(tokenizer, t) for t in part], padding=True, return_tensors="pt")
        inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "max_new_tokens": 96}
        with torch.inference_mode():
            sampled = model.generate(**inputs, do_sample=True, top_k=0, num_return_sequences=8)
            greedy = model.generate(**inputs, do_sample=False)
        width = batch["input_ids"].shape[1]
        for i, task in enumerate(part):
            passed.append(sum(right(task, ids) for ids in sampled[8 * i : 8 * i + 8, width:]))
            sure += right(task, greedy[i, width:])
    assert 0.25 <= sum(passed) / (8 * len(tasks)) <= 0.65
    assert sum(n in (0, 8) for n in passed) / len(tasks) < 0.40
    assert sure / len(tasks) >= 0.6

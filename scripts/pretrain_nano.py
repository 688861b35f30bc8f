"""Make the embedded policy ``nano`` from nothing: a tokenizer, a small Llama, and flawed desk demonstrations.

    python scripts/pretrain_nano.py --steps 2800 --seed 0 --out workbench/models/nano

Deterministic for a seed on one machine (one thread, no data but the desk's train half). Half of the names and
subjects it reads are invented, so that it learns to copy what it is told instead of learning the names by heart.
Every ``--every`` steps it prints the loss and what a group of 8 looks like on held-out tasks.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from workbench.rewards import score_completion
from workbench.tasks.desk.demonstrations import flawed_answer
from workbench.tasks.desk.generator import compose, desk_task
from workbench.tasks.desk.slots import Draw
from workbench.tasks.desk.values import HALVES
from workbench.types import Completion, Split, Task

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>")  # part of the answer, so they must survive decoding
WORDS = (
    r"[^\W\d]+|\d| ?[^\w\s]+(?: [^\w\s]+)* ?|\s"  # words without their space (they copy exactly), digits, punctuation
)
VOCABULARY = 704
PROMPT_WEIGHT = 0.1  # of a prompt token's loss, next to 1 for an answer token
NEW_TOKENS = 96
EMBEDDING = 0.1  # standard deviation at the start; the heads below are scaled to it
LOOK_BACK = (1, 1, 1)  # tokens; one head of the first layer each
LOOK_BACK_SCALE = 6.0  # how sharply they look
WRITE = 0.225  # how loudly they write down what they saw
COPY_SCALE = 2.0  # how sharply the second layer's heads look for what followed
HAND_ON = 1.5  # how loudly they say it
STARTS = (*"bcdfghjklmnprstvwz", "br", "ch", "st", "tr", "pl", "gr")  # of an invented syllable
ENDS = (*"nrsltm", "nd", "ck")  # of an invented word
LETTERS = "aaabbccddeeeeffgghhiiijkkllmmnnnooopppqrrrsssttttuuvwwxyyz"
TRAIN_WORDS = [
    word
    for (pool, split), entries in HALVES.items()
    if split is Split.TRAIN and pool not in ("talk", "file")
    for entry in entries
    for word in entry.lower().split()
    if len(word) > 3
]

Row = tuple[list[int], list[int]]  # prompt ids, answer ids with the end of turn


class PracticeDraw(Draw):
    """Like :class:`Draw`, from the train half, but most of the words are invented on the spot."""

    def word(self, pool: str) -> str:
        """A word of the pool's train half, or a made-up one of the same shape."""
        if pool == "talk" or self.chance(0.3):
            return super().word(pool)
        words = [self._invented() for _ in range(1 + self.chance(0.5))]
        if pool in ("name", "city"):
            return words[0].capitalize()
        if pool == "file":
            return f"{words[0]}.{self.pick(('txt', 'pdf', 'csv', 'doc', 'png', 'zip'))}"
        if pool == "topic" and self.chance(0.3):
            words.insert(0, "the")
        if pool == "errand":
            words[1:] = [*(["the"] if self.chance(0.5) else []), self._invented()]
        return " ".join(words[:1] if pool == "label" else words)

    def _invented(self) -> str:
        """Syllables, two real words crossed, or plain letters: every piece of the vocabulary gets to be copied."""
        kind = self.random()
        if kind < 0.4:
            one, two = (self.pick(TRAIN_WORDS) for _ in range(2))
            return one[: 1 + int(self.random() * len(one))] + two[int(self.random() * len(two)) :]
        if kind < 0.6:
            return "".join(self.pick(LETTERS) for _ in range(3 + int(self.random() * 5)))
        syllables = [self.pick(STARTS) + self.pick("aeiou") for _ in range(1 + int(self.random() * 3))]
        return "".join(syllables) + (self.pick(ENDS) if self.chance(0.6) or len(syllables) == 1 else "")


def demonstrations(seed: int) -> Iterator[tuple[Task, str]]:
    """An endless stream of train tasks and the flawed answers that nano imitates."""
    rng = random.Random(seed)
    while True:
        task = compose(PracticeDraw(int(rng.random() * 2**48), Split.TRAIN), "practice")
        yield task, flawed_answer(task, rng)[0]


def build_tokenizer(template: str, seed: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE trained on 6,000 rendered demonstrations."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[*SPECIAL, *MARKS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)
    wrapped.chat_template = template
    stream = demonstrations(seed)
    texts = (render(wrapped, task) + answer for task, answer in (next(stream) for _ in range(6000)))
    bare = re.compile("|".join(map(re.escape, [*SPECIAL, *MARKS])))
    tokenizer.train_from_iterator((bare.sub("", text) for text in texts), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    plain = json.loads(tokenizer.to_str())
    for token in plain["added_tokens"]:
        token["special"] = token["content"] in SPECIAL
    done = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(plain)),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
    done.chat_template = template
    return done


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A new Llama of about 1.4 M parameters."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=160,
        intermediate_size=432,
        num_hidden_layers=4,
        num_attention_heads=5,
        num_key_value_heads=5,
        max_position_embeddings=1024,
        attention_bias=True,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config)
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=EMBEDDING)
    for head, distance in enumerate(LOOK_BACK):
        look_back(model, head, distance)
        copy_what_followed(model, head)
    return model


@torch.no_grad()
def look_back(model: LlamaForCausalLM, head: int, distance: int) -> None:
    """Start one head of the first layer as one that writes down the token ``distance`` places back.

    Copying needs such a head, and a model this small takes thousands of steps to find one. Under rotary positions
    the biases alone do it: the score of a key d tokens back is the sum over frequencies f of a * cos((d - distance) f).
    """
    attention, size = model.model.layers[0].self_attn, model.config.head_dim
    rows = slice(head * size, (head + 1) * size)
    angles = distance * model.model.rotary_emb.inv_freq
    attention.q_proj.weight[rows] = 0
    attention.k_proj.weight[rows] = 0
    attention.q_proj.bias[rows] = LOOK_BACK_SCALE * torch.cat([torch.ones(size // 2), torch.zeros(size // 2)])
    attention.k_proj.bias[rows] = LOOK_BACK_SCALE * torch.cat([angles.cos(), angles.sin()])
    torch.nn.init.normal_(attention.v_proj.weight[rows], std=model.config.hidden_size**-0.5)
    torch.nn.init.orthogonal_(attention.o_proj.weight[:, rows], gain=WRITE)


@torch.no_grad()
def copy_what_followed(model: LlamaForCausalLM, head: int) -> None:
    """Start one head of the second layer as one that attends to what followed the present token earlier on.

    Its query is the present token as the first layer's head writes tokens down, its key what that head wrote; only
    the slowly rotating half of the head is used, so that distance hardly matters. It hands on what it attends to.
    """
    first, second = (model.model.layers[at].self_attn for at in (0, 1))
    size, half = model.config.head_dim, model.config.head_dim // 4
    rows = slice(head * size, (head + 1) * size)
    slow = torch.tensor([*range(half, 2 * half), *range(3 * half, 4 * half)]) + head * size
    written = torch.arange(2 * half) + head * size
    second.q_proj.weight[rows] = 0
    second.k_proj.weight[rows] = 0
    second.q_proj.weight[slow] = COPY_SCALE * first.v_proj.weight[written]
    second.k_proj.weight[slow] = COPY_SCALE * first.o_proj.weight[:, written].T / WRITE
    torch.nn.init.orthogonal_(second.v_proj.weight[rows])
    second.o_proj.weight[:, rows] = HAND_ON * second.v_proj.weight[rows].T


def render(tokenizer: PreTrainedTokenizerFast, task: Task) -> str:
    """The prompt's text, as the policy sees it."""
    tools = [tool.as_openai() for tool in task.tools]
    return str(
        tokenizer.apply_chat_template(list(task.messages), tools=tools, add_generation_prompt=True, tokenize=False)
    )


def batches(tokenizer: PreTrainedTokenizerFast, seed: int, size: int) -> Iterator[list[Row]]:
    """Batches of rows of about one length: 16 batches' worth are sorted, cut, and shuffled."""
    stream, rng = demonstrations(seed), random.Random(seed)
    while True:
        pairs = [next(stream) for _ in range(16 * size)]
        prompts = tokenizer([render(tokenizer, task) for task, _ in pairs])["input_ids"]
        answers = tokenizer([answer + "<|im_end|>" for _, answer in pairs])["input_ids"]
        rows = sorted(zip(prompts, answers, strict=True), key=lambda row: len(row[0]) + len(row[1]))
        chunks = [rows[at : at + size] for at in range(0, len(rows), size)]
        yield from (chunks[at] for at in sorted(range(len(chunks)), key=lambda _: rng.random()))


def collate(rows: list[Row], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """ids (B, T) padded on the right, and every token's loss weight (B, T)."""
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.full((len(rows), width), pad)
    weights = torch.zeros(len(rows), width)
    for at, (prompt, answer) in enumerate(rows):
        ids[at, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        weights[at, : len(prompt)] = PROMPT_WEIGHT
        weights[at, len(prompt) : len(prompt) + len(answer)] = 1.0
    return ids, weights


def batch_loss(model: LlamaForCausalLM, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, float]:
    """The weighted loss, and the mean loss of the answer tokens alone. Padding is on the right: causality hides it."""
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits.float()
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    answers = losses.detach()[weights == 1.0].mean().item()
    return (losses * weights).sum() / weights.sum(), answers


def diagnosis(task: Task, text: str) -> str:
    """The first mistake in an answer, by the demonstrations' names; "right" or "prose_first" when there is none.

    It names what it sees and never decides whether an answer passes: that is :func:`passes`.
    """
    blocks = re.findall(r"<tool_call>(.*?)(?:</tool_call>|$)", text, re.DOTALL)
    try:
        calls = [(call["name"], dict(call["arguments"])) for call in map(json.loads, blocks)]
    except (ValueError, KeyError, TypeError):
        return "broken_json" if task.expected else "needless_call"
    if text.count("<tool_call>") != text.count("</tool_call>"):
        return "broken_json"
    expected = list(task.expected)
    if not expected or not calls:
        return ("needless_call" if calls else "right") if not expected else "refusal"
    wanted = Counter(call.name for call in expected)
    got = Counter(name for name, _ in calls)
    if got != wanted:
        if got - wanted and not set(got) - set(wanted):
            return "double_call"
        return "missing_call" if not got - wanted else "wrong_tool"
    for call in expected:
        arguments = next(arguments for name, arguments in calls if name == call.name)
        required = set(call.arguments) - call.optional
        if required - set(arguments):
            return "unconfirmed" if required - set(arguments) == {"confirm"} else "missing_argument"
        if set(arguments) - set(call.arguments):
            return "extra_argument"
        wrong = [k for k, v in arguments.items() if not any(v == a and type(v) is type(a) for a in call.arguments[k])]
        if wrong:
            return "false_confirm" if wrong == ["confirm"] else "wrong_value"
    return "right" if text.startswith("<tool_call>") else "prose_first"


def passes(task: Task, text: str) -> bool:
    """Whether the task is completed: exactly the expected calls, by the workbench's own reward."""
    return score_completion(task, Completion(text))["task_completion"].value == 1.0


@torch.inference_mode()
def sample(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, tasks: list[Task], k: int) -> list[list[str]]:
    """K answers to every task at temperature 1; greedy ones when k is 1."""
    answers: list[list[str]] = []
    for at in range(0, len(tasks), 16):
        inputs = tokenizer([render(tokenizer, task) for task in tasks[at : at + 16]], padding=True, return_tensors="pt")
        out = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            do_sample=k > 1,
            num_return_sequences=k,
            max_new_tokens=NEW_TOKENS,
            top_k=0 if k > 1 else None,
        )
        texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        answers += [texts[i : i + k] for i in range(0, len(texts), k)]
    return answers


def evaluate(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, tasks: list[Task], k: int = 8) -> str:
    """One line: pass rate, dead groups, greedy pass rate, and the mistakes seen."""
    model.eval()
    groups = sample(model, tokenizer, tasks, k)
    right = [sum(passes(task, text) for text in group) for task, group in zip(tasks, groups, strict=True)]
    dead = sum(n in (0, k) for n in right) / len(tasks)
    greedy = [(task, group[0]) for task, group in zip(tasks, sample(model, tokenizer, tasks, 1), strict=True)]
    sure = sum(passes(task, text) for task, text in greedy) / len(tasks)
    kinds = Counter(diagnosis(task, text) for task, group in zip(tasks, groups, strict=True) for text in group)
    model.train()
    return (
        f"pass {sum(right) / (k * len(tasks)):.3f} dead {dead:.3f} greedy {sure:.3f} "
        f"| {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())} "
        f"| greedy: {dict(Counter(diagnosis(task, text) for task, text in greedy))}"
    )


def held_out(count: int, first: int = 0) -> list[Task]:
    """The first ``count`` held-out tasks of the stream from index ``first`` on."""
    return [desk_task(first + 5 * i + 4) for i in range(count)]


def train(args: argparse.Namespace) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Build and train; see the module's text."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    template = (Path(__file__).parents[1] / "workbench/models/nano/chat_template.jinja").read_text("utf-8")
    tokenizer = build_tokenizer(template, args.seed)
    model = build_model(tokenizer).train()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.05, fused=True)
    stream, started, recent = batches(tokenizer, args.seed + 1, args.batch), time.monotonic(), 0.0
    for step in range(1, args.steps + 1):
        warm = min(1.0, step / 60)
        optimizer.param_groups[0]["lr"] = args.lr * warm * (0.525 + 0.475 * math.cos(math.pi * step / args.steps))
        loss, answer_loss = batch_loss(model, *collate(next(stream), tokenizer.pad_token_id))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        recent = 0.95 * recent + 0.05 * answer_loss if step > 1 else answer_loss
        if step % 25 == 0:
            print(f"step {step} loss {recent:.3f} {time.monotonic() - started:.0f} s", flush=True)
        if step % args.every == 0:
            print(f"step {step} {evaluate(model, tokenizer, held_out(32))}", flush=True)
            save(model, tokenizer, args.out)
    return model, tokenizer


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Weights in 16 bits, tokenizer, template and generation settings: what ``from_pretrained(folder)`` needs."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    half = LlamaForCausalLM(model.config).half()
    half.load_state_dict({key: value.half() for key, value in model.state_dict().items()})
    half.generation_config = model.generation_config
    half.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(argv: list[str] | None = None) -> int:
    """Train, save, and print the closing evaluation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=2800)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2.5e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=400, help="steps between evaluations")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    model, tokenizer = train(args)
    save(model, tokenizer, args.out)
    print(f"final, 128 held-out tasks: {evaluate(model, tokenizer, held_out(128, 10_000))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

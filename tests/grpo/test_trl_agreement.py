"""The arithmetic equals TRL 1.14.2's own code, executed here from the installed package and never retyped.

Advantages: the statements of ``GRPOTrainer._generate_and_score_completions`` between the rewards and the advantages
are cut from the installed source and run, in float64 and in TRL's float32; then a real trainer on a tiny model does
it end to end. Losses: ``GRPOTrainer._compute_loss`` is called on an object that has only what it reads. Run with
``-s`` to see the worst differences.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.grpo import combine_rewards, group_advantages, policy_loss

pytestmark = pytest.mark.slow
AGGREGATIONS = [
    ("sum_then_normalize", "group"),
    ("sum_then_normalize", "batch"),
    ("sum_then_normalize", "none"),
    ("normalize_then_sum", "group"),
]


@pytest.fixture(scope="module")
def trl():
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        import trl as package
        from trl.trainer import grpo_trainer

    torch.set_num_threads(1)
    assert package.__version__ == "1.14.2", "agreement is claimed with this version"
    return SimpleNamespace(torch=torch, module=grpo_trainer, Trainer=grpo_trainer.GRPOTrainer, package=package)


# ---- advantages: TRL's own statements ------------------------------------------------------------------------------


def _advantage_statements(trl):
    source = textwrap.dedent(inspect.getsource(trl.Trainer._generate_and_score_completions))
    body = ast.parse(source).body[0].body
    assigned = [{ast.unparse(t) for t in getattr(node, "targets", [])} for node in body]
    first = [i for i, names in enumerate(assigned) if "unscorable_mask" in names]
    last = [i for i, names in enumerate(assigned) if "advantages" in names and "nan_to_num" in ast.unparse(body[i])]
    assert len(first) == len(last) == 1
    assert first[0] < last[0]
    cut = ast.Module(body=body[first[0] : last[0] + 1], type_ignores=[])
    return compile(ast.fix_missing_locations(cut), "trl", "exec")


def _trl_advantages(trl, code, rewards_per_func, weights, aggregation, scale_rewards, dtype):
    prompts, k, functions = rewards_per_func.shape
    trainer = SimpleNamespace(
        multi_objective_aggregation=aggregation,
        scale_rewards=scale_rewards,
        reward_weights=trl.torch.tensor(weights, dtype=dtype),
        reward_funcs=[None] * functions,
    )
    names = {
        **vars(trl.module),
        "self": trainer,
        "device": "cpu",
        "num_generations": k,
        "rewards_per_func": trl.torch.tensor(rewards_per_func.reshape(prompts * k, functions), dtype=dtype),
    }
    usual = trl.torch.get_default_dtype()
    trl.torch.set_default_dtype(dtype)  # TRL's n / (n - 1) takes the default precision, not the rewards'
    try:
        exec(code, names)
    finally:
        trl.torch.set_default_dtype(usual)
    return names["advantages"].double().numpy().reshape(prompts, k)


def _reward_cases():
    rng = np.random.default_rng(0)
    for prompts, k, functions in itertools.product((1, 2, 7), (2, 4, 8, 16), (1, 2, 4)):
        for share_missing in (0.0, 0.3, 0.8):
            for discrete in (False, True):
                shape = (prompts, k, functions)
                rewards = rng.integers(0, 3, shape) / 2.0 if discrete else rng.normal(size=shape)
                rewards[rng.random(shape) < share_missing] = np.nan
                weights = rng.choice([-0.5, 0.15, 0.3, 0.4, 1.0], size=functions)
                yield rewards, weights, discrete


@pytest.mark.parametrize(("aggregation", "scale_rewards"), AGGREGATIONS)
def test_advantages_equal_trl_statements(trl, aggregation, scale_rewards, capsys):
    code, worst, cases = _advantage_statements(trl), {"float64": 0.0, "float32": 0.0}, 0
    for rewards, weights, discrete in _reward_cases():
        _, ours = combine_rewards(rewards, weights, aggregation, scale_rewards)
        # float32 only where its rounding of the rewards is not magnified by a tiny spread: scores 0, 0.5 and 1
        for name in ("float64", "float32") if discrete else ("float64",):
            theirs = _trl_advantages(trl, code, rewards, weights, aggregation, scale_rewards, getattr(trl.torch, name))
            worst[name] = max(worst[name], float(np.abs(ours - theirs).max()))
        cases += 1
    with capsys.disabled():
        print(f"\nadvantages {aggregation}/{scale_rewards}: {cases} batches, worst difference {worst}")
    assert cases == 216
    assert worst["float64"] < 1e-12
    assert worst["float32"] < 1e-6


def test_group_advantages_equal_trl_with_one_function(trl):
    code = _advantage_statements(trl)
    rewards = np.random.default_rng(1).normal(size=(50, 8)) * 10
    for scale_rewards in ("group", "batch", "none"):
        theirs = _trl_advantages(
            trl, code, rewards[..., None], [1.0], "sum_then_normalize", scale_rewards, trl.torch.float64
        )
        assert np.abs(group_advantages(rewards, scale_rewards) - theirs).max() < 1e-12


def test_departure_trl_in_float32_moves_a_constant_group(trl):
    rewards = np.full((1, 6, 1), 1000.1)
    theirs = _trl_advantages(
        trl, _advantage_statements(trl), rewards, [1.0], "sum_then_normalize", "group", trl.torch.float32
    )
    assert np.abs(theirs).max() > 0.1
    assert not combine_rewards(rewards)[1].any()


def test_departure_trl_counts_a_zero_weight_score_as_zero(trl):
    rewards = np.array([[[1.0, 0.5], [1.0, 0.5], [np.nan, 0.5], [1.0, 0.5]]])
    theirs = _trl_advantages(
        trl, _advantage_statements(trl), rewards, [1.0, 0.0], "sum_then_normalize", "group", trl.torch.float64
    )
    assert theirs[0, 2] < -1
    assert not combine_rewards(rewards, [1.0, 0.0])[1].any()


# ---- losses: GRPOTrainer._compute_loss -----------------------------------------------------------------------------


class _Accelerator:
    num_processes = 1

    def gather(self, x):
        return x

    def reduce(self, x, reduction):
        return x


def _trl_loss(trl, batch, settings, accumulation=1):
    """TRL's loss, its gradient by per_token_logps, and what it logged, in float64."""
    torch = trl.torch
    as_tensor = {k: torch.tensor(v, dtype=torch.float64) for k, v in batch.items()}
    now = as_tensor.pop("per_token_logps").requires_grad_()
    mask = as_tensor["completion_mask"] * as_tensor.get("tool_mask", 1.0)
    settings = {"epsilon_high": None, "delta": None, "use_bias_correction_kl": True, **settings}
    level = settings["importance_sampling_level"]
    metrics: dict[str, list[float]] = {}
    high = settings["epsilon_high"]
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (now, torch.zeros_like(now), None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=settings["beta"],
        loss_type=settings["loss_type"],
        epsilon_low=settings["epsilon"],
        epsilon_high=settings["epsilon"] if high is None else high,
        args=SimpleNamespace(
            delta=settings["delta"],
            use_bias_correction_kl=settings["use_bias_correction_kl"],
            steps_per_generation=accumulation,
        ),
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        max_completion_length=settings.get("max_completion_length"),
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=accumulation,
        accelerator=_Accelerator(),
        _entropy_bonus_enabled=False,
        _metrics={"train": _Lists(metrics)},
    )
    zeros = torch.zeros(now.shape[0], 1)
    inputs = {
        **as_tensor,
        "prompt_ids": zeros,
        "prompt_mask": zeros,
        "completion_ids": torch.zeros(now.shape),
        "num_items_in_batch": mask.sum(),
    }
    loss = trl.Trainer._compute_loss(trainer, None, inputs)
    loss.backward()
    return loss.item(), now.grad.numpy(), metrics


class _Lists:
    def __init__(self, store):
        self.store = store

    def __getitem__(self, key):
        return self.store.setdefault(key, [])


def _batch(seed, spread, with_tools, truncated):
    rng = np.random.default_rng(seed)
    rows, width = 6, 9
    now = -rng.exponential(1.5, (rows, width))
    lengths = rng.integers(2, width + 1, rows)
    mask = (np.arange(width) < lengths[:, None]).astype(float)
    if truncated:
        mask[rng.integers(0, rows)] = 0.0
    batch = {
        "per_token_logps": now,
        "old_per_token_logps": now + spread * rng.normal(size=now.shape),
        "ref_per_token_logps": now + 0.5 * rng.normal(size=now.shape),
        "advantages": np.append(rng.normal(size=rows - 1), 0.0),
        "completion_mask": mask,
    }
    if with_tools:
        tool = (rng.random(now.shape) < 0.7).astype(float)
        tool[:, 0] = 1.0
        batch["tool_mask"] = tool
    return batch


LOSSES = [
    ("grpo", "token"),
    ("bnpo", "token"),
    ("dapo", "token"),
    ("dr_grpo", "token"),
    ("cispo", "token"),
    ("grpo", "sequence"),
    ("bnpo", "sequence"),
    ("dapo", "sequence"),
    ("dr_grpo", "sequence"),
    ("cispo", "sequence"),
]


@pytest.mark.parametrize(("loss_type", "level"), LOSSES)
def test_losses_and_gradients_equal_trl(trl, loss_type, level, capsys):
    worst = {"loss": 0.0, "gradient": 0.0, "clip ratio": 0.0, "kl": 0.0}
    cases = 0
    grid = itertools.product(
        (0.0, 0.04),  # beta
        (True, False),  # use_bias_correction_kl
        (None, 0.28, 3.0),  # epsilon_high
        (None, 1.5),  # delta
        ((False, False), (True, False), (False, True), (True, True)),  # tool_mask, truncated
        (0.0, 0.4, 2.0),  # spread of now - old
    )
    for case, (beta, bias, high, delta, (tools, truncated), spread) in enumerate(grid):
        batch = _batch(case, spread, tools, truncated)
        settings = {
            "loss_type": loss_type,
            "importance_sampling_level": level,
            "beta": beta,
            "use_bias_correction_kl": bias,
            "epsilon": 0.2,
            "epsilon_high": high,
            "delta": delta,
            "max_completion_length": 12,
        }
        theirs, gradient, logged = _trl_loss(trl, batch, settings)
        ours = policy_loss(**batch, **settings)
        key = "cispo_clip_ratio" if loss_type == "cispo" else "clip_ratio/region_mean"
        worst["loss"] = max(worst["loss"], abs(ours.loss - theirs))
        worst["gradient"] = max(worst["gradient"], float(np.abs(ours.push + gradient).max()))
        if (loss_type, level, truncated) != ("cispo", "sequence", True):  # TRL counts a row without tokens as capped
            worst["clip ratio"] = max(worst["clip ratio"], abs(ours.clip_ratio - logged[key][0]))
        if beta:
            worst["kl"] = max(worst["kl"], abs(ours.mean_kl - logged["kl"][0]))
        cases += 1
    with capsys.disabled():
        print(f"\nloss {loss_type}/{level}: {cases} settings, worst difference {worst}")
    assert cases == 288
    assert max(worst["loss"], worst["gradient"]) < 1e-12
    assert max(worst["clip ratio"], worst["kl"]) < 1e-6  # TRL counts tokens in float32 there


def test_micro_batches_of_dapo_equal_trl(trl):
    batch = _batch(3, 0.3, True, False)
    settings = {"loss_type": "dapo", "importance_sampling_level": "token", "beta": 0.0, "epsilon": 0.2}
    tokens = (batch["completion_mask"] * batch["tool_mask"]).sum()
    halves = [{k: v[part] for k, v in batch.items()} for part in (slice(0, 3), slice(3, 6))]
    ours = sum(policy_loss(**half, **settings, num_items_in_batch=float(tokens)).loss for half in halves)
    theirs, _, _ = _trl_loss(trl, batch, settings, accumulation=2)
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_departure_trl_lets_the_kl_of_one_token_explode(trl):
    batch = _batch(4, 0.0, False, False)
    batch["ref_per_token_logps"] = batch["per_token_logps"].copy()
    batch["ref_per_token_logps"][0, 0] += 100.0
    settings = {"loss_type": "grpo", "importance_sampling_level": "token", "beta": 0.04, "epsilon": 0.2}
    theirs, _, _ = _trl_loss(trl, batch, settings)
    assert theirs > 1e38
    assert abs(policy_loss(**batch, **settings).loss) < 1e8


# ---- a real trainer, end to end ------------------------------------------------------------------------------------


def _tiny_trainer(trl, tmp_path, reward_functions, **settings):
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>", "call", "the", "tool", "now", "please"])}
    raw = Tokenizer(WordLevel(words, unk_token="<unk>"))
    raw.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    trl.torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=8,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    args = trl.package.GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=6,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        **settings,
    )
    return trl.Trainer(
        model=LlamaForCausalLM(config),
        reward_funcs=reward_functions,
        args=args,
        train_dataset=Dataset.from_list([{"prompt": "call the tool"}, {"prompt": "now please"}]),
        processing_class=tokenizer,
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("aggregation", "scale_rewards"), AGGREGATIONS)
def test_a_real_trainer_agrees_from_rewards_to_loss(trl, tmp_path, aggregation, scale_rewards, capsys):
    planned = np.array(
        [[1, 0.5], [0, None], [None, None], [1, 0.25], [0.5, 1], [0.5, 0], [None, 1], [0, 1]], dtype=float
    )

    def first(completions, **_):
        return [None if np.isnan(x) else float(x) for x in planned[:, 0]]

    def second(completions, **_):
        return [None if np.isnan(x) else float(x) for x in planned[:, 1]]

    trainer = _tiny_trainer(
        trl,
        tmp_path,
        [first, second],
        reward_weights=[0.5, 0.25],
        multi_objective_aggregation=aggregation,
        scale_rewards=scale_rewards,
        loss_type="dapo",
        num_iterations=2,
    )
    trainer.current_gradient_accumulation_steps = 1
    rows = [{"prompt": "call the tool"}] * 4 + [{"prompt": "now please"}] * 4
    trainer.model.train()
    output = trainer._generate_and_score_completions(rows)
    _, ours = combine_rewards(planned.reshape(2, 4, 2), [0.5, 0.25], aggregation, scale_rewards)
    difference = np.abs(output["advantages"].double().numpy() - ours.reshape(-1)).max()

    seen = {}
    original = trainer._get_per_token_logps_and_entropies

    def recorded(*args, **kwargs):
        seen["now"] = original(*args, **kwargs)
        return seen["now"]

    trainer._get_per_token_logps_and_entropies = recorded
    with trl.torch.no_grad():
        for parameter in trainer.model.parameters():  # so that now differs from old
            parameter.add_(0.05 * trl.torch.randn_like(parameter))
    theirs = trainer._compute_loss(trainer.model, output).item()
    loss = policy_loss(
        seen["now"][0].detach().double().numpy(),
        output["old_per_token_logps"].double().numpy(),
        output["advantages"].double().numpy(),
        output["completion_mask"].numpy(),
        loss_type="dapo",
    ).loss
    with capsys.disabled():
        print(
            f"\nreal trainer {aggregation}/{scale_rewards}: advantages {difference:.1e}, loss {abs(loss - theirs):.1e}"
        )
    assert np.abs(ours).max() > 0.1
    assert difference < 1e-6
    assert loss == pytest.approx(theirs, abs=1e-6)

"""One GRPO step on one group: it moves the right way, by the right loss, on a copy; C7, L2, L6."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from workbench.errors import InputError
from workbench.grpo import policy_loss
from workbench.models.policy import as_policy
from workbench.models.untrained import byte_tokenizer
from workbench.rollouts import sample_completions, score_logps
from workbench.training import GroupStepper
from workbench.types import Group, SamplingConfig, StopReason

ADVANTAGES = [1.2, -0.4, 0.1, -0.9]


@pytest.fixture
def group(policy, task):
    completions = sample_completions(policy, task, SamplingConfig(num_generations=4, max_completion_length=12, seed=1))
    return Group(task, completions, (), policy.name)


def weights_of(policy):
    return {name: value.clone() for name, value in policy.model.state_dict().items()}


def same(one, two):
    return all(torch.equal(one[name], two[name]) for name in one)


def with_adapter(policy):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.2, init_lora_weights=False)
    return as_policy("untrained", get_peft_model(copy.deepcopy(policy.model), config), policy.tokenizer, adapter="warm")


def test_good_answers_become_likelier_and_bad_ones_rarer(policy, group):
    report = GroupStepper(policy, learning_rate=1e-3).step(group, ADVANTAGES)
    assert report.updated
    assert report.ratio[0] > 1 > report.ratio[3]
    assert report.after[0] > report.before[0]
    lengths = [c.length for c in group.completions]
    gains = [math.exp((a - b) * n) for a, b, n in zip(report.after, report.before, lengths, strict=True)]
    np.testing.assert_allclose(report.ratio, gains, rtol=1e-9)


def test_the_flipped_sign_pushes_the_other_way(policy, group):
    report = GroupStepper(policy, learning_rate=1e-3).step(group, ADVANTAGES, flip_sign=True)
    assert report.ratio[0] < 1 < report.ratio[3]


def test_what_is_reported_before_and_after_is_what_the_policies_say(policy, group):
    from workbench.models.templates import render_prompt

    stepper = GroupStepper(policy, learning_rate=1e-3)
    report = stepper.step(group, ADVANTAGES)
    ids = render_prompt(policy.tokenizer, group.task).ids
    for subject, figures in ((stepper.reference, report.before), (stepper.policy, report.after)):
        means = [np.mean(row) for row in score_logps(subject, ids, group.completions)]
        np.testing.assert_allclose(figures, means, atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"beta": 0.5}, {"loss_type": "cispo", "epsilon_high": 2.0}, {"loss_type": "grpo"}]
)
def test_the_loss_is_that_of_the_numpy_arithmetic_on_the_second_step_too(policy, group, settings):
    stepper = GroupStepper(policy, learning_rate=3e-3, **settings)
    first = stepper.step(group, ADVANTAGES)
    now = score_logps(stepper.policy, prompt_ids(policy, group), group.completions)
    second = stepper.step(group, ADVANTAGES)
    mask = np.array([[1.0] * c.length + [0.0] * (12 - c.length) for c in group.completions])

    def padded(rows):
        return np.array([[*row, *[0.0] * (12 - len(row))] for row in rows])

    old = padded([c.logps for c in group.completions])
    ref = padded(score_logps(policy, prompt_ids(policy, group), group.completions))
    expected = policy_loss(padded(now), old, ADVANTAGES, mask, ref_per_token_logps=ref, **settings)
    assert second.loss == pytest.approx(expected.loss, abs=1e-4)
    assert second.clip_ratio == pytest.approx(expected.clip_ratio, abs=1e-6)
    assert second.mean_kl == pytest.approx(expected.mean_kl, abs=1e-4)
    assert second.max_kl == pytest.approx(expected.worst_kl[0], rel=1e-3)
    assert second.clip_ratio > 0 == first.clip_ratio


def prompt_ids(policy, group):
    from workbench.models.templates import render_prompt

    return render_prompt(policy.tokenizer, group.task).ids


def test_the_original_is_never_touched_and_reset_restores_it_exactly(policy, group):
    original = weights_of(policy)
    stepper = GroupStepper(policy, learning_rate=1e-2, beta=0.1)
    first = stepper.step(group, ADVANTAGES)
    stepper.step(group, ADVANTAGES)
    assert same(original, weights_of(policy))
    assert not same(original, weights_of(stepper.policy))
    stepper.reset()
    assert same(original, weights_of(stepper.policy))
    assert stepper.steps == 0
    assert stepper.step(group, ADVANTAGES).ratio == first.ratio


def test_the_optimizer_is_kept_between_clicks(policy, group):
    kept, fresh = GroupStepper(policy, learning_rate=1e-3), GroupStepper(policy, learning_rate=1e-3)
    for stepper in (kept, fresh):
        stepper.step(group, ADVANTAGES)
    fresh._optimizer = fresh._fresh_optimizer()
    assert kept.step(group, ADVANTAGES).after != fresh.step(group, ADVANTAGES).after


@pytest.mark.parametrize("adapter", [False, True])
def test_c7_kl_at_step_0_is_0_and_something_trains(policy, group, adapter):
    subject = with_adapter(policy) if adapter else policy
    bare = copy.deepcopy(subject.model.get_base_model()) if adapter else None
    stepper = GroupStepper(subject, learning_rate=1e-3, beta=0.04)
    sampling = SamplingConfig(4, max_completion_length=12)
    group = replace(group, completions=sample_completions(subject, group.task, sampling))
    report = stepper.step(group, ADVANTAGES)
    assert (report.mean_kl, report.max_kl) == (0.0, 0.0)
    assert sum(p.numel() for p in stepper.trained) > 0
    assert report.grad_norm > 0
    assert stepper.step(group, ADVANTAGES).mean_kl > 0
    assert bare is None or any(p.abs().max() > 0 for n, p in subject.model.named_parameters() if "lora_B" in n)


def test_c7_with_an_adapter_only_the_adapter_moves_and_the_base_is_shared(policy, group):
    subject = with_adapter(policy)
    stepper = GroupStepper(subject, learning_rate=1e-2)
    stepper.step(replace(group, model=""), ADVANTAGES)
    originals = dict(subject.model.named_parameters())
    for name, parameter in stepper.policy.model.named_parameters():
        if "lora_" in name:
            assert not torch.equal(parameter, originals[name])
        else:
            assert parameter.data_ptr() == originals[name].data_ptr()
    stepper.reset()
    assert same(weights_of(subject), weights_of(stepper.policy))


def test_c7_an_adapter_loaded_frozen_is_refused(policy):
    subject = with_adapter(policy)
    subject.model.requires_grad_(False)
    with pytest.raises(InputError, match="no trainable parameter"):
        GroupStepper(subject)


def test_l2_a_model_with_dropout_starts_at_kl_0(task):
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = byte_tokenizer()
    shape = {"vocab_size": len(tokenizer), "n_positions": 512, "n_embd": 16, "n_layer": 2, "n_head": 2}
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**shape, resid_pdrop=0.1, attn_pdrop=0.1, embd_pdrop=0.1)).train()
    subject = as_policy("gpt2-like", model, tokenizer)
    completions = sample_completions(subject, task, SamplingConfig(4, max_completion_length=10))
    stepper = GroupStepper(subject, beta=0.04, learning_rate=1e-3)
    assert stepper.step(Group(task, completions, (), "gpt2-like"), ADVANTAGES).max_kl == 0.0
    assert stepper.step(Group(task, completions, (), "gpt2-like"), ADVANTAGES).max_kl > 0.0


def test_a_group_without_advantage_teaches_nothing_and_says_so(policy, group):
    stepper = GroupStepper(policy, learning_rate=1e-2)
    stepper.step(group, ADVANTAGES)
    held = weights_of(stepper.policy)
    report = stepper.step(group, [0, 0, 0, 0])
    assert not report.updated
    assert "this group teaches nothing" in report.message
    assert report.ratio == (1, 1, 1, 1)
    assert same(held, weights_of(stepper.policy)), "momentum must not move weights either"


def test_with_a_kl_even_a_dead_group_pulls_back_to_the_reference(policy, group):
    stepper = GroupStepper(policy, learning_rate=1e-3, beta=1.0)
    stepper.step(group, ADVANTAGES)
    away = stepper.step(group, [0, 0, 0, 0])
    assert away.updated
    assert away.mean_kl > 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_l6_a_gradient_that_is_not_finite_skips_the_step_and_says_so(policy, group, bad):
    stepper = GroupStepper(policy, learning_rate=1e-2)
    handle = stepper.trained[-1].register_hook(lambda grad: grad * bad)
    held = weights_of(stepper.policy)
    report = stepper.step(group, ADVANTAGES)
    assert not report.updated
    assert "not finite" in report.message
    assert same(held, weights_of(stepper.policy))
    handle.remove()
    assert stepper.step(group, ADVANTAGES).updated


def test_the_gradient_norm_is_clipped(policy, group):
    norms = []
    stepper = GroupStepper(policy, learning_rate=1e-3, max_grad_norm=0.01)
    real = stepper._optimizer.step

    def watched():
        norms.append(torch.stack([p.grad.norm() for p in stepper.trained if p.grad is not None]).norm().item())
        real()

    stepper._optimizer.step = watched
    assert stepper.step(group, ADVANTAGES).grad_norm > 0.01
    assert norms == [pytest.approx(0.01, rel=1e-3)]


def test_cancelled_and_failed_completions_are_not_trained(policy, group):
    cut = replace(group.completions[0], stop_reason=StopReason.CANCELLED)
    with_cut = replace(group, completions=(cut, *group.completions[1:]))
    only_cut = [1.0, 0, 0, 0]
    assert GroupStepper(policy).step(with_cut, only_cut).grad_norm == 0
    assert GroupStepper(policy).step(group, only_cut).grad_norm > 0


def test_what_does_not_fit_is_refused(policy, group):
    stepper = GroupStepper(policy)
    with pytest.raises(InputError, match=r"advantages: expected \(4,\)"):
        stepper.step(group, [1.0, -1.0])
    with pytest.raises(InputError, match="not finite"):
        stepper.step(group, [float("nan"), 0, 0, 0])
    with pytest.raises(InputError, match="sampled by 'other'"):
        stepper.step(replace(group, model="other"), ADVANTAGES)
    with pytest.raises(InputError, match="token ids"):
        stepper.step(replace(group, completions=tuple(replace(c, token_ids=()) for c in group.completions)), ADVANTAGES)
    beyond = replace(group.completions[0], token_ids=(10**6,))
    with pytest.raises(InputError, match="outside the vocabulary"):
        stepper.step(replace(group, completions=(beyond, *group.completions[1:])), ADVANTAGES)
    with pytest.raises(InputError, match="learning_rate"):
        GroupStepper(policy, learning_rate=-1.0)


def test_settings_change_between_steps_without_losing_what_was_learned(policy, group):
    stepper = GroupStepper(policy, learning_rate=1e-3)
    stepper.step(group, ADVANTAGES)
    learned = [p.detach().clone() for p in stepper.trained]
    stepper.use(learning_rate=0.0, beta=0.5, loss_type="grpo")
    assert "learning rate 0" in stepper.step(group, ADVANTAGES).message
    assert all(torch.equal(a, b) for a, b in zip(learned, stepper.trained, strict=True))
    assert (stepper.settings.beta, stepper.settings.loss_type, stepper.steps) == (0.5, "grpo", 2)
    with pytest.raises(InputError, match="loss_type"):
        stepper.use(learning_rate=1.0, loss_type="grop")
    assert stepper.learning_rate == 0.0


def test_a_sampled_policy_sees_the_update(policy, group):
    stepper = GroupStepper(policy, learning_rate=0.05)
    sampling = SamplingConfig(4, max_completion_length=12, seed=1)
    assert sample_completions(stepper.policy, group.task, sampling) == sample_completions(policy, group.task, sampling)
    stepper.step(group, ADVANTAGES)
    assert sample_completions(stepper.policy, group.task, sampling) != sample_completions(policy, group.task, sampling)


def test_the_app_starts_with_the_learning_rates_measured_here():
    from workbench.training.step import LEARNING_RATES
    from workbench.ui import group_state

    assert group_state.DEFAULT_STATE.learning_rate == LEARNING_RATES["full"]
    assert group_state.LEARNING_RATES["smollm2"] == LEARNING_RATES["lora"]

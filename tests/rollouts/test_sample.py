"""Sampling: seeds, streams, stop reasons, cancel, and numbers that a teacher-forced forward confirms."""

import copy
import threading

import numpy as np
import pytest
import torch

from workbench.models.policy import Policy
from workbench.models.untrained import untrained_policy
from workbench.rollouts import sample_completions, sample_group, sample_prompt, score_logps, token_logps, with_reference
from workbench.rollouts.decoder import CachedDecoder
from workbench.types import SamplingConfig, StopReason


def config(k=5, length=24, seed=3, **changes):
    return SamplingConfig(num_generations=k, max_completion_length=length, seed=seed, **changes)


def that_ends_with(policy, *ids):
    """The same policy, ending its turn at any of ``ids``."""
    return Policy(policy.name, policy.model, policy.tokenizer, ids, policy.pad_token_id)


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others(policy, task):
    first, again = (sample_completions(policy, task, config()) for _ in range(2))
    assert first == again
    other = sample_completions(policy, task, config(seed=4))
    assert [c.token_ids for c in other] != [c.token_ids for c in first]
    assert len({c.token_ids for c in first}) == 5


def test_the_first_completions_do_not_depend_on_k(policy, prompt):
    few, many = (sample_prompt(policy, prompt, config(k=k)) for k in (3, 11))
    assert [c.token_ids for c in few] == [c.token_ids for c in many[:3]]


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.6}, {"temperature": 1.7, "top_p": 0.8}])
@pytest.mark.parametrize("way", ["lean", "general"])
def test_recorded_logps_equal_a_teacher_forced_forward_at_temperature_1(policy, prompt, settings, way, monkeypatch):
    if way == "general":
        monkeypatch.setattr("workbench.rollouts.decoder.fits", lambda _: False)
    completions = sample_prompt(policy, prompt, config(**settings))
    scored = score_logps(policy, prompt.ids, completions)
    for completion, logps in zip(completions, scored, strict=True):
        np.testing.assert_allclose(completion.logps, logps, atol=1e-4)


def test_entropies_are_those_of_the_models_distribution(policy, prompt):
    completion = sample_prompt(policy, prompt, config(k=2))[0]
    ids = [*prompt.ids, *completion.token_ids]
    with torch.no_grad():
        logits = policy.model(torch.tensor([ids])).logits[0, len(prompt.ids) - 1 : -1]
    expected = torch.distributions.Categorical(logits=logits).entropy()
    np.testing.assert_allclose(completion.entropies, expected.numpy(), atol=1e-4)


def test_sampled_tokens_follow_the_models_distribution(policy, prompt):
    with torch.no_grad():
        probs = policy.model(torch.tensor([prompt.ids])).logits[0, -1].softmax(-1).double()
    seen = torch.zeros_like(probs)
    for seed in range(40):
        for completion in sample_prompt(policy, prompt, config(k=64, length=1, seed=seed)):
            seen[completion.token_ids[0]] += 1
    n, likely = int(seen.sum()), probs > 0.005
    error = (seen[likely] / n - probs[likely]).abs() / (probs[likely] * (1 - probs[likely]) / n).sqrt()
    assert n == 2560
    assert error.max() < 4.5


def test_rows_end_at_any_end_of_turn_and_the_others_go_on(policy, prompt):
    free = sample_prompt(that_ends_with(policy), prompt, config(k=6, length=30))
    ends = {free[0].token_ids[4], free[1].token_ids[9]}
    completions = sample_prompt(that_ends_with(policy, *ends), prompt, config(k=6, length=30))
    for loose, completion in zip(free, completions, strict=True):
        stop = next((i for i, t in enumerate(loose.token_ids) if t in ends), None)
        assert completion.token_ids == loose.token_ids[: 30 if stop is None else stop + 1]
        assert completion.stop_reason is (StopReason.LENGTH if stop is None else StopReason.EOS)
        np.testing.assert_allclose(completion.logps, loose.logps[: completion.length], atol=1e-4)
    assert {c.stop_reason for c in completions} >= {StopReason.EOS}


def test_text_has_no_end_mark_and_the_tokens_join_to_text_and_mark(policy, prompt):
    free = sample_prompt(that_ends_with(policy), prompt, config())
    end = free[0].token_ids[7]
    for completion in sample_prompt(that_ends_with(policy, end), prompt, config()):
        mark = policy.tokenizer.decode([end]) if completion.stop_reason is StopReason.EOS else ""
        assert "".join(completion.tokens) == completion.text + mark
        assert len(completion.tokens) == len(completion.logps) == len(completion.entropies) == completion.length
        body = completion.token_ids[:-1] if mark else completion.token_ids
        assert completion.text == policy.tokenizer.decode(list(body))


def test_every_token_is_streamed_once_in_order_and_counts_the_done(policy, prompt):
    events = []
    end = sample_prompt(that_ends_with(policy), prompt, config())[0].token_ids[7]
    completions = sample_prompt(that_ends_with(policy, end), prompt, config(), on_token=events.append)
    for row, completion in enumerate(completions):
        own = [e for e in events if e.row == row]
        assert tuple(e.token_id for e in own) == completion.token_ids
        assert tuple(e.logp for e in own) == completion.logps
        assert "".join(e.text for e in own) == completion.text
    assert [e.n_done for e in events] == sorted(e.n_done for e in events)
    assert (events[-1].n_done, events[-1].n_rows) == (5, 5)
    assert all(e.tokens_per_second > 0 for e in events)


def test_cancel_keeps_what_was_sampled_and_says_so(policy, prompt):
    cancel, events = threading.Event(), []

    def listen(event):
        events.append(event)
        if len(events) == 10:
            cancel.set()

    whole = sample_prompt(that_ends_with(policy), prompt, config())
    completions = sample_prompt(that_ends_with(policy), prompt, config(), on_token=listen, cancel=cancel)
    assert {c.stop_reason for c in completions} == {StopReason.CANCELLED}
    assert {c.length for c in completions} == {2}
    assert [c.token_ids for c in completions] == [c.token_ids[:2] for c in whole]


def test_cancel_before_the_first_token_gives_empty_completions(policy, prompt):
    cancel = threading.Event()
    cancel.set()
    completions = sample_prompt(policy, prompt, config(), cancel=cancel)
    assert [(c.text, c.length, c.stop_reason) for c in completions] == [("", 0, StopReason.CANCELLED)] * 5


def test_logits_that_are_not_finite_end_the_row_with_an_error_and_not_the_group(policy, prompt, monkeypatch):
    class Breaks(CachedDecoder):
        def step(self, tokens):
            logits = super().step(tokens).clone()
            if self.length == len(prompt.ids) + 3:
                logits[1] = float("nan")
            return logits

    monkeypatch.setattr("workbench.rollouts.sample.decoder_for", lambda p, ids, rows, _: Breaks(p, ids, rows))
    whole = sample_prompt(that_ends_with(policy), prompt, config())
    assert whole[1].stop_reason is StopReason.ERROR
    assert whole[1].error == "the model's logits are not finite at token 3"
    assert whole[1].length == 3
    assert [c.length for c in whole] == [24, 3, 24, 24, 24]


def test_r1_the_prefill_travels_with_the_completion(policy, task):
    thinking = copy.deepcopy(policy.tokenizer)
    opening = "<|im_start|>assistant\n"
    thinking.chat_template = thinking.chat_template.replace(opening, opening + "<think>\n")
    subject = Policy(policy.name, policy.model, thinking, policy.eos_token_ids, policy.pad_token_id)
    assert {c.prefill for c in sample_completions(subject, task, config(k=2, length=2))} == {"<think>\n"}


def test_scoring_equals_a_padded_forward_and_so_does_its_gradient(policy, prompt):
    """The shared prompt changes nothing: not the log-probabilities, and not one gradient."""
    subject = untrained_policy(7)
    rows = [(9, 8, 7), (5,), (30, 31, 32, 33, 34)]
    logps, mask = token_logps(subject, prompt.ids, rows)
    (logps * torch.arange(1.0, 4)[:, None]).sum().backward()
    shared = {n: p.grad.clone() for n, p in subject.model.named_parameters()}
    subject.model.zero_grad()
    total = 0.0
    for weight, (ids, found) in enumerate(zip(rows, logps, strict=True), start=1):
        logits = subject.model(torch.tensor([[*prompt.ids, *ids]])).logits[0, len(prompt.ids) - 1 : -1]
        alone = logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None])[:, 0]
        torch.testing.assert_close(found[: len(ids)], alone, atol=1e-5, rtol=0)
        assert not found[len(ids) :].any()
        total = total + weight * alone.sum()
    total.backward()
    for name, parameter in subject.model.named_parameters():
        torch.testing.assert_close(shared[name], parameter.grad, atol=1e-4, rtol=1e-4)
    assert mask.sum(1).tolist() == [3, 1, 5]


def test_a_reference_that_is_the_policy_has_equal_logps_and_another_has_not(policy, prompt):
    completions = sample_prompt(policy, prompt, config(k=2, length=8))
    same = with_reference(policy, prompt.ids, completions)
    np.testing.assert_allclose(same[0].ref_logps, completions[0].logps, atol=1e-4)
    other = with_reference(untrained_policy(9), prompt.ids, completions)
    assert np.abs(np.subtract(other[0].ref_logps, completions[0].logps)).max() > 0.1


def test_a_group_is_k_scored_completions_of_its_task(policy, task):
    from workbench.rewards import DIMENSIONS

    group = sample_group(policy, task, config(k=3, length=8), reference=policy)
    assert group.dimensions == DIMENSIONS
    assert (len(group.completions), group.model, group.sampling.seed) == (3, "untrained", 3)
    assert all(len(c.ref_logps) == c.length for c in group.completions)

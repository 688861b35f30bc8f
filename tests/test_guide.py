"""The founding guide's names exist, carry its numbers, and open onto the real arithmetic (S1 to S5, S9)."""

from __future__ import annotations

import math
import statistics

import pytest

from workbench.errors import InputError
from workbench.grpo import combine_rewards, group_advantages
from workbench.guide import (
    AgentGRPODataset,
    AgentGRPOResponse,
    GRPOConfig,
    GRPOTrainingExample,
    compute_group_advantages,
    determine_optimal_k,
)
from workbench.rewards import DEFAULT_WEIGHTS


def test_s1_group_advantages_use_the_population_std():
    rewards = [0.9, 0.2, 0.5, 0.5, 0.1, 0.7]
    mean, std = statistics.fmean(rewards), statistics.pstdev(rewards)
    assert compute_group_advantages(rewards) == pytest.approx([(r - mean) / (std + 1e-8) for r in rewards], abs=1e-12)
    assert compute_group_advantages(rewards).tolist() == group_advantages([rewards], std="population")[0].tolist()
    assert compute_group_advantages([1000.1] * 6).tolist() == [0.0] * 6
    assert compute_group_advantages([1, None, 0]).tolist()[1] == 0.0


def test_s1_refuses_what_is_not_one_group():
    with pytest.raises(InputError, match="needs at least 2"):
        compute_group_advantages([1.0])
    with pytest.raises(InputError, match=r"rewards: expected shape \(K,\), got shape \(1, 2\)"):
        compute_group_advantages([[1.0, 0.0]])


def test_s2_config_has_the_guides_numbers():
    config = GRPOConfig()
    assert (config.group_size, config.learning_rate, config.beta_kl, config.clip_epsilon) == (6, 5e-6, 0.04, 0.2)
    assert (config.max_grad_norm, config.warmup_steps, config.logging_steps, config.save_steps) == (1.0, 100, 10, 200)


def test_s2_config_maps_to_names_trl_has():
    assert GRPOConfig(group_size=8).to_trl() == {
        "num_generations": 8,
        "learning_rate": 5e-6,
        "beta": 0.04,
        "epsilon": 0.2,
        "max_grad_norm": 1.0,
        "warmup_steps": 100,
        "logging_steps": 10,
        "save_steps": 200,
    }


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("group_size", 1, "group_size: 1 is outside 2"),
        ("group_size", 6.5, "group_size: 6.5 is not a whole number"),
        ("group_size", "6", "group_size: '6' is not a number"),
        ("learning_rate", -1e-6, "learning_rate: -1e-06 is outside 0"),
        ("beta_kl", math.nan, "beta_kl: nan is outside 0"),
        ("clip_epsilon", 1.5, "the nearest allowed value is 1"),
        ("save_steps", 0, "save_steps: 0 is outside 1"),
    ],
)
def test_s2_config_refuses_what_cannot_be(field, value, sentence):
    with pytest.raises(InputError) as refusal:
        GRPOConfig(**{field: value})
    assert sentence in str(refusal.value)


def test_s3_example_has_the_guides_weights():
    example = GRPOTrainingExample("transfer 5 dollars to nina", "p-1")
    assert example.task_type == "tool_call"
    assert example.weights == {"task_completion": 0.4, "tool_accuracy": 0.3, "efficiency": 0.15, "safety": 0.15}
    assert sum(example.weights.values()) == pytest.approx(1.0)
    with pytest.raises(InputError, match="weights: 'safty' is not known; did you mean 'safety'"):
        GRPOTrainingExample("x", "p-2", weights={"safty": 1.0})


def test_s4_response_scores_default_to_zero():
    response = AgentGRPOResponse("ok")
    assert [getattr(response, name) for name in DEFAULT_WEIGHTS] == [0.0] * 4
    assert response.metadata == {}
    assert AgentGRPOResponse("ok").metadata is not response.metadata
    with pytest.raises(InputError, match="safety: inf is outside"):
        AgentGRPOResponse("ok", safety=math.inf)


RESPONSES = [
    AgentGRPOResponse("good", 1.0, 1.0, 1.0, 1.0),
    AgentGRPOResponse("half", 0.5, 1.0, 0.0, 1.0),
    AgentGRPOResponse("unsafe", 1.0, 1.0, 1.0, 0.0),
]


def test_s5_weighted_score_by_hand():
    dataset = AgentGRPODataset()
    assert dataset.group_size == 6
    assert dataset.calculate_weighted_score(RESPONSES[1]) == pytest.approx(0.5 * 0.4 + 0.3 + 0.15)
    assert dataset.calculate_weighted_score(RESPONSES[1], {"safety": 2.0, "efficiency": 1.0}) == pytest.approx(2.0)


def test_s5_group_rewards_are_the_combined_rewards():
    dataset = AgentGRPODataset(group_size=3)
    rewards = dataset.compute_group_rewards(RESPONSES, DEFAULT_WEIGHTS)
    assert rewards == pytest.approx([1.0, 0.65, 0.85])
    scores = [[[getattr(r, name) for name in DEFAULT_WEIGHTS] for r in RESPONSES]]
    combined, advantages = combine_rewards(scores, list(DEFAULT_WEIGHTS.values()), std="population")
    assert rewards.tolist() == combined[0].tolist()
    assert compute_group_advantages(rewards) == pytest.approx(advantages[0])


def test_s5_an_unknown_dimension_is_refused_not_counted_as_zero():
    with pytest.raises(InputError, match="weights: 'tool_acuracy' is not known; did you mean 'tool_accuracy'"):
        AgentGRPODataset().calculate_weighted_score(RESPONSES[0], {"tool_acuracy": 1.0})
    with pytest.raises(InputError, match="weights: none given"):
        AgentGRPODataset().calculate_weighted_score(RESPONSES[0], {})
    with pytest.raises(InputError, match=r"weights\['safety'\]: nan is not a finite number"):
        AgentGRPODataset().calculate_weighted_score(RESPONSES[0], {"safety": math.nan})


def test_s5_a_group_is_exactly_k():
    with pytest.raises(InputError, match=r"responses: expected 6 \(group_size\), got 3"):
        AgentGRPODataset().compute_group_rewards(RESPONSES)
    with pytest.raises(InputError, match="group_size: 1 is outside 2"):
        AgentGRPODataset(group_size=1)


def test_s5_an_unscored_dimension_is_not_a_zero():
    dataset = AgentGRPODataset()
    unscored = AgentGRPOResponse("judge was down", None, None, None, None)
    assert math.isnan(dataset.calculate_weighted_score(unscored))
    no_safety = AgentGRPOResponse("safety check crashed", 1.0, 1.0, 1.0, None)
    assert math.isnan(dataset.calculate_weighted_score(no_safety))
    assert dataset.calculate_weighted_score(no_safety, {"tool_accuracy": 0.5}) == 0.5


def test_s5_dataset_holds_examples():
    dataset = AgentGRPODataset()
    dataset.add_example(GRPOTrainingExample("a", "p-1"))
    dataset.add_example(GRPOTrainingExample("b", "p-2", "safety"))
    assert len(dataset) == 2
    assert dataset[1].task_type == "safety"
    assert [example.prompt_id for example in dataset] == ["p-1", "p-2"]
    assert len(AgentGRPODataset()) == 0


def test_s9_optimal_k_has_the_guides_table():
    table = {"tool_call": (4, 8, 12), "code_gen": (4, 6, 10), "reasoning": (6, 10, 16), "safety": (4, 6, 8)}
    for task_type, ks in {**table, "planning": (4, 6, 12)}.items():
        assert tuple(determine_optimal_k(task_type, budget) for budget in (0.1, 0.5, 1.0)) == ks

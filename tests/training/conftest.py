import pytest

from workbench.models.templates import RenderedPrompt
from workbench.models.untrained import untrained_policy
from workbench.types import Split, Task, Tool, tools_to_json

WEATHER = Tool("get_weather", "Today's weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture(scope="session")
def policy():
    return untrained_policy()


@pytest.fixture
def task():
    message = {"role": "user", "content": "What is the weather in Oslo?"}
    return Task("t-1", "desk", Split.TRAIN, (message,), tools_to_json([WEATHER]))


@pytest.fixture
def prompt(policy):
    text = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    return RenderedPrompt(text, tuple(policy.tokenizer(text, add_special_tokens=False)["input_ids"]))

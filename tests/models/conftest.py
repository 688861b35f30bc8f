import pytest

from workbench.models.untrained import untrained_policy
from workbench.types import Split, Task, Tool, tools_to_json

WEATHER = Tool("get_weather", "Today's weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture(scope="session")
def policy():
    return untrained_policy()


@pytest.fixture
def tokenizer(policy):
    import copy

    return copy.deepcopy(policy.tokenizer)


@pytest.fixture
def make_task():
    def make(text="What is the weather in Oslo?", tools=(WEATHER,), messages=None):
        messages = messages or ({"role": "user", "content": text},)
        return Task("t-1", "desk", Split.TRAIN, tuple(messages), tools_to_json(list(tools)))

    return make

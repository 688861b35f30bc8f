"""A permanent link is a state and back; what a link says wrongly becomes a sentence."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.group_state import CHOICES, DEFAULT_STATE, HELP, RANGES, GroupState, checked, from_query, to_query

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), max_size=30)
strategies = {"model": words.filter(bool), "task": words}
for name, limits in RANGES.items():
    whole = isinstance(getattr(DEFAULT_STATE, name), int)
    strategies[name] = (
        st.integers(int(limits.low), int(limits.high))
        if whole
        else st.floats(limits.low, limits.high).map(lambda v: float(f"{v:.10g}"))
    )
for name, choices in CHOICES.items():
    strategies[name] = st.sampled_from(choices)


@given(st.builds(GroupState, **strategies))
def test_every_state_survives_its_link(state):
    inside = all(RANGES[n].low <= getattr(state, n) <= RANGES[n].high for n in RANGES)
    restored, problems = from_query(to_query(state))
    assert not inside or (restored == state and problems == ())


def test_the_default_state_has_an_empty_link():
    assert to_query(DEFAULT_STATE) == {}


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"temperature": "9"}, "temperature: 9.0 is outside 0.1 to 2; the nearest allowed value is 2."),
        ({"temperature": "warm"}, "temperature: 'warm' is not a number; give one from 0.1 to 2."),
        ({"temperature": "nan"}, "temperature: nan is outside 0.1 to 2; the nearest allowed value is 0.1."),
        (
            {"num_generations": "1"},
            "num_generations: 1.0 is outside 2 to 32 completions; the nearest",
        ),
        ({"num_generations": "8.5"}, "num_generations: '8.5' is not a whole number; the nearest is 8."),
        ({"std": "sampel"}, "std: 'sampel' is not known; did you mean 'sample'? Known: sample, population."),
        ({"safety": "inf"}, "safety: inf is outside 0 to 1; the nearest allowed value is 1."),
        ({"tempreature": "1"}, "setting: 'tempreature' is not known; did you mean 'temperature'?"),
        ({"task": "x" * 400}, "task: 400 characters is too long to be one; give at most 300."),
    ],
)
def test_a_bad_part_of_a_link_is_named_and_the_rest_still_counts(query, sentence):
    state, problems = from_query({**query, "epsilon": "0.3"})
    assert state.epsilon == 0.3
    assert len(problems) == 1
    assert problems[0].startswith(sentence)


def test_parameters_of_others_are_left_alone():
    assert from_query({"__theme": "dark", "utm_source": "mail", "q": "1"}) == (DEFAULT_STATE, ())


def test_every_control_has_a_sentence_of_help():
    shown = {f.name for f in fields(GroupState)} - {"selected", "reading"}
    assert shown <= set(HELP)
    assert all(text.endswith(".") and len(text) <= 130 for text in HELP.values())


def test_numbers_are_taken_as_controls_give_them():
    assert checked("num_generations", 8.0) == 8
    assert isinstance(checked("num_generations", 8.0), int)
    assert checked("beta", 0) == 0.0

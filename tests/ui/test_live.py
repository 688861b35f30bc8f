"""Sampling and stepping with the real embedded model, without a browser."""

import re
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from workbench.ui import handlers, library, live, working
from workbench.ui.policies import checked_model
from workbench.ui.sessions import Session
from workbench.ui.working import Cancelled, model_turn, streamed

pytestmark = pytest.mark.slow


@pytest.fixture
def live_page(a_recording, monkeypatch):
    """A page on a desk task of the live nano, with a recent-groups shelf of its own."""
    monkeypatch.setattr(library, "RECENT", library.RecentGroups())
    session = Session()
    handlers.open_page(session, {"task": "desk-3", "model": "nano", "num_generations": "6", "seed": "5"})
    return session


def last(replies):
    return list(replies)[-1]


def test_sampling_streams_rows_with_a_count_and_ends_on_a_scored_group(live_page):
    replies = list(live.sample(live_page, {}))
    shown = [r.payload["parts"].get("live", "") for r in replies]
    assert any(re.search(r"sampling: <b class='num'>\d</b> of <b class='num'>6</b> done", html) for html in shown)
    assert shown[-1] == ""
    assert len(live_page.group.completions) == 6
    assert live_page.group.scores
    assert "sampled from nano" in live_page.source
    assert replies[-1].controls["model"] == "nano"
    assert not live_page.busy


def test_the_same_link_finds_the_same_group_and_the_same_seed_gives_it_again(live_page):
    last(live.sample(live_page, {}))
    texts = [c.text for c in live_page.group.completions]
    other = Session()
    handlers.open_page(other, handlers.to_query(live_page.state))
    assert [c.text for c in other.group.completions] == texts
    library.RECENT._groups.clear()
    again = Session()
    handlers.open_page(again, handlers.to_query(live_page.state))
    assert again.group is None
    last(live.sample(again, {}))
    assert [c.text for c in again.group.completions] == texts


def test_a_second_press_takes_the_next_seed(live_page):
    last(live.sample(live_page, {}))
    last(live.sample(live_page, {}))
    assert live_page.state.seed == 6


def test_a_recorded_model_is_sampled_live_under_its_own_name(a_recording):
    session = Session()
    handlers.open_page(session, {"task": "desk-2"})
    reply = last(live.sample(session, {}))
    assert reply.controls["model"] == "nano"
    assert session.group.model == "nano"


def an_unlike_group(page):
    """Sample until the group is not dead."""
    for _ in range(6):
        last(live.sample(page, {"num_generations": 8}))
        if handlers.group_numbers(page.group, page.state).dead is None:
            return page.group
    raise AssertionError("six dead groups in a row from nano on desk-3")


def test_a_step_makes_good_answers_likelier_and_reset_takes_it_back(live_page):
    group = an_unlike_group(live_page)
    payload = last(live.take_step(live_page, {"learning_rate": 1e-3})).payload
    record = live_page.steps[-1]
    moved = np.array(record.logps_after) - np.array(record.logps_before)
    advantages = np.array(record.advantages)
    assert float(moved @ advantages) > 0  # the update went the way the advantages point
    assert "What the step did" in payload["parts"]["step"]
    assert payload["after"]["ratios"]["data"][0]["x"] == list(range(1, 9))
    assert len(record.fresh.completions) == 8
    assert record.fresh.completions[0].ref_logps is not None
    assert live_page.steps_taken == 1
    last(live.take_step(live_page, {}))
    assert live_page.steps[-1].trained is record.fresh  # the next step trains on what the model says now
    assert live_page.steps_taken == 2
    handlers.reset(live_page, {})
    assert live_page.group is group
    assert live_page.steps_taken == 0
    assert handlers.screen(live_page, live_page.state)["parts"]["step"] == ""


def test_after_a_step_epsilon_tells_tokens_apart(live_page):
    an_unlike_group(live_page)
    last(live.take_step(live_page, {"learning_rate": 3e-3}))
    wide = handlers.reweigh(live_page, {"epsilon": 1.0, "beta": 0.0}).payload["parts"]["selected"]
    tight = handlers.reweigh(live_page, {"epsilon": 0.01, "beta": 0.0}).payload["parts"]["selected"]
    assert wide != tight


def test_the_model_itself_is_never_changed_by_a_step(live_page):
    an_unlike_group(live_page)
    before = [c.text for c in live_page.group.completions]
    query = handlers.to_query(live_page.state)
    last(live.take_step(live_page, {"learning_rate": 1e-3}))
    library.RECENT._groups.clear()
    other = Session()
    handlers.open_page(other, query)
    last(live.sample(other, {}))
    assert [c.text for c in other.group.completions] == before


def test_cancel_stops_within_a_token_and_keeps_what_was_there(live_page, monkeypatch):
    last(live.sample(live_page, {}))
    shown = live_page.group
    endless = replace(live.SHELF.get("nano", str), eos_token_ids=(-1,))  # no token ends a turn: 512 tokens each
    monkeypatch.setattr(live.SHELF, "get", lambda name, tell: endless)
    replies = live.sample(live_page, {"num_generations": 32, "max_completion_length": 512})
    for reply in replies:
        if "done," in reply.payload["parts"].get("live", ""):
            break
    live.cancel(live_page)
    started = time.monotonic()
    rest = list(replies)
    assert time.monotonic() - started < 5
    assert "Cancelled" in rest[-1].payload["parts"]["notice"]
    assert live_page.group is shown
    assert not live_page.busy


def test_a_closed_page_cancels_its_work(live_page):
    replies = live.sample(live_page, {"max_completion_length": 512, "temperature": 2.0})
    next(replies)
    replies.close()
    assert live_page.cancel.is_set()
    assert not live_page.busy


def test_a_step_on_a_dead_group_says_why_none_was_taken(live_page):
    last(live.sample(live_page, {}))
    zero = {"task_completion": 0, "tool_accuracy": 0, "efficiency": 0, "safety": 0}
    payload = last(live.take_step(live_page, zero)).payload
    assert "No step was taken: all 6 scored 0.00" in payload["parts"]["notice"]
    assert live_page.steps_taken == 0


def test_a_wrong_model_is_a_sentence_and_the_group_stays(live_page):
    last(live.sample(live_page, {}))
    shown = live_page.group
    live_page.state = live_page.state.__class__(model="nanno", task="desk-3")
    payload = last(live.sample(live_page, {})).payload
    assert "did you mean &#x27;nano&#x27;" in payload["parts"]["notice"]
    assert live_page.group is shown


def test_a_shared_server_loads_only_the_embedded_models(live_page):
    assert checked_model("nano", any_model=False) == "nano"
    live_page.state = live_page.state.__class__(model="someone/model", task="desk-3")
    payload = last(live.sample(live_page, {}, any_model=False)).payload
    assert "cannot be loaded on a shared server" in payload["parts"]["notice"]


def test_the_rendered_prompt_has_the_tools_in_it(live_page):
    html = last(live.rendered(live_page, {})).payload["parts"]["rendered"]
    assert "chat template" in html
    assert "set_timer" in html


def test_two_pages_take_turns_and_the_second_is_told_to_wait():
    told, holding, release = [], threading.Event(), threading.Event()

    def first(tell):
        with model_turn(tell, threading.Event()):
            holding.set()
            assert release.wait(30)

    thread = threading.Thread(target=first, args=(lambda _: None,))
    thread.start()
    assert holding.wait(30)

    def second(tell):
        with model_turn(tell, threading.Event()):
            return "done"

    relay = streamed(second, tick=0.02)
    for heard in relay:
        told += heard
        if told:
            break
    assert "another page" in told[0]
    release.set()
    assert result_of(relay) == "done"
    thread.join(30)


def result_of(relay):
    while True:
        try:
            next(relay)
        except StopIteration as end:
            return end.value


def test_waiting_can_be_cancelled():
    cancel = threading.Event()
    cancel.set()
    with working.MODEL_TURN, pytest.raises(Cancelled), model_turn(lambda _: None, cancel):
        raise AssertionError("the turn was taken")


def test_an_error_of_the_work_is_raised_to_the_reader():
    def work(tell):
        tell("half way")
        raise ValueError("broken")

    relay = streamed(work, tick=0.01)
    with pytest.raises(ValueError, match="broken"):
        list(relay)

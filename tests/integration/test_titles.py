"""Titles by a model, in the real daemon: made once, after the answer, by the model that the settings name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import DONE, Reply, delta, stream, usage
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        model.on_request = lambda body: titled("A trip to Rome") if is_title(body) else None
        yield model


def is_title(body: dict[str, Any]) -> bool:
    return "Write its title" in json.dumps(body["messages"][-1])


def titled(text: str) -> Reply:
    return stream(delta(content=f'"{text}."'), delta("stop"), usage(20, 4), DONE)


def started(model: ScriptedModel, title: str = "") -> DaemonProcess:
    return DaemonProcess(config=model.config, environ={"HERMES_AUXILIARY_TITLE": title})


def title_of(daemon: DaemonProcess, session: str) -> str:
    found = daemon.request("GET", f"/api/sessions/{session}").json()
    return str(found["session"]["title"] or "")


def requests_for_titles(model: ScriptedModel) -> list[dict[str, Any]]:
    return [body for body in model.requests if is_title(body)]


def test_a_conversation_gets_one_title_from_the_model_that_is_named(model: ScriptedModel) -> None:
    with started(model, "cheap") as daemon:
        daemon.ask("say first", "s")
        daemon.ask("say second", "s")
        eventually(lambda: title_of(daemon, "s") == "A trip to Rome")
        daemon.ask("say third", "s")
        assert daemon.ask("say other", "t").text == "other"
        assert daemon.ask("say other", "t").text == "other"
        eventually(lambda: title_of(daemon, "t") != "")
    assert [body["model"] for body in requests_for_titles(model)] == ["cheap", "cheap"]
    assert "first" in requests_for_titles(model)[0]["messages"][-1]["content"]
    assert all("tools" not in body for body in requests_for_titles(model))


def test_a_title_of_the_person_stays(model: ScriptedModel) -> None:
    with started(model) as daemon:
        daemon.ask("say first", "s")
        daemon.ask("/title Mine", "s")
        daemon.ask("say second", "s")
        daemon.ask("say third", "t")
        daemon.ask("say fourth", "t")
        eventually(lambda: title_of(daemon, "t") == "A trip to Rome")
        assert title_of(daemon, "s") == "Mine"
    assert len(requests_for_titles(model)) == 1


def test_a_failed_title_is_made_after_the_next_turn_and_delays_no_answer(model: ScriptedModel) -> None:
    refused = Reply(status=400, headers={"Content-Type": "application/json"}, parts=(b"{}",))
    model.on_request = lambda body: refused if is_title(body) else None
    with started(model) as daemon:
        daemon.ask("say first", "s")
        assert daemon.ask("say second", "s").text == "second"
        eventually(lambda: len(requests_for_titles(model)) == 1)
        model.on_request = lambda body: titled("At last") if is_title(body) else None
        daemon.ask("say third", "s")
        eventually(lambda: title_of(daemon, "s") == "At last")


def test_single_requests_and_the_setting_none_make_no_title(model: ScriptedModel) -> None:
    with started(model) as daemon:
        daemon.ask("say once", "s")
        daemon.ask("say a", "t")
        daemon.ask("say b", "t")
        eventually(lambda: title_of(daemon, "t") != "")
    assert len(requests_for_titles(model)) == 1
    model.requests.clear()
    with started(model, "none") as daemon:
        for text in ("a", "b", "c"):
            daemon.ask(f"say {text}", "s")
        assert title_of(daemon, "s") == ""
    assert requests_for_titles(model) == []

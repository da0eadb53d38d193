"""The compression story, against the real daemon: a session outgrows its limit, and its first id goes on working."""

from __future__ import annotations

import http.client
import json
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply, error
from tests.support.scripted_model import ScriptedModel, check_valid
from tests.support.waiting import eventually

GONE = (urllib.error.URLError, http.client.HTTPException, ConnectionError)
WINDOW = 8000
FILLER = "lorem ipsum dolor sit amet " * 60  # some 400 tokens


def size_of(body: dict[str, Any]) -> int:
    return len(json.dumps(body["messages"])) // 4


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(tokens=size_of) as model:
        yield model


def config_of(model: ScriptedModel) -> str:
    endpoint = model.config.replace("idle_timeout_s: 5", f"idle_timeout_s: 5, context_window: {WINDOW}")
    return endpoint + "compression: {floor_tokens: 0}\ntools: {api: [], default: []}\n"


def last_shown(model: ScriptedModel) -> list[dict[str, Any]]:
    """The conversation as the model saw it last. A summary may have been asked for since."""
    turns = (
        r["messages"] for r in reversed(model.requests) if "You summarise" not in str(r["messages"][0]["content"])
    )
    return next(turns)


def texts(model: ScriptedModel) -> list[str]:
    return [str(m["content"]) for m in last_shown(model) if m["role"] != "system"]


def live(daemon: DaemonProcess, session: str) -> str:
    found: str = daemon.request("GET", f"/api/sessions/{session}").json()["session"]["id"]
    return found


def grow(daemon: DaemonProcess, session: str, turns: int = 12) -> str:
    effective = session
    for number in range(turns):
        effective = daemon.ask(f"say topic {number} {FILLER}", session=session).session
    return effective


def test_the_first_id_goes_on_working_for_ten_turns_after_the_session_was_compressed(model: ScriptedModel) -> None:
    with DaemonProcess(config=config_of(model)) as daemon:
        grow(daemon, "first")
        eventually(lambda: live(daemon, "first") != "first")
        latest = "first"
        for number in range(10):
            by_first = daemon.ask(f"say one {number}", session="first")
            assert by_first.text == f"one {number}"
            assert by_first.session != "first"
            assert texts(model)[-1] == f"say one {number}"
            assert any("[Summary of the earlier part" in text for text in texts(model))
            followed = daemon.ask(f"say two {number}", session=by_first.session)
            assert f"say one {number}" in texts(model), "whoever follows the id sees what the other one said"
            latest = followed.session
        assert live(daemon, "first") == latest


def test_a_stream_tells_the_new_id(model: ScriptedModel) -> None:
    with DaemonProcess(config=config_of(model)) as daemon:
        grow(daemon, "s")
        eventually(lambda: live(daemon, "s") != "s")
        body = {"model": "hermes", "stream": True, "messages": [{"role": "user", "content": "say streamed"}]}
        stream = daemon.request("POST", "/v1/chat/completions", body, X_Hermes_Session_Id="s").body.decode()
        assert live(daemon, "s") in stream.split("event: hermes.session")[1]


def test_an_overflow_in_the_middle_is_compressed_and_the_turn_goes_on(model: ScriptedModel) -> None:
    refused: list[int] = []

    def overflow_once(body: dict[str, Any]) -> Reply | None:
        if str(body["messages"][-1]["content"]).startswith("say after") and not refused:
            refused.append(1)
            return error(400, code="context_length_exceeded", message="maximum context length is 8192 tokens")
        return None

    model.tokens = lambda body: 10  # the provider's count does not warn
    model.on_request = overflow_once
    with DaemonProcess(config=config_of(model)) as daemon:
        grow(daemon, "s", 8)
        answer = daemon.ask("say after", session="s")
        assert answer.text == "after"
        assert answer.json()["hermes"]["session_id"] != "s"
        assert texts(model)[-1] == "say after"
        check_valid(last_shown(model))


def test_a_failed_summary_loses_nothing(model: ScriptedModel) -> None:
    def no_summary(body: dict[str, Any]) -> Reply | None:
        if "You summarise a long" in str(body["messages"][0]["content"]):
            return error(401, message="no")
        return None

    model.on_request = no_summary
    with DaemonProcess(config=config_of(model)) as daemon:
        grow(daemon, "s", 8)
        assert live(daemon, "s") == "s"
        why = eventually(lambda: (said := daemon.hermes("why", "s").stdout) and "ompress" in said and said)
        assert "could not be compressed" in why
        assert daemon.ask("say more", session="s").text == "more"
        shown = next(r for r in reversed(model.requests) if "You summarise" not in str(r["messages"][0]["content"]))
        assert len(shown["messages"]) > 16, "everything is still shown"


@pytest.mark.parametrize(
    "point",
    ["before CompressionStarted", "after CompressionStarted", "before ContextCarried", "after ContextCarried"],
)
def test_a_kill_while_compressing_loses_nothing(model: ScriptedModel, point: str) -> None:
    with DaemonProcess(config=config_of(model), environ={"HERMES_TEST_CRASH": point}) as daemon:
        said = []
        for number in range(30):
            said.append(f"say topic {number} {FILLER}")
            try:
                daemon.ask(said[-1], session="s", Idempotency_Key=f"k{number}")
            except GONE:
                daemon.kill()
                daemon.start({"HERMES_TEST_CRASH": ""})
                daemon.ask(said[-1], session="s", Idempotency_Key=f"k{number}")
                break
        else:
            pytest.fail("it never died")
        final = daemon.ask("say end", session="s")
        assert final.text == "end"
        check_valid(last_shown(model))
        assert texts(model)[-1] == "say end"
        assert sum(text == said[-1] for text in texts(model)) == 1
        family = daemon.request("GET", "/api/sessions").json()
        assert "s" in json.dumps(family)

"""The daemon dies around calls that a client runs: the calls stay open, and their results continue once."""

from __future__ import annotations

import http.client
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.scripted_model import ScriptedModel, check_valid

GONE = (urllib.error.URLError, http.client.HTTPException, ConnectionError)
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
QUESTION = {"role": "user", "content": 'call get_weather {"city": "Oslo"}'}
STEPS = ("before MessageReceived", "after MessageReceived", "before TurnFinished", "after TurnFinished")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def ask(daemon: DaemonProcess, key: str, *messages: dict[str, Any]) -> Answer:
    body = {"model": "hermes", "messages": list(messages), "tools": [WEATHER]}
    return daemon.request("POST", "/v1/chat/completions", body, Idempotency_Key=key)


def ask_through_the_crash(daemon: DaemonProcess, key: str, *messages: dict[str, Any]) -> Answer:
    with pytest.raises(GONE):
        ask(daemon, key, *messages)
    daemon.kill()
    daemon.start({"HERMES_TEST_CRASH": ""})
    return ask(daemon, key, *messages)


def called(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    message: dict[str, Any] = choice["message"]
    return message


def result(message: dict[str, Any]) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_around_the_calls_leaves_them_open(model: ScriptedModel, step: str) -> None:
    with DaemonProcess(config=model.config, environ={"HERMES_TEST_CRASH": step}) as daemon:
        first = ask_through_the_crash(daemon, "first", QUESTION)
        message = called(first)
        second = ask(daemon, "second", QUESTION, message, result(message))
        assert (second.text, second.session) == ("results: sunny", first.session)
        check_valid(model.requests[-1]["messages"])


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_around_the_results_takes_them_once(model: ScriptedModel, step: str) -> None:
    with DaemonProcess(config=model.config) as daemon:
        first = ask(daemon, "first", QUESTION)
        message = called(first)
        daemon.terminate()
        daemon.start({"HERMES_TEST_CRASH": step})
        second = ask_through_the_crash(daemon, "second", QUESTION, message, result(message))
        assert (second.text, second.session) == ("results: sunny", first.session)
        sent = model.requests[-1]["messages"]
        check_valid(sent)
        assert [each["role"] for each in sent].count("tool") == 1

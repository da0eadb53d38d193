"""The real daemon tells what became of a message, also after it was killed in the middle of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import urllib.error
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from hermes.domain.ids import inbound_of
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import STALL, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

ANN = 7
GONE = (urllib.error.URLError, http.client.HTTPException, ConnectionError)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


def traced(daemon: DaemonProcess, name: str) -> list[dict[str, Any]]:
    done = daemon.hermes("trace", name, "--json")
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = json.loads(done.stdout)["messages"]
    return lines


def test_a_message_that_a_kill_cut_off_is_one_line_with_two_attempts_and_the_gap(model: ScriptedModel) -> None:
    def ask() -> None:
        with contextlib.suppress(*GONE):
            daemon.ask("say whole", session="s", Idempotency_Key="my-key")

    with DaemonProcess(config=model.config) as daemon:
        model.on_request = lambda body: stream(STALL)
        waiting = threading.Thread(target=ask)
        waiting.start()
        eventually(lambda: model.requests)
        daemon.kill()
        waiting.join(30)

        [cut] = traced(daemon, "my-key")  # from the store itself
        assert (cut["state"], cut["attempts"]) == ("interrupted", 1)
        assert cut["problems"] == ["no daemon runs; it goes on when one does"]

        model.on_request = lambda body: None
        daemon.start()
        assert daemon.ask("say whole", session="s", Idempotency_Key="my-key").text == "whole"
        [line] = traced(daemon, "s")
        assert (line["state"], line["attempts"], line["interruptions"], line["model_calls"]) == ("answered", 2, 1, 1)
        assert line["inbound"] == inbound_of("my-key")
        [gap] = line["problems"]
        assert "nothing was recorded for" in gap
        for name in ("my-key", line["inbound"], line["turn"], line["turn"][:8]):
            assert daemon.admin.get(f"/trace/{quote(name)}")["messages"] == [line]

        shown = daemon.hermes("trace", "my-key").stdout
        assert gap in shown
        assert "interrupted during a model call" in shown


def test_a_chat_message_is_followed_to_the_messages_that_were_sent(model: ScriptedModel) -> None:
    with TelegramServer() as telegram:
        there = f'telegram: {{enabled: true, base_url: "{telegram.base_url}", allowed_users: ["{ANN}"]}}\n'
        with DaemonProcess(config=model.config + there, environ={"TELEGRAM_BOT_TOKEN": TOKEN}) as daemon:
            telegram.say(ANN, ANN, "run echo made")
            telegram.until(lambda: any("made" in text for text in telegram.replies(ANN)))
            [session] = daemon.admin.get("/api/sessions")["sessions"]
            line = eventually(lambda: _sent(daemon, session["id"]))
            assert line["inbound"].startswith("telegram:")
            assert (line["attempts"], line["model_calls"], line["tool_calls"], line["problems"]) == (1, 2, 1, [])
            shown = next(each for each in telegram.history(ANN) if each.from_bot and "made" in each.text)
            assert line["sent"] == [str(shown.id)]
            for name in (line["inbound"], f"telegram:{ANN}:{shown.id}", f"reply:{line['turn']}"):
                assert daemon.admin.get(f"/trace/{quote(name)}")["messages"] == [line]

            telegram.block(ANN)
            telegram.say(ANN, ANN, "say nobody hears this")
            letter = eventually(lambda: daemon.admin.get("/dead-letters")["dead_letters"])[0]
            assert (letter["kind"], letter["place"]["chat"]) == ("reply", str(ANN))
            [_, lost] = daemon.admin.get(f"/trace/{session['id']}")["messages"]
            assert (lost["state"], lost["problems"]) == ("undelivered", [f"given up: {letter['problem']}"])


def _sent(daemon: DaemonProcess, session: str) -> dict[str, Any] | None:
    lines: list[dict[str, Any]] = daemon.admin.get(f"/trace/{session}")["messages"]
    return next((line for line in lines if line["state"] == "sent"), None)

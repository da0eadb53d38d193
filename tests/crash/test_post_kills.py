"""A kill around the record of a post: the chat gets it once, and the model sees it once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from hermes.domain.errors import HermesError
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, TelegramServer

pytestmark = pytest.mark.timeout(120)
ANN = 7
POST = {"id": "p1", "platform": "telegram", "chat": str(ANN), "text": "the backup failed"}


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


@pytest.mark.parametrize("when", ["before", "after"])
def test_post_survives_a_kill_and_is_sent_and_shown_once(when: str, server: TelegramServer) -> None:
    telegram = f'telegram: {{enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"]}}\n'
    environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "HERMES_TEST_CRASH": f"{when} Posted"}
    with ScriptedModel() as model, DaemonProcess(config=f"{model.config}{telegram}", environ=environ) as daemon:
        server.say(ANN, ANN, "say hello")
        server.until(lambda: server.replies(ANN) == ["hello"])
        with suppress(HermesError):
            daemon.admin.post("/posts", POST)
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        daemon.admin.post("/posts", POST)  # as a client that got no answer does
        server.until(lambda: POST["text"] in server.replies(ANN))
        server.say(ANN, ANN, "say well")
        server.until(lambda: server.replies(ANN)[-1] == "well")
        assert server.replies(ANN) == ["hello", POST["text"], "well"]
        shown = str(model.requests[-1]["messages"])
        assert shown.count(POST["text"]) == 1

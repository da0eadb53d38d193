"""A kill around the record of a handover: the conversation moves wholly or not at all, and is announced once."""

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
ANNOUNCED = "continues here"


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


def telegram(server: TelegramServer) -> str:
    return f'telegram: {{enabled: true, base_url: "{server.base_url}", admins: ["{ANN}"]}}\n'


@pytest.mark.parametrize("when", ["before", "after"])
def test_handover_survives_a_kill_wholly_or_not_at_all(when: str, server: TelegramServer) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "HERMES_TEST_CRASH": f"{when} HandedOver"}
    with (
        ScriptedModel() as model,
        DaemonProcess(config=f"{model.config}{telegram(server)}", environ=environ) as daemon,
    ):
        server.say(ANN, ANN, "/sethome")
        server.until(lambda: len(server.replies(ANN)) == 1)
        session = daemon.ask("a plan").session
        with suppress(HermesError):
            daemon.admin.post(f"/api/sessions/{session}/commands", {"text": "/handoff telegram"})
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        is_moved = "handed over" in daemon.admin.get(f"/sessions/{session}")["why"]
        assert is_moved is (when == "after")
        if not is_moved:
            daemon.admin.post(f"/api/sessions/{session}/commands", {"text": "/handoff telegram"})
        server.until(lambda: any(ANNOUNCED in each for each in server.replies(ANN)))
        server.say(ANN, ANN, "and then?")
        server.until(lambda: "and then?" in server.replies(ANN)[-1])
        assert sum(ANNOUNCED in each for each in server.replies(ANN)) == 1
        assert daemon.admin.get(f"/sessions/{session}")["session"]["turns"] == 2

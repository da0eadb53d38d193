"""Clients that send their whole history: every answer that they got leads back to their session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.model_server import DONE, Reply, delta, stream, usage
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def daemon(model: ScriptedModel) -> Iterator[DaemonProcess]:
    with DaemonProcess(config=model.config) as daemon:
        yield daemon


class HistoryClient:
    """Sends its whole history with each message, and names no session."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._daemon = daemon
        self.messages: list[dict[str, Any]] = []

    def say(self, text: str) -> Answer:
        self.messages.append({"role": "user", "content": text})
        answer = self._daemon.request("POST", "/v1/chat/completions", {"model": "hermes", "messages": self.messages})
        assert answer.status == 200, answer.body
        self.messages.append({"role": "assistant", "content": answer.text})
        return answer


def two_removals(folder: Path) -> Reply:
    calls = []
    for n in range(2):
        (folder / f"{n}").mkdir()
        arguments = json.dumps({"command": f"rm -rf {folder / f'{n}'}"})
        calls.append({"index": n, "id": f"call_{n}", "function": {"name": "terminal", "arguments": arguments}})
    return stream(delta(tool_calls=calls), delta("tool_calls"), usage(10, 5), DONE)


def test_other_words_to_the_first_of_two_questions_keep_the_conversation(
    daemon: DaemonProcess, model: ScriptedModel, tmp_path: Path
) -> None:
    replies = iter([two_removals(tmp_path)])
    model.on_request = lambda _: next(replies, None)
    client = HistoryClient(daemon)
    first = client.say("remove both")
    second = client.say("hmm what?")
    assert "waits for another turn" in second.text
    third = client.say("yes")
    assert (second.session, third.session) == (first.session, first.session)
    assert ((tmp_path / "0").exists(), (tmp_path / "1").exists()) == (True, False)


def test_a_command_does_not_end_a_known_history(daemon: DaemonProcess) -> None:
    client = HistoryClient(daemon)
    first = client.say("say one")
    status = client.say("/status")
    after = client.say("say two")
    assert (status.session, after.session) == (first.session, first.session)


def test_after_an_undo_the_history_continues_before_the_undone_turn(
    daemon: DaemonProcess, model: ScriptedModel
) -> None:
    client = HistoryClient(daemon)
    first = client.say("say kept")
    client.say("say undone")
    client.say("/undo")
    after = client.say("say three")
    assert after.session == first.session
    assert "say undone" not in json.dumps(model.requests[-1]["messages"])


def test_the_history_of_an_undone_turn_opens_a_session(daemon: DaemonProcess, model: ScriptedModel) -> None:
    client = HistoryClient(daemon)
    first = client.say("say to be undone")
    undone = daemon.request("POST", f"/api/sessions/{first.session}/undo", {"turns": 1})
    assert undone.status == 200, undone.body
    after = client.say("say more")
    assert after.session != first.session
    assert "say to be undone" in json.dumps(model.requests[-1]["messages"])

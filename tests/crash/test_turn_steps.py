"""The daemon dies before and after each step of a turn with a tool. Afterwards the transcript is consistent, nothing
with side effects ran twice, and the answer comes once.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.judge import Acknowledged, Delivered, Effect, History, Looked, Sent, judge
from tests.support.model_server import STALL, delta, stream
from tests.support.scripted_model import ScriptedModel, check_valid
from tests.support.waiting import eventually

GONE = (urllib.error.URLError, http.client.HTTPException, ConnectionError)
STEPS = ("MessageReceived", "TurnStarted", "ModelReplied", "ToolStarted", "ToolFinished", "TurnFinished")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def shown(model: ScriptedModel) -> list[dict[str, Any]]:
    """What the model was shown last, without the prompt."""
    return [message for message in model.requests[-1]["messages"] if message["role"] != "system"]


def ask_through_the_crash(daemon: DaemonProcess, text: str, session: str, key: str) -> str:
    """Send it, lose the daemon on the way, start another and ask again under the same key."""
    with pytest.raises(GONE):
        daemon.ask(text, session=session, Idempotency_Key=key)
    daemon.kill()
    daemon.start({"HERMES_TEST_CRASH": ""})
    return daemon.ask(text, session=session, Idempotency_Key=key).text


def effects(ran: Path) -> list[Effect]:
    """What the one command left behind, each time that it ran."""
    return [Effect(call="the command")] * (ran.read_text().count("once") if ran.exists() else 0)


def told(*exchanges: tuple[str, str]) -> History:
    """Messages one after the other, each with the answer that its sender got in the end."""
    history = History()
    for place, (text, answer) in enumerate(exchanges):
        history.add(
            Sent(inbound=text, at=place),
            Acknowledged(inbound=text, at=place + 0.5),
            Delivered(to=text, turn=text, text=answer),
        )
    return history


def looked(messages: list[dict[str, Any]]) -> Looked:
    said = (str(m["content"]) for m in messages if m["role"] == "user")
    return Looked(session="s", inbounds=tuple(text for text in said if "[Note" not in text))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("record", STEPS)
def test_a_kill_at_any_record_of_a_turn_runs_nothing_twice(
    model: ScriptedModel, tmp_path: Path, when: str, record: str
) -> None:
    ran = tmp_path / "ran"
    with DaemonProcess(config=model.config, environ={"HERMES_TEST_CRASH": f"{when} {record}"}) as daemon:
        answer = ask_through_the_crash(daemon, f"run echo once >> {ran}; echo made", "s", "k")
        times = effects(ran)
        assert ("made" in answer) == (len(times) == 1 and "No recorded outcome" not in answer)
        assert "made" in answer or "No recorded outcome" in answer
        assert daemon.ask("say next", session="s").text == "next"
        messages = shown(model)
    check_valid(messages)
    history = told((f"run echo once >> {ran}; echo made", answer), ("say next", "next"))
    history.add(*times, looked(messages))
    assert judge(history) == []
    answers = [m for m in messages if m["role"] == "assistant" and not m.get("tool_calls")]
    assert len(answers) == 1


def test_a_kill_while_the_tool_runs_leaves_an_unknown_outcome(model: ScriptedModel, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with DaemonProcess(config=model.config) as daemon:
        command = f"run echo begun >> {ran}; sleep 30; echo ended >> {ran}"
        waiting = threading.Thread(target=lambda: _try(daemon, command, "k"))
        waiting.start()
        eventually(lambda: ran.exists() and ran.read_text())
        daemon.kill()
        waiting.join(30)
        daemon.start()
        answer = daemon.ask(command, session="s", Idempotency_Key="k").text
        assert "No recorded outcome" in answer
        assert ran.read_text() == "begun\n"
        note = [m["content"] for m in shown(model) if m["role"] == "user"][-1]
        assert "interrupted" in note
        assert "terminal" in note


def test_a_stop_while_the_tool_runs_ends_it_and_it_is_not_run_again(model: ScriptedModel, tmp_path: Path) -> None:
    ran, pid = tmp_path / "ran", tmp_path / "pid"
    command = f"run echo once >> {ran}; echo $$ > {pid}; sleep 300; echo ended >> {ran}"
    with DaemonProcess(config=model.config + "shutdown: {drain_s: 0.5}\n") as daemon:
        waiting = threading.Thread(target=lambda: _try(daemon, command, "k"))
        waiting.start()
        shell = int(eventually(lambda: pid.exists() and pid.read_text()))
        assert daemon.terminate() == 0
        waiting.join(30)
        eventually(lambda: not Path(f"/proc/{shell}").exists())
        daemon.start()
        answer = daemon.ask(command, session="s", Idempotency_Key="k").text
        assert "No recorded outcome" in answer
        history = told((command, answer))
        history.add(*effects(ran), looked(shown(model)))
        assert judge(history) == []
        assert ran.read_text() == "once\n"
        assert "Traceback" not in daemon.stderr()
    check_valid(shown(model))


@pytest.mark.parametrize("moment", ["request", "stream"])
def test_a_kill_while_the_model_answers_asks_it_again(model: ScriptedModel, moment: str) -> None:
    with DaemonProcess(config=model.config) as daemon:
        parts = () if moment == "request" else (delta(content="half an ans"),)
        model.on_request = lambda body: stream(*parts, STALL)
        waiting = threading.Thread(target=lambda: _try(daemon, "say whole", "k"))
        waiting.start()
        eventually(lambda: model.requests)
        daemon.kill()
        waiting.join(30)
        model.on_request = lambda body: None
        daemon.start()
        assert daemon.ask("say whole", session="s", Idempotency_Key="k").text == "whole"
        assert [m["content"] for m in shown(model)] == ["say whole"]


def _try(daemon: DaemonProcess, text: str, key: str) -> None:
    with contextlib.suppress(*GONE):
        daemon.ask(text, session="s", Idempotency_Key=key)


def test_a_kill_after_the_question_leaves_it_waiting_and_the_answer_is_kept(
    model: ScriptedModel, tmp_path: Path
) -> None:
    folder = tmp_path / "build"
    folder.mkdir()
    with DaemonProcess(config=model.config, environ={"HERMES_TEST_CRASH": "after Asked"}) as daemon:
        with pytest.raises(GONE):
            daemon.ask(f"run rm -r {folder}", session="s", Idempotency_Key="k")
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        asked = daemon.ask(f"run rm -r {folder}", session="s", Idempotency_Key="k").json()
        assert asked["hermes"]["pending"]["kind"] == "approval"
        daemon.kill()
        daemon.start()
        assert folder.exists()
        assert "waited" in daemon.hermes("why", "s").stdout
        answer = daemon.ask("yes", session="s").text
        assert "exit code 0" in answer
        assert not folder.exists()
        assert daemon.ask("say next", session="s").text == "next"
    check_valid(shown(model))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_the_answer_runs_the_command_once_or_says_that_nobody_knows(
    model: ScriptedModel, tmp_path: Path, when: str
) -> None:
    ran = tmp_path / "ran"
    command = f"run echo once >> {ran}; rm -rf {tmp_path}/nothing-there"
    with DaemonProcess(config=model.config, environ={"HERMES_TEST_CRASH": f"{when} Answered"}) as daemon:
        assert daemon.ask(command, session="s").json()["hermes"]["pending"]["choices"]
        with pytest.raises(GONE):
            daemon.ask("yes", session="s", Idempotency_Key="y")
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        answer = daemon.ask("yes", session="s", Idempotency_Key="y").text
        times = effects(ran)
        assert judge(History(times)) == []
        assert ("exit code 0" in answer and times) or "No recorded outcome" in answer
        assert daemon.ask("say next", session="s").text == "next"
    check_valid(shown(model))

"""Four stories that ended badly elsewhere, told as they go here. Each is one conversation with the real daemon.

A restart that takes longer than turns are waited for; a kill right after an answer; a SIGTERM in the middle of work;
a turn that brings the daemon down again and again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.actors.delivery.attempt import REPEATED
from hermes.supervision.boot import LOOP_WITHIN_S
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import STALL, delta, stream
from tests.support.scripted_model import ScriptedModel, check_valid
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

ANN = 7


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


@pytest.fixture
def telegram() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


def daemon_on(model: ScriptedModel, telegram: TelegramServer, more: str = "", **environ: str) -> DaemonProcess:
    there = f'telegram: {{enabled: true, base_url: "{telegram.base_url}", allowed_users: ["{ANN}"]}}\n'
    return DaemonProcess(config=model.config + there + more, environ={"TELEGRAM_BOT_TOKEN": TOKEN, **environ})


def replies(telegram: TelegramServer) -> list[str]:
    """What the bot says, once it has stopped changing its words."""
    return [text for text in telegram.replies(ANN) if not text.endswith("▌") and not text.startswith("⚙")]


def sessions(daemon: DaemonProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.admin.get("/api/sessions")["sessions"]
    return found


def said_by_people(request: dict[str, Any]) -> list[str]:
    return [m["content"] for m in request["messages"] if m["role"] == "user"]


def test_a_turn_that_outlasts_the_drain_goes_on_after_the_restart_in_the_same_session(
    model: ScriptedModel, telegram: TelegramServer, tmp_path: Path
) -> None:
    """The banner promises to try, and the next start keeps the promise: same session, same turn, nothing twice."""
    ran = tmp_path / "ran"

    def stall_after_the_tool(body: dict[str, Any]) -> Any:
        return stream(delta(content="I see"), STALL) if body["messages"][-1]["role"] == "tool" else None

    with daemon_on(model, telegram, "shutdown: {drain_s: 5, timeout_s: 20}\n") as daemon:
        model.on_request = stall_after_the_tool
        telegram.say(ANN, ANN, f"run echo once >> {ran}; echo made")
        eventually(lambda: len(model.requests) == 2)
        [before] = sessions(daemon)

        model.on_request = lambda _: None
        restarted = daemon.hermes("restart", "--reason", "new version")
        assert "has restarted" in restarted.stdout

        banner = "Hermes is stopping (restart: new version). It will try to go on with this when it is back."
        assert banner in telegram.replies(ANN)
        telegram.until(lambda: any("made" in text for text in replies(telegram)))
        [after] = sessions(daemon)
        assert after["id"] == before["id"]
        cut = "1 session did not finish in time and will go on after the next start"
        taken_up = "1 session has open work; it is taken up"
        assert all(f"{said}: {before['id']}\n" in daemon.stderr() for said in (cut, taken_up))
        assert ran.read_text() == "once\n"
        check_valid(model.requests[-1]["messages"])
        [note] = [text for text in said_by_people(model.requests[-1]) if text.startswith("[Note")]
        assert "This turn was interrupted: Hermes restarted." in note
        assert len([text for text in replies(telegram) if "made" in text]) == 1


def test_what_was_said_and_answered_survives_a_kill_right_after_the_answer(
    model: ScriptedModel, telegram: TelegramServer
) -> None:
    """No turn's end is needed for a message to be kept: each stands on disk before anybody hears of it."""
    with daemon_on(model, telegram) as daemon:
        assert daemon.ask("say first", session="s").text == "first"
        daemon.kill()
        daemon.start()
        assert daemon.ask("say second", session="s").text == "second"
        telegram.say(ANN, ANN, "say third")
        telegram.until(lambda: replies(telegram) == ["third"])
        daemon.kill()
        telegram.say(ANN, ANN, "say fourth")  # nobody is there to hear it
        daemon.start()
        # The kill may have come before the first was noted as sent: then it comes again, and says so.
        telegram.until(
            lambda: [each for each in replies(telegram) if REPEATED.strip() not in each] == ["third", "fourth"]
        )
        assert daemon.ask("say fifth", session="s").text == "fifth"
        shown = [m["content"] for m in model.requests[-1]["messages"] if m["role"] != "system"]
        assert shown == ["say first", "first", "say second", "second", "say fifth"]


def test_a_sigterm_marks_what_is_open_before_it_waits_and_lets_finish_what_can(
    model: ScriptedModel, telegram: TelegramServer, tmp_path: Path
) -> None:
    """Two turns are open: one ends within the drain and is told, the other is taken up by the next daemon."""
    go_on = tmp_path / "go-on"
    with daemon_on(model, telegram, "shutdown: {drain_s: 6, timeout_s: 20}\n") as daemon:
        model.on_request = lambda body: stream(STALL) if said_by_people(body)[-1] == "say late" else None
        telegram.say(ANN, ANN, "say late")
        answers: list[str] = []
        waits = f"run until [ -e {go_on} ]; do sleep 0.05; done; echo soon"
        client = threading.Thread(target=lambda: answers.append(daemon.ask(waits, session="b").text))
        client.start()
        eventually(lambda: {each["phase"] for each in sessions(daemon)} == {"running"} and len(model.requests) == 2)
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGTERM)
        eventually(lambda: "stopping for a shutdown" in daemon.stderr())
        go_on.touch()
        assert daemon.process.wait(20) == 0
        daemon.kill()  # only reaps it
        client.join(20)
        assert len(answers) == 1
        assert "soon" in answers[0]

        model.on_request = lambda _: None
        daemon.start()
        telegram.until(lambda: "late" in replies(telegram))
        assert {each["phase"] for each in sessions(daemon)} == {"idle"}


def test_a_turn_that_brings_the_daemon_down_three_times_is_suspended_and_the_way_back_is_told(
    model: ScriptedModel, telegram: TelegramServer
) -> None:
    """It is not tried for ever. The next message gets an answer, in a fresh session, and nothing was lost."""
    with daemon_on(model, telegram) as daemon:
        model.on_request = lambda _: stream(STALL)
        telegram.say(ANN, ANN, "say something terrible")
        for attempt in range(1, 4):
            eventually(lambda attempt=attempt: len(model.requests) == attempt)
            daemon.kill()
            daemon.start()
        [stuck] = sessions(daemon)
        eventually(lambda: sessions(daemon)[0]["phase"] == "suspended")
        telegram.until(lambda: any("suspended" in text for text in replies(telegram)))
        assert f"/resume {stuck['id']}" in next(text for text in replies(telegram) if "suspended" in text)
        assert "interrupted 3 times in a row" in daemon.hermes("why", stuck["id"]).stdout

        model.on_request = lambda _: None
        telegram.say(ANN, ANN, "say hello")
        telegram.until(lambda: "hello" in replies(telegram))
        assert len(sessions(daemon)) == 2

        telegram.say(ANN, ANN, f"/resume {stuck['id']}")
        telegram.until(lambda: "something terrible" in replies(telegram))


def test_a_boot_loop_holds_what_was_open_and_says_so(model: ScriptedModel, telegram: TelegramServer) -> None:
    """Several crashes within a minute: the next daemon leaves the turn alone until somebody writes."""
    assert LOOP_WITHIN_S == 60
    with daemon_on(model, telegram, HERMES_RESUME_BOOT_LOOP_STARTS="1") as daemon:
        model.on_request = lambda _: stream(STALL)
        telegram.say(ANN, ANN, "say one")
        eventually(lambda: len(model.requests) == 1)
        daemon.kill()
        daemon.start()
        eventually(lambda: len(model.requests) == 2)
        daemon.kill()
        model.on_request = lambda _: None
        daemon.start()
        telegram.until(lambda: any(text.startswith("I was interrupted") for text in replies(telegram)))
        assert len(model.requests) == 2
        assert "this is start number 2 within a minute" in daemon.stderr()
        held = sessions(daemon)[0]
        assert held["phase"] == "resume_pending"
        assert "the daemon keeps crashing" in daemon.hermes("why", held["id"]).stdout
        assert "start number 2 within a minute" in " ".join(daemon.hermes("status").stdout.split())
        assert "for the next message, or `hermes resume`" in daemon.hermes("trace", held["id"], "--steps").stdout

        telegram.say(ANN, ANN, "say two")
        telegram.until(lambda: "two" in replies(telegram))
        assert "Answer that message first" in str(said_by_people(model.requests[-1]))

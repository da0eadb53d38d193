"""Strangers, the home channel, posts without the agent and split texts, on the fake Telegram and the real daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import STALL, delta, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
ANN, BOB, GROUP = 7, 8, -100
_CODE = re.compile(r"approve telegram ([A-Z2-9]{8})")


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


@pytest.fixture
def daemon(server: TelegramServer, model: ScriptedModel, tmp_path: Path) -> Iterator[DaemonProcess]:
    with ExitStack() as stack:
        config = (
            f'{model.config}telegram: {{enabled: true, base_url: "{server.base_url}", admins: ["{ANN}"], '
            "require_mention: false}\nshutdown: {drain_s: 6, timeout_s: 20}\n"  # time to note what was said
        )
        # A clock that a test could set has it look around for news more often, too.
        environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "HERMES_TEST_CLOCK": str(tmp_path / "clock")}
        yield stack.enter_context(DaemonProcess(config=config, environ=environ))


def code_for(server: TelegramServer, user: int) -> str:
    server.until(lambda: bool(_CODE.search("".join(server.replies(user)[-1:]))))
    found = _CODE.search(server.replies(user)[-1])
    assert found is not None
    return found[1]


def everything_on_disk(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_stranger_gets_a_code_is_let_in_and_out_again(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(BOB, BOB, "say hello")
    server.say(BOB, BOB, "say hello")
    code = code_for(server, BOB)
    assert len(server.replies(BOB)) == 1
    assert [each["user"] for each in json.loads(daemon.hermes("pairing", "list", "--json").stdout)["pending"]] == [
        "8"
    ]
    assert code.encode() not in everything_on_disk(daemon.home) + daemon.stderr().encode()
    approved = daemon.hermes("pairing", "approve", "telegram", code.lower())
    assert (approved.returncode, approved.stderr) == (0, "")
    server.until(lambda: "You can talk" in server.replies(BOB)[-1])

    daemon.kill()
    daemon.start()
    assert "paired" in daemon.hermes("pairing", "list").stdout
    server.say(BOB, BOB, "say again")
    server.until(lambda: server.replies(BOB)[-1] == "again")
    assert daemon.hermes("pairing", "revoke", "telegram", str(BOB)).returncode == 0
    server.say(BOB, BOB, "say never")
    code_for(server, BOB)
    assert "never" not in server.replies(BOB)
    assert "is not paired" in daemon.hermes("pairing", "revoke", "telegram", "99").stderr


def test_a_stranger_in_a_group_hears_nothing(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(GROUP, BOB, "say hello")
    server.say(GROUP, ANN, "say I am here")
    server.until(lambda: server.replies(GROUP) == ["I am here"] and server.unconfirmed == [])
    assert json.loads(daemon.hermes("pairing", "list", "--json").stdout)["pending"] == []


def test_the_home_channel_hears_of_a_restart_and_of_what_cannot_be_delivered(
    server: TelegramServer, daemon: DaemonProcess
) -> None:
    server.say(ANN, ANN, "/sethome")
    server.until(lambda: len(server.replies(ANN)) == 1)
    assert daemon.hermes("restart", "--reason", "new version").returncode == 0
    server.until(lambda: server.replies(ANN)[1:] == ["Hermes is restarting (new version).", "Hermes is back."])

    server.say(BOB, BOB, "hello")
    server.block(BOB)
    failed = daemon.hermes("send", "--chat", str(BOB), "are you there?")
    assert (failed.returncode, failed.stdout) == (75, "")
    assert "cannot be delivered" in failed.stderr
    server.until(lambda: "could not be delivered" in server.replies(ANN)[-1])


def test_a_home_channel_where_a_turn_runs_hears_of_a_restart_once(
    server: TelegramServer, model: ScriptedModel, daemon: DaemonProcess
) -> None:
    model.on_request = lambda body: stream(delta(content="I begin to answer"), STALL)
    server.say(ANN, ANN, "/sethome")
    server.say(ANN, ANN, "a long story")
    server.until(lambda: "I begin to answer ▌" in server.replies(ANN))
    model.on_request = lambda body: None
    assert daemon.hermes("restart", "--reason", "new version").returncode == 0
    told = "Hermes is stopping (restart: new version). It will try to go on with this when it is back."
    afterwards = ["Hermes is back.", "heard: a long story"]  # in any order
    server.until(lambda: sorted(server.replies(ANN)[2:]) == afterwards)
    assert server.replies(ANN)[1] == told


def test_a_post_needs_no_agent_and_says_when_it_has_arrived(server: TelegramServer, daemon: DaemonProcess) -> None:
    nowhere = daemon.hermes("send", "hello")
    assert "there is no home channel" in nowhere.stderr
    server.say(ANN, ANN, "/sethome")
    server.until(lambda: len(server.replies(ANN)) == 1)
    home = json.loads(daemon.hermes("send", "--json", stdin="from a pipe\n").stdout)
    assert (home["state"], home["place"]["chat"]) == ("sent", str(ANN))
    there = daemon.hermes("send", "--platform", "telegram", "--chat", str(ANN), "two", "words")
    assert there.stdout == f"Delivered to telegram, chat {ANN}.\n"
    assert server.replies(ANN)[1:] == ["from a pipe", "two words"]
    assert "slack is not configured" in daemon.hermes("send", "--platform", "slack", "--chat", "C1", "x").stderr
    assert "message is empty" in daemon.hermes("send", "--home").stderr
    daemon.terminate()
    assert "no daemon runs" in daemon.hermes("send", "hello").stderr


def test_a_long_text_that_the_client_split_is_one_turn(server: TelegramServer, daemon: DaemonProcess) -> None:
    with server.at_once():
        server.say(ANN, ANN, "say " + "a" * 4092)
        server.say(ANN, ANN, "and the rest of it")
    server.until(lambda: server.unconfirmed == [] and len(server.replies(ANN)) >= 1)
    [session] = daemon.admin.get("/api/sessions")["sessions"]
    eventually(lambda: daemon.admin.get(f"/sessions/{session['id']}")["session"]["phase"] == "idle")
    transcript = daemon.admin.get(f"/sessions/{session['id']}")["transcript"]
    assert [each["role"] for each in transcript if each["role"] != "system"] == ["user", "user", "assistant"]


def test_an_edit_of_a_message_that_waits_replaces_it(
    server: TelegramServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"
    server.say(ANN, ANN, f"run until [ -e {go_on} ]; do sleep 0.05; done")
    server.until(lambda: ANN in server.typing)
    message = server.say(ANN, ANN, "say wrong")
    server.until(lambda: server.unconfirmed == [])
    server.rewrite(ANN, message, "say right")
    server.until(lambda: server.unconfirmed == [])
    go_on.touch()
    server.until(lambda: server.replies(ANN)[-1:] == ["right"])
    assert "wrong" not in server.replies(ANN)


def test_what_setup_wrote_is_all_that_the_daemon_needs(server: TelegramServer) -> None:
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        daemon = DaemonProcess(config=model.config)
        stack.push(daemon.__exit__)
        token = f"{TOKEN}\n"
        done = daemon.hermes("setup", "telegram", "--base-url", server.base_url, "--allow", str(ANN), stdin=token)
        assert done.returncode == 0, done.stderr
        daemon.start()
        server.say(ANN, ANN, "say hello")
        server.until(lambda: server.replies(ANN)[-1:] == ["hello"])
        assert TOKEN not in daemon.stderr()
        again = daemon.hermes("setup", "telegram", "--base-url", server.base_url, "--no-hello", stdin=token)
        assert "Next: run `hermes restart`." in again.stdout


def test_setup_restarts_a_running_daemon_when_asked(server: TelegramServer) -> None:
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        daemon = stack.enter_context(DaemonProcess(config=model.config))
        options = ("--base-url", server.base_url, "--allow", str(ANN), "--restart")
        done = daemon.hermes("setup", "telegram", *options, stdin=f"{TOKEN}\n")
        assert (done.returncode, "has restarted" in done.stdout) == (0, True), done.stdout + done.stderr
        server.say(ANN, ANN, "say hello")
        server.until(lambda: server.replies(ANN)[-1:] == ["hello"])

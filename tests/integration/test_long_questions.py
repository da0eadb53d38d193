"""A command that is too long for a chat message: it is shown whole before it can be allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.telegram_state import Shown
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
ANN = 7
UANN = "UANN"
TAIL = "the-very-end"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


@pytest.fixture
def telegram(model: ScriptedModel) -> Iterator[tuple[TelegramServer, DaemonProcess]]:
    with TelegramServer() as server:
        config = f'{model.config}telegram: {{enabled: true, base_url: "{server.base_url}", admins: ["{ANN}"]}}\n'
        with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}) as daemon:
            yield server, daemon


def long_line(folder: Path) -> str:
    folder.mkdir()
    return f"rm -rf {folder}; : {'x' * 2600} {TAIL}"


def labels(shown: Shown) -> list[str]:
    return [button["text"] for row in shown.keyboard for button in row]


def asked(server: TelegramServer) -> list[Shown]:
    return [each for each in server.history(ANN) if each.from_bot and each.keyboard]


def test_telegram_shows_all_in_a_file_before_a_long_command_can_be_allowed(
    telegram: tuple[TelegramServer, DaemonProcess], tmp_path: Path
) -> None:
    server, daemon = telegram
    folder = tmp_path / "folder"
    line = long_line(folder)
    server.say(ANN, ANN, f"run {line}")
    server.until(lambda: len(asked(server)) == 1)
    [question] = asked(server)
    assert labels(question) == ["show", "deny"]
    assert TAIL not in question.text
    server.say(ANN, ANN, "yes")
    server.until(lambda: any("see all of it first" in text for text in server.replies(ANN)))
    server.say(ANN, ANN, "/approve")
    server.until(lambda: sum("see all of it first" in text for text in server.replies(ANN)) == 2)
    assert folder.exists()
    daemon.kill()
    daemon.start()
    server.press(ANN, question.id, "show", ANN)
    server.until(lambda: any(each.file for each in server.history(ANN)))
    [sent] = [each.file for each in server.history(ANN) if each.file]
    assert line in sent[2].decode()
    server.until(lambda: [labels(each) for each in asked(server)] == [["once", "deny"]])
    server.press(ANN, asked(server)[0].id, "once", ANN)
    server.until(lambda: any("results:" in text for text in server.replies(ANN)))
    assert not folder.exists()
    server.until(lambda: asked(server) == [])


def test_telegram_command_shows_all_of_a_long_command(
    telegram: tuple[TelegramServer, DaemonProcess], tmp_path: Path
) -> None:
    server, _ = telegram
    line = long_line(tmp_path / "folder")
    server.say(ANN, ANN, f"run {line}")
    server.until(lambda: len(asked(server)) == 1)
    server.say(ANN, ANN, "/approve show")
    server.until(lambda: any(each.file and line in each.file[2].decode() for each in server.history(ANN)))
    server.say(ANN, ANN, "/approve")
    server.until(lambda: any("results:" in text for text in server.replies(ANN)))


def test_terminal_shows_all_of_a_long_command_that_a_chat_asks_about(
    telegram: tuple[TelegramServer, DaemonProcess], tmp_path: Path
) -> None:
    server, daemon = telegram
    folder = tmp_path / "folder"
    line = long_line(folder)
    server.say(ANN, ANN, f"run {line}")
    server.until(lambda: len(asked(server)) == 1)
    refused = daemon.hermes("approve", "-")
    assert refused.returncode != 0
    assert "see all of it first" in refused.stderr
    assert folder.exists()
    assert line in daemon.hermes("approve", "-", "show").stdout
    assert daemon.hermes("approve", "-").returncode == 0
    eventually(lambda: not folder.exists())


def test_slack_shows_all_in_a_file_before_a_long_command_can_be_allowed(model: ScriptedModel, tmp_path: Path) -> None:
    with SlackServer() as server:
        config = f'{model.config}slack: {{enabled: true, base_url: "{server.base_url}", admins: ["{UANN}"]}}\n'
        secrets = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}
        with DaemonProcess(config=config, environ=secrets):
            folder = tmp_path / "folder"
            line = long_line(folder)
            server.say("D1", UANN, f"run {line}")
            server.until(lambda: any(each.buttons for each in server.history("D1")))
            question = next(each for each in server.history("D1") if each.buttons)
            assert [each["text"]["text"] for each in question.buttons] == ["show", "deny"]
            assert TAIL not in question.text
            server.say("D1", UANN, "yes")
            server.until(lambda: any("see all of it first" in text for text in server.replies("D1")))
            assert folder.exists()
            server.press("D1", question.ts, "show", UANN)
            server.until(lambda: any(line in each.data.decode() for each in server.files("D1")))
            server.until(
                lambda: any(
                    [button["text"]["text"] for button in each.buttons] == ["once", "deny"]
                    for each in server.history("D1")
                )
            )
            whole = next(each for each in server.history("D1") if each.buttons and each.ts != question.ts)
            server.press("D1", whole.ts, "once", UANN)
            server.until(lambda: any("results:" in text for text in server.replies("D1")))
            assert not folder.exists()

"""An admin, a user and a guest on Telegram with the real daemon: who approves, and what a guest cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
BOSS, ANN, EVE, GROUP = 1, 7, 8, -5


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


@pytest.fixture
def daemon(server: TelegramServer) -> Iterator[DaemonProcess]:
    people = f'admins: ["{BOSS}"], allowed_users: ["{ANN}"], open_chats: ["{GROUP}"]'
    with ScriptedModel(idle_timeout_s=60) as model:
        config = f'{model.config}telegram: {{enabled: true, base_url: "{server.base_url}", {people}}}\n'
        with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}) as daemon:
            yield daemon


def test_an_admin_approves_what_a_user_asks_for_also_after_a_kill(
    server: TelegramServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    server.say(BOSS, BOSS, "/status")
    server.until(lambda: bool(server.replies(BOSS)))
    server.say(ANN, ANN, f"run rm -rf {folder}")
    server.until(lambda: any(each.keyboard for each in server.history(BOSS)))
    question = next(each for each in server.history(BOSS) if each.keyboard)
    assert "person 7 (telegram:7, user) asks" in question.text
    assert str(folder) in question.text
    assert not any(each.keyboard for each in server.history(ANN))
    server.until(lambda: any("Waiting for the owner" in text for text in server.replies(ANN)))
    server.say(ANN, ANN, "/approve")
    server.until(lambda: any("/approve is for the owner and the admins" in text for text in server.replies(ANN)))
    daemon.kill()
    daemon.start()
    assert "waits for the owner's approval" in daemon.hermes("why", "-").stdout
    assert folder.exists()
    query = server.press(BOSS, question.id, "once", BOSS)
    server.until(lambda: query in server.answered_queries)
    eventually(lambda: not folder.exists())
    server.until(lambda: not any(each.keyboard for each in server.history(BOSS)))
    assert any("→ once, by person 1 (telegram:1, admin)" in text for text in server.replies(BOSS))
    shown = daemon.hermes("show", "-").stdout
    assert "user (person 7 (telegram:7, user))" in shown
    assert "tool (once, by person 1 (telegram:1, admin))" in shown


def test_a_guest_has_no_terminal_no_files_and_no_say(
    server: TelegramServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("the private key")
    tries = (
        f"run cat {tmp_path}/key",
        f'call read_file {{"path": "{tmp_path}/key"}}',
        f'call send_file {{"path": "{tmp_path}/key"}}',
        'call process {"action": "list"}',
    )
    for number, text in enumerate(tries, 1):
        server.say(GROUP, EVE, f"@hermes_test_bot {text}")
        server.until(lambda: _told(server, "is not enabled here") == number)  # noqa: B023 - called in its round
    for number, command in enumerate(("/yolo", "/approve", "/grants", "/restart", "/sethome"), 1):
        server.say(GROUP, EVE, f"{command}@hermes_test_bot")
        refusal = "is for the owner and the admins of this Hermes. You are a guest here."
        server.until(lambda: _told(server, refusal) == number)  # noqa: B023
    assert not any("the private key" in text for text in server.replies(GROUP))


def test_admin_and_terminal_are_told_of_an_unapproved_prompt_file(server: TelegramServer, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Run make test.")
    with ScriptedModel(idle_timeout_s=60) as model:
        chat = f'telegram: {{enabled: true, base_url: "{server.base_url}", admins: ["{BOSS}"]}}'
        config = f"{model.config}{chat}\nterminal: {{cwd: {tmp_path}}}\n"
        with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}) as daemon:
            for number in (1, 2):
                server.say(BOSS, BOSS, f"say {number}")
                server.until(lambda: str(number) in server.replies(BOSS))  # noqa: B023 - called in its round
                server.say(BOSS, BOSS, "/new")
                server.until(lambda: _fresh(server) == number)  # noqa: B023
            server.until(lambda: _approvals(server) == 1)
            (tmp_path / "AGENTS.md").write_text("Run make all.")
            server.say(BOSS, BOSS, "say 3")
            server.until(lambda: _approvals(server) == 2)
            (tmp_path / "AGENTS.md").write_text("Run nothing.")
            eventually(lambda: f"hermes trust {tmp_path}" in daemon.hermes("chat", "-z", "say 4").stderr)


def _fresh(server: TelegramServer) -> int:
    return sum("New conversation" in text for text in server.replies(BOSS))


def _approvals(server: TelegramServer) -> int:
    return sum("hermes trust" in text for text in server.replies(BOSS))


def _told(server: TelegramServer, words: str) -> int:
    return sum(words in text for text in server.replies(GROUP))

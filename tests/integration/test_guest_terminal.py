"""Guests who were given the terminal, on Telegram and Slack with the real daemon: in the sandbox, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.sandbox.boxes import working_sandbox
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support.slack_state import BOT_USER
from tests.support.telegram_server import TOKEN, TelegramServer

pytestmark = pytest.mark.timeout(120)
CHANNEL = "C1AB2CD3E"
TOOLS = "tools: {guest: [terminal]}\n"
Say = Callable[[str], str]  # takes what a guest says in a chat, returns the bot's reply


@contextmanager
def telegram_guest(environ: dict[str, str], owned: Path) -> Iterator[tuple[DaemonProcess, Say]]:
    group, eve = -5, 8
    with ExitStack() as stack:
        server, model = stack.enter_context(TelegramServer()), stack.enter_context(ScriptedModel(idle_timeout_s=60))
        chat = f'telegram: {{enabled: true, base_url: "{server.base_url}", open_chats: ["{group}"]}}\n'
        config = f"{model.config}{chat}{TOOLS}terminal: {{cwd: {owned}}}\n"
        daemon = stack.enter_context(DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN, **environ}))

        def say(text: str) -> str:
            known = len(server.replies(group))
            server.say(group, eve, f"@hermes_test_bot {text}")
            server.until(lambda: len(server.replies(group)) > known)
            return server.replies(group)[-1]

        yield daemon, say


@contextmanager
def slack_guest(environ: dict[str, str], owned: Path) -> Iterator[tuple[DaemonProcess, Say]]:
    with ExitStack() as stack:
        server, model = stack.enter_context(SlackServer()), stack.enter_context(ScriptedModel(idle_timeout_s=60))
        chat = f'slack: {{enabled: true, base_url: "{server.base_url}", open_channels: ["{CHANNEL}"]}}\n'
        config = f"{model.config}{chat}{TOOLS}terminal: {{cwd: {owned}}}\n"
        secrets = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}
        daemon = stack.enter_context(DaemonProcess(config=config, environ={**secrets, **environ}))

        def say(text: str) -> str:
            known = len(server.replies(CHANNEL))
            server.say(CHANNEL, "UEVE", f"<@{BOT_USER}> {text}")
            server.until(lambda: len(server.replies(CHANNEL)) > known)
            return server.replies(CHANNEL)[-1]

        yield daemon, say


Guest = Callable[[dict[str, str], Path], AbstractContextManager[tuple[DaemonProcess, Say]]]
GUESTS = pytest.mark.parametrize("guest", [telegram_guest, slack_guest])


@GUESTS
def test_command_of_a_guest_runs_in_the_sandbox_in_its_own_folder(guest: Guest, tmp_path: Path) -> None:
    working_sandbox()
    (tmp_path / "plan.txt").write_text("the owner's plan")
    with guest({"HERMES_SANDBOX_MODE": "auto"}, tmp_path) as (daemon, say):
        hidden = f"{tmp_path}/plan.txt"[::-1]
        said = say(f"run pwd; echo made > mine.txt; cat $(echo {hidden} | rev); env | grep -i proxy")
        found = re.search(r"/work/(\S+)/files", said)
        assert found is not None, said
        assert (daemon.home / "work" / found[1] / "files" / "mine.txt").read_text() == "made\n"
        assert "the owner's plan" not in said
        assert "No such file" in said
        assert "PROXY" not in said, "guests have no network"
        assert not (tmp_path / "mine.txt").exists()
        started = say('call terminal {"command": "sleep 60", "background": true}')
        assert "background needs the tool process" in started


@GUESTS
def test_command_of_a_guest_is_refused_without_a_sandbox(guest: Guest, tmp_path: Path) -> None:
    empty, owned = tmp_path / "bin", tmp_path / "owned"
    empty.mkdir()
    owned.mkdir()
    with guest({"HERMES_SANDBOX_MODE": "auto", "PATH": str(empty)}, owned) as (_daemon, say):
        said = say(f"run echo made > {owned}/made.txt")
        assert "because this machine has no working sandbox" in said
        assert not (owned / "made.txt").exists()

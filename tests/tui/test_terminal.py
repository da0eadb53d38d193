"""Terminal interface in a real terminal (tmux) with the real daemon: kills, resize, pastes, colours."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.terminal import echoes_s, first_paint_s
from hermes.cli.client import AdminClient
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Drip, Reply, delta, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.tmux import IS_MISSING, TmuxTerminal
from tests.support.waiting import eventually

HERMES = [sys.executable, "-m", "hermes.cli.main"]
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
needs_tmux = pytest.mark.skipif(IS_MISSING, reason="tmux is not installed")
pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def latest_message(daemon: DaemonProcess) -> str:
    """The first message of the last session; empty if there is none yet."""
    sessions = daemon.admin.get("/api/sessions", limit=1)["sessions"]
    messages = daemon.admin.get(f"/api/sessions/{sessions[0]['id']}/messages")["messages"] if sessions else []
    return str(next((each["content"] for each in messages if each["role"] == "user"), ""))


@needs_tmux
def test_answer_goes_on_after_the_daemon_was_killed_and_restarted() -> None:
    with DaemonProcess() as daemon, TmuxTerminal(HERMES, daemon.environ) as person:
        person.shows("ready")
        person.type("!slow 3")
        person.press("Enter")
        person.shows("writing", "This answer")
        daemon.kill()
        person.shows("daemon away")
        person.type("and then this")
        person.press("Enter")
        person.shows("kept, sent when a daemon is back")
        person.type("half typed")
        daemon.start()
        screen = person.shows("one word after the other.", "and then this", "ready")
        assert "half typed" in screen
        assert "kept" not in screen


@needs_tmux
def test_own_daemon_is_started_again_after_a_kill_and_ends_with_the_chat(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environ = {"HERMES_HOME": str(home), "HERMES_SANDBOX_MODE": "off"}
    with TmuxTerminal(HERMES, environ) as person:
        person.shows("ready", "own daemon")
        pid = AdminClient(home / "hermes.sock").info()["pid"]
        person.type("!slow 3")
        person.press("Enter")
        person.shows("This answer")
        os.kill(pid, signal.SIGKILL)
        person.shows("one word after the other.", "ready")
        again = AdminClient(home / "hermes.sock").info()["pid"]
        assert again != pid
        person.press("C-d")
        eventually(person.is_over)
        eventually(lambda: not (home / "hermes.sock").exists())


@needs_tmux
def test_no_colour_on_80_columns(daemon: DaemonProcess) -> None:
    with TmuxTerminal(HERMES, {**daemon.environ, "NO_COLOR": "1"}) as person:
        person.shows("ready")
        person.type("!echo # Title\n`code`")
        person.press("Enter")
        person.shows("Title", "code", "ready")
        assert not COLOUR.findall(person.screen(escapes=True))
    with TmuxTerminal(HERMES, daemon.environ) as person:
        person.shows("ready")
        assert COLOUR.findall(person.screen(escapes=True))


@needs_tmux
def test_live_view_has_no_colour_either(daemon: DaemonProcess) -> None:
    with TmuxTerminal([*HERMES, "top"], {**daemon.environ, "NO_COLOR": "1"}, columns=60) as person:
        person.shows("STATE", "Quit")
        assert not COLOUR.findall(person.screen(escapes=True))


@needs_tmux
def test_ten_thousand_pasted_lines_are_one_message(daemon: DaemonProcess) -> None:
    pasted = "\n".join(f"line {number}" for number in range(10_000))
    with TmuxTerminal(HERMES, daemon.environ) as person:
        person.shows("ready")
        person.paste(pasted)
        person.shows("line 9999")
        person.press("Enter")
        person.shows("more lines", "ready")
    assert latest_message(daemon) == pasted


@needs_tmux
def test_resize_and_interrupt_in_mid_answer(daemon: DaemonProcess) -> None:
    with TmuxTerminal(HERMES, daemon.environ, columns=120, rows=30) as person:
        person.shows("ready")
        person.type("!slow 20")
        person.press("Enter")
        person.shows("writing")
        person.resize(40, 12)
        person.type("typed")
        narrow = person.shows("typed", "working")
        assert all(len(line) <= 40 for line in narrow.splitlines())
        person.resize(100, 30)
        person.press("C-c", "Escape")
        person.shows("stopped", "ready")


@needs_tmux
def test_message_written_in_the_persons_editor(daemon: DaemonProcess, tmp_path: Path) -> None:
    program = tmp_path / "editor"
    program.write_text("#!/bin/sh\necho from the editor >> $1\n", encoding="utf-8")
    program.chmod(0o700)
    with TmuxTerminal(HERMES, {**daemon.environ, "EDITOR": str(program), "VISUAL": ""}) as person:
        person.shows("ready")
        person.press("C-g")
        person.shows("from the editor")
        person.press("Enter")
        person.shows("ready")
        eventually(lambda: "from the editor" in latest_message(daemon))


def test_first_paint_and_echo_stay_quick_within_generous_bounds() -> None:
    with ScriptedModel(idle_timeout_s=60) as model:
        model.on_request = _endless
        with DaemonProcess(config=model.config) as daemon:
            environ = {**os.environ, **daemon.environ}
            assert first_paint_s(environ) < 20
            echoes = sorted(echoes_s(environ, rounds=1))
    assert echoes[len(echoes) // 2] < 0.5


def _endless(_body: object) -> Reply:
    return stream(Drip(data=delta(content="word "), every_s=0.02))

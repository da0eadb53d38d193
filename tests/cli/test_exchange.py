"""`hermes export` and `hermes import`, with the real daemon and without one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hermes.cli.markdown_page import page
from hermes.config.home import Home
from hermes.domain.ids import Seq, SessionId, SessionKey, TurnId
from hermes.domain.read.views import StoredMessage
from hermes.domain.records import (
    LogEntry,
    MessageReceived,
    Record,
    SessionStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.domain.session.state import Phase, Preferences, Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.upkeep.portable import to_lines
from tests.cli.conftest import Hermes
from tests.support.daemon_process import DaemonProcess


def body(text: str) -> list[str]:
    """All lines but the first, which says when it was exported."""
    return text.splitlines()[1:]


def test_conversation_continues_in_another_home(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    with DaemonProcess() as other:
        session = other.ask("My name is Ada.").session
        live = other.hermes("export", session)
        assert (live.returncode, live.stderr) == (0, "")
        assert other.hermes("export", "-", "-o", str(tmp_path / "talk.jsonl")).returncode == 0
        other.terminate()
        cold = other.hermes("export", session)
    assert body(cold.stdout) == body(live.stdout) == body((tmp_path / "talk.jsonl").read_text())
    assert (tmp_path / "talk.jsonl").stat().st_mode & 0o777 == 0o600

    home = Home.from_environ({"HERMES_HOME": str(tmp_path / "new")})
    environ = {"HERMES_HOME": str(home.data_dir)}
    done = hermes("import", "--trust", str(tmp_path / "talk.jsonl"), **environ)
    assert done.stderr == ""
    assert done.stdout == f"Imported {len(body(cold.stdout))} records of 1 session: {session}.\n"
    assert body(hermes("export", session, **environ).stdout) == body(cold.stdout)
    assert "My name is Ada." in hermes("chat", "-r", session, "-z", "Who am I?", **environ).stdout
    assert hermes("storage", "verify", **environ).returncode == 0


def test_running_daemon_accepts_an_import(tmp_path: Path) -> None:
    with DaemonProcess() as daemon:
        session = daemon.ask("My name is Ada.").session
        exported = daemon.hermes("export", session).stdout
        assert "already stored" in daemon.hermes("import", "-", stdin=exported).stderr
        daemon.ask("!echo and more", session)
        daemon.hermes("delete", session, "--yes")
        done = daemon.hermes("import", "-", "--json", stdin=exported)
        report = json.loads(done.stdout)
        assert (report["sessions"], report["trusted"], report["new_key"]) == ([session], False, True), done.stderr
        assert "My name is Ada." in daemon.ask("Who am I?", session).text

        other = daemon.ask("!echo other", "taken").session
        renamed = exported.replace(session, other)
        refused = daemon.hermes("import", "-", stdin=renamed)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "first line is damaged (its checksum does not match)" in refused.stderr


def test_of_a_damaged_file_nothing_is_imported(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    answer = json.loads(hermes("chat", "-z", "Hello", "--json").stdout)
    lines = hermes("export", "-").stdout.splitlines()
    lines[3] = lines[3].replace('"seq": 2', '"seq": 3')
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(lines))
    fresh = {"HERMES_HOME": str(tmp_path / "fresh")}
    refused = hermes("import", str(file), **fresh)
    assert refused.returncode == 1
    assert refused.stderr == "hermes: line 4 is damaged (its checksum does not match); nothing was imported\n"
    assert "nothing is stored" in hermes("export", answer["session_id"], **fresh).stderr


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["export", "nobody"], "nothing is stored"),
        (["import", "/no/such/file"], "/no/such/file cannot be read: No such file"),
    ],
)
def test_missing_session_or_file_is_reported(home: Home, hermes: Hermes, argv: list[str], said: str) -> None:
    done = hermes(*argv)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_an_export_overwrites_nothing(tmp_path: Path, home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "Hello")
    (tmp_path / "mine").write_text("precious")
    done = hermes("export", "-", "-o", str(tmp_path / "mine"))
    assert "exists already; name a new file" in done.stderr
    assert (tmp_path / "mine").read_text() == "precious"
    assert "there is no session nobody" in hermes("export", "nobody").stderr


def test_what_the_system_noted_is_nobodys_words_wherever_it_is_shown(home: Home, hermes: Hermes) -> None:
    turn, source = TurnId("t"), Source(platform="api")
    records: tuple[Record, ...] = (
        SessionStarted(at=1, key=SessionKey("k"), source=source, reason="a message came"),
        MessageReceived(at=1, turn=turn, messages=(said("user", "hello"),), source=source),
        TurnStarted(at=2, turn=turn, attempt=1),
        TurnInterrupted(at=3, turn=turn, reason="crash"),
        TurnStarted(at=4, turn=turn, attempt=2, note="it was cut off"),
        TurnFinished(at=5, turn=turn, message=said("assistant", "hi"), model="m", finish_reason="stop"),
    )
    logs = {SessionId("build"): [LogEntry(seq=Seq(n), record=each) for n, each in enumerate(records)]}
    exported = "".join(f"{line}\n" for line in to_lines(logs, now=6))
    assert hermes("import", "-", "--trust", input=exported).stderr == ""
    assert body(hermes("export", "build").stdout) == body(exported)
    assert "  note\nit was cut off\n" in hermes("show", "build").stdout
    shown = json.loads(hermes("show", "build", "--json").stdout)["transcript"]
    assert [(each["role"], each["note"]) for each in shown] == [("user", False), ("user", True), ("assistant", False)]
    page = hermes("export", "build", "--format", "markdown").stdout
    assert re.search(r"\n### Note, .*\n\nit was cut off\n", page)
    assert page.count("### Person") == 1


def said(role: str, text: str) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": role, "content": text}).encode())


# ---------------------------------------------------------------- Markdown


def test_a_markdown_export_reads_like_the_conversation(home: Home, hermes: Hermes) -> None:
    hermes("chat", "-z", "My name is Ada.")
    text = hermes("export", "-", "--format", "markdown").stdout
    assert text.startswith("# Session 2")
    assert "\n### Person, 2" in text
    assert "\n\nMy name is Ada.\n" in text
    assert "\n### Agent, 2" in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_tool_calls_and_results_stand_in_fences_that_hold() -> None:
    head = Session(
        id=SessionId("a"),
        key=SessionKey("k"),
        phase=Phase.IDLE,
        reason="a turn finished",
        since=0,
        created_at=0,
        active_at=0,
        next_seq=Seq(3),
        platform="api",
        preferences=Preferences(title="On fences"),
    )
    call = {"id": "c", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "```\ninside\n```\x1b[31m"},
    ]
    stored = [
        StoredMessage(seq=Seq(n), at=0, turn=TurnId("t"), message=EncodedMessage(json.dumps(each).encode()))
        for n, each in enumerate(messages)
    ]
    text = page([(head, stored)])
    assert text.startswith("# On fences\n")
    assert 'Calls `terminal`:\n\n```json\n{"command": "ls"}\n```\n' in text
    assert "````\n```\ninside\n```\N{REPLACEMENT CHARACTER}[31m\n````\n" in text

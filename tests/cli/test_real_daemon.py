"""The command line against the real thing: a daemon in its own process, one inside a chat, and none at all."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from hermes.home import Home, is_free
from tests.cli.conftest import Hermes, command


@pytest.fixture
def daemon(home: Home) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "HERMES_API_PORT": "0"}
    with subprocess.Popen(
        command("daemon", "--log-level", "warning"), env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "is ready at http://127.0.0.1:" in process.stdout.readline()
        yield process
        process.kill()


def test_an_operators_day(daemon: subprocess.Popen[str], home: Home, hermes: Hermes) -> None:
    answer = json.loads(hermes("chat", "-z", "Good morning", "--json").stdout)
    session = answer["session_id"]
    assert "Good morning" in answer["text"]

    assert session in hermes("ps").stdout
    assert session in hermes("ps", "--sessions").stdout
    assert "Good morning" in hermes("show", session).stdout
    assert "idle" in hermes("why", session).stdout
    assert hermes("suspend", session, "--reason", "lunch").stdout == f"{session} is suspended: lunch\n"
    assert "lunch" in hermes("why", session).stdout
    assert hermes("resume", session).returncode == 0
    assert "Good morning" in hermes("chat", "-r", session, "-z", "And now?").stdout
    assert json.loads(hermes("storage", "stats", "--json").stdout)["sessions"] == 1
    assert hermes("storage", "verify").stdout == "The store is sound.\n"
    assert hermes("storage", "backup", str(home.data_dir / "copy")).returncode == 0
    assert hermes("storage", "compact").returncode == 75

    second = hermes("daemon", HERMES_API_PORT="0")
    assert second.returncode == 75
    assert f"pid {daemon.pid}" in second.stderr

    assert hermes("stop").stdout == f"The daemon on {home.data_dir} (pid {daemon.pid}) has stopped.\n"
    assert daemon.wait(30) == 0


def test_a_chat_brings_its_own_daemon_and_leaves_a_home_in_order(home: Home, hermes: Hermes) -> None:
    first = hermes("chat", input="My name is Ada.\n")
    assert (first.returncode, first.stderr) == (0, "")
    session = first.stdout.split()[-1]
    assert is_free(home)
    assert not home.socket.exists()
    assert "My name is Ada." in hermes("chat", "-r", session, "-z", "Who am I?").stdout
    assert hermes("storage", "verify").stdout == "The store is sound.\n"
    assert "sessions:      1\n" in hermes("storage", "stats").stdout
    assert hermes("storage", "backup", str(home.data_dir / "copy")).returncode == 0
    assert json.loads(hermes("storage", "compact", "--json").stdout)["after_bytes"] > 0


def test_a_chat_on_a_home_that_cannot_be_used_says_why(home: Home, hermes: Hermes) -> None:
    (home.data_dir / "state.db").write_text("theirs")
    done = hermes("chat", "-z", "Hello?")
    assert done.returncode == 78
    assert done.stderr.startswith(f"hermes: the directory {home.data_dir} was made by something else")

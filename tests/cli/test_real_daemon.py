"""Command line with a real daemon, with an embedded one, and without any."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes.cli.client import AdminClient, AdminError
from hermes.cli.inspection.live_source import DaemonSource
from hermes.config.home import Home, is_free
from hermes.tui.top.source import SampleWish
from tests.cli.conftest import Hermes, command
from tests.support.waiting import eventually


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

    assert session in hermes("ps", "--actors").stdout
    assert hermes("ps").stdout.startswith("No session has open work")
    assert session in hermes("ps", "--sessions").stdout
    assert "Good morning" in hermes("show", session).stdout
    assert "idle" in hermes("why", session).stdout
    assert hermes("stop", session).stdout == f"Nothing was running in {session}.\n"
    assert hermes("suspend", session, "--reason", "lunch").stdout.startswith(f"Suspended {session} (lunch) until")
    assert "lunch" in hermes("why", session).stdout
    assert f"Session {session} is suspended (lunch)" in hermes("chat", "-r", session, input="").stdout
    meanwhile = hermes("chat", "-r", session, "-z", "Anybody here?")
    assert 'began with "Anybody here?"' in meanwhile.stdout
    assert f"{session} is suspended: lunch" in meanwhile.stderr
    resumed = hermes("resume", session).stdout
    assert resumed.startswith(f"Resumed {session}; it is idle now and accepts messages sent to its id")
    assert resumed.endswith(" replaced it meanwhile and is unchanged.\n")
    assert "Good morning" in hermes("chat", "-r", session, "-z", "And now?").stdout
    assert json.loads(hermes("storage", "stats", "--json").stdout)["sessions"] == 2
    assert hermes("storage", "verify").stdout == "The store is intact.\n"
    assert hermes("storage", "backup", str(home.data_dir / "copy")).returncode == 0
    assert hermes("storage", "compact").returncode == 75

    second = hermes("daemon", HERMES_API_PORT="0")
    assert second.returncode == 75
    assert f"pid {daemon.pid}" in second.stderr

    assert hermes("stop").stdout == f"The daemon on {home.data_dir} (pid {daemon.pid}) has stopped.\n"
    assert daemon.wait(30) == 0


def test_a_chat_brings_its_own_daemon_and_leaves_a_home_in_order(home: Home, hermes: Hermes) -> None:
    first = hermes("chat", input="My name is Ada.\n")
    unexpected = [line for line in first.stderr.splitlines() if " WARNING " not in line]  # no sandbox; a stall
    assert (first.returncode, unexpected) == (0, [])
    opening = "No daemon runs: this chat starts its own, with model offline. Its work stops when the chat ends.\n"
    assert first.stdout.startswith(opening)
    session = first.stdout.split()[-1]
    assert is_free(home)
    assert not home.socket.exists()
    assert "My name is Ada." in hermes("chat", "-r", session, "-z", "Who am I?").stdout
    shown = hermes("show", "-")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"session:    {session}\n" in shown.stdout
    assert "in memory:  no\n" in shown.stdout
    assert "My name is Ada." in shown.stdout
    assert f"Session {session} has been idle since " in hermes("why", session.rpartition("_")[2], "--exact").stdout
    assert "My name is Ada." in hermes("sessions").stdout
    assert json.loads(hermes("ps", "--sessions", "--json").stdout)["sessions"][0]["id"] == session
    assert hermes("dead-letters").stdout == "There are no dead letters.\n"
    assert hermes("show", "nobody").stderr == "hermes: there is no session nobody; `hermes sessions` lists them\n"
    assert is_free(home)
    assert hermes("storage", "verify").stdout == "The store is intact.\n"
    stats = hermes("storage", "stats", HERMES_STORAGE_MAP_SIZE_MB="64").stdout
    assert "sessions:      1\n" in stats
    assert "map:           64.0 MiB\n" in stats
    assert "commit" not in stats
    assert hermes("storage", "backup", str(home.data_dir / "copy")).returncode == 0
    assert json.loads(hermes("storage", "compact", "--json").stdout)["after_bytes"] > 0


def test_a_message_whose_daemon_was_killed_is_answered_by_the_next(
    daemon: subprocess.Popen[str], home: Home, hermes: Hermes
) -> None:
    with subprocess.Popen(
        command("chat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write("!slow 6\n")
        chat.stdin.close()
        while chat.stdout.read(1) != "\n":  # until the greeting has passed,
            pass
        assert chat.stdout.read(4) == "This"  # the answer has begun
        daemon.kill()
        assert chat.wait(30) == 1
        assert chat.stderr is not None
        complaint = chat.stderr.read()
    assert complaint.startswith("hermes: the daemon stopped in the middle of the answer. The message is stored")
    session = complaint.split()[-1]
    daemon.wait(30)
    assert "no daemon runs; it goes on when one does" in hermes("why", session).stdout
    assert "resume_pending" in hermes("sessions").stdout
    opening = hermes("chat", "-r", session, input="!echo and on\n").stdout
    assert f"Session {session} is still answering" in opening
    assert "\nand on\n" in opening


def test_chat_explains_an_unusable_home(home: Home, hermes: Hermes) -> None:
    (home.data_dir / "state.db").write_text("theirs")
    done = hermes("chat", "-z", "Hello?")
    assert done.returncode == 78
    assert done.stderr.startswith(f"hermes: the directory {home.data_dir} belongs to another program")


def test_live_view_reads_and_acts_on_the_daemon(daemon: subprocess.Popen[str], home: Home, hermes: Hermes) -> None:
    client = AdminClient(home.socket)
    source = DaemonSource(client)
    words = '!tool clarify {"question": "Which?", "choices": ["red", "blue"]}'
    wish = {"model": "hermes", "messages": [{"role": "user", "content": words}]}
    client.post("/v1/chat/completions", wish)
    (row,) = source.sample(SampleWish(is_busy=True)).sessions
    assert (row.phase, row.doing) == ("waiting", "question")
    pending = source.pending(row.id)
    assert pending is not None
    assert (pending.question, pending.choices, pending.approval) == ("Which?", ("red", "blue"), False)

    printed = hermes("top").stdout
    assert "Sessions (1)" in printed
    assert "waiting" in printed
    assert json.loads(hermes("top", "--json").stdout)["phases"] == {"waiting": 1}

    with pytest.raises(AdminError, match="no background process"):
        source.kill("proc_0")
    source.answer(pending, "blue")
    assert eventually(lambda: source.sample(SampleWish()).sessions[0].phase == "idle")
    assert source.pending(row.id) is None
    page = source.page(row.id)
    assert page.transcript[0].text == words
    assert page.timeline[0].startswith("Turn ")
    assert row.id in page.why

    seen: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(source.follow, row.id, seen.append, lambda: "one more" in seen)
        while not following.done():
            body = {"model": "hermes", "messages": [{"role": "user", "content": "!echo one more"}]}
            client.post("/v1/chat/completions", body | {"session_id": row.id})
        following.result()
    assert "one more" in seen

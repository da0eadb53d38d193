"""`hermes chat` across restarts of the daemon."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes.cli import next_boot
from hermes.cli.chat.conversation import Conversation
from hermes.cli.client import AdminClient
from hermes.cli.next_boot import across_restarts
from hermes.config.home import Home
from hermes.domain.errors import NotRunningError
from tests.cli.fake_admin import EVENTS, FakeAdmin, Stream
from tests.cli.test_chat import Terminal, terminal
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

CONFIG = "shutdown:\n  drain_s: 0.2\n"
SLOW_S = 6  # for a test to come in between
ASKED = f"!slow {SLOW_S}"
ANSWER = f"This answer takes {SLOW_S} seconds"


def in_flight(daemon: DaemonProcess) -> bool:
    return bool(daemon.admin.get("/info")["turns"]["in_flight"])


def test_a_single_question_gets_its_answer_across_a_restart() -> None:
    with DaemonProcess(config=CONFIG) as daemon, ThreadPoolExecutor() as pool:
        asked = pool.submit(daemon.hermes, "chat", "-z", ASKED)
        eventually(lambda: in_flight(daemon))
        assert daemon.hermes("restart").returncode == 0
        done = asked.result()
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
        assert "/api/" not in done.stderr


def test_a_single_question_gets_its_answer_across_two_restarts_in_a_row() -> None:
    with DaemonProcess(config=CONFIG) as daemon, ThreadPoolExecutor() as pool:
        asked = pool.submit(daemon.hermes, "chat", "-z", ASKED)
        for _ in range(2):
            eventually(lambda: in_flight(daemon))
            assert daemon.hermes("restart").returncode == 0
        done = asked.result()
        assert done.returncode == 0, done.stderr
        assert ANSWER in done.stdout


def test_oneshot_without_a_daemon_tells_how_to_see_the_answer(
    admin: FakeAdmin, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_boot, "AWAY_S", 0.1)
    admin.routes[EVENTS] = Stream(parts=[], cut=True)
    client = AdminClient(home.socket)
    conversation = Conversation(client, "s1")
    steps = across_restarts(conversation, client, lambda: conversation.ask("?", "key"))
    next(steps)
    assert "stopped in the middle of the answer" in conversation.view.blocks[-1].text
    admin.close()
    with pytest.raises(
        NotRunningError, match=r"did not come back.*stored.*hermes show s1; continue with: hermes chat -r s1"
    ):
        list(steps)


def test_chat_shows_the_answer_after_a_restart() -> None:
    with DaemonProcess(config=CONFIG) as daemon, terminal("chat", HERMES_HOME=str(daemon.home)) as person:
        person.expect("you> ")
        person.type(f"{ASKED}\n")
        eventually(lambda: in_flight(daemon))
        assert daemon.hermes("restart").returncode == 0
        person.expect("(the daemon is back)")
        person.expect(ANSWER)
        person.expect("you> ")
        person.type("/restart\n")
        person.expect("Restarting.")
        person.expect("(the daemon is back)")
        person.expect("you> ")
        person.type("/quit\n")


def texts(daemon: DaemonProcess, session: str) -> list[str]:
    view = daemon.admin.get(f"/sessions/{session}")
    return [str(each["content"]) for each in view["transcript"]]


def test_exit_without_a_daemon_reports_what_is_stored() -> None:
    with DaemonProcess() as daemon, terminal("chat", HERMES_HOME=str(daemon.home)) as person:
        person.expect("you> ")
        person.type(f"{ASKED}\n")
        person.expect("This")
        daemon.kill()
        person.expect("Ctrl-C exits)")
        person.press_ctrl_c()
        person.expect("(The message is stored and the turn resumes when a daemon runs again")
        person.expect("Continue with: hermes chat -r ")
    assert person.process.returncode == 0


def test_a_question_is_kept_while_no_daemon_runs_and_asked_again() -> None:
    with DaemonProcess() as daemon, terminal("chat", HERMES_HOME=str(daemon.home)) as person:
        person.expect("you> ")
        person.type('!tool terminal {"command": "rm -rf nothing-there"}\n')
        person.expect("[d]eny> ")
        daemon.kill()
        person.type("yes\n")
        person.expect("Waiting up to 60 s for a daemon; Ctrl-C exits)")
        daemon.start()
        person.expect("(the daemon is back)")
        person.expect("[d]eny> ")
        daemon.kill()
        person.type("no\n")
        person.expect("Ctrl-C exits)")
        person.press_ctrl_c()
        person.expect("(The question is stored and waits for your answer")
        person.expect("Continue with: hermes chat -r ")


def until_seen(daemon: DaemonProcess, person: Terminal) -> None:
    """Something happens until the tail, which begins at some moment, shows it."""
    while True:
        assert daemon.hermes("chat", "-z", "hello").returncode == 0
        if person.comes("answered", within_s=5):
            person.expect("answered")
            return


def test_tail_follows_restart_and_kill_and_ends_with_stop() -> None:
    with DaemonProcess() as daemon, terminal("tail", HERMES_HOME=str(daemon.home)) as person:
        until_seen(daemon, person)
        assert daemon.hermes("restart").returncode == 0
        person.expect("(the daemon stops or restarts; waiting for it to come back)")
        person.expect("(the daemon is back)")
        until_seen(daemon, person)
        daemon.kill()
        person.expect("(the daemon stopped: the last daemon was killed or crashed")
        daemon.start()
        person.expect("(the daemon is back)")
        until_seen(daemon, person)
        assert daemon.hermes("stop").returncode == 0
        person.expect("hermes: the daemon stopped")
    assert person.process.returncode == 1


def test_status_and_stop_report_a_killed_daemon() -> None:
    with DaemonProcess() as daemon:
        asked = daemon.request("POST", "/v1/runs", {"input": "!slow 30"}).json()
        eventually(lambda: in_flight(daemon))
        daemon.kill()
        for command in ("status", "stop", "tail"):
            done = daemon.hermes(command)
            assert done.returncode == 1
            assert "no daemon runs on " in done.stderr
            assert "the last daemon was killed or crashed" in done.stderr
            assert f"1 session with open work resumes at the next start: {asked['session_id']}" in done.stderr
        daemon.start()
        assert daemon.hermes("stop").returncode == 0
        assert "killed or crashed" not in daemon.hermes("status").stderr

"""`hermes stop` and `hermes restart` with a real daemon: waiting, and its failures."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

SHORT = "shutdown:\n  drain_s: 0.5\n"
LONG = "shutdown:\n  drain_s: 40\n  timeout_s: 45\n"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def running(daemon: DaemonProcess, pool: ThreadPoolExecutor, text: str) -> str:
    """A turn that goes on for a while; its session."""
    pool.submit(daemon.ask, text, "long")
    eventually(lambda: daemon.admin.get("/info")["turns"]["in_flight"])
    return "long"


def stopping(daemon: DaemonProcess) -> bool:
    return not daemon.admin.get("/info")["ready"]


def test_a_restart_that_could_not_come_back_is_refused_with_the_reason() -> None:
    with DaemonProcess(environ={"HERMES_API_COMMANDS": "all"}) as daemon:
        (daemon.home / "config.yaml").write_text("resume:\n  when: sometimes\n")
        done = daemon.hermes("restart", timeout_s=20)
        assert done.returncode == 78
        assert "was not restarted" in done.stderr
        assert "resume.when" in done.stderr
        said = daemon.ask("/restart", "s").text
        assert said.startswith("/restart failed")
        assert "resume.when" in said
        assert daemon.ask("Hello").status == 200


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("telegram:\n  enabled: true\n", "config.yaml:2:3: the Telegram bot's token is missing"),
        ("slack:\n  enabled: true\n", "config.yaml:2:3: the Slack bot's token is missing"),
        ("tools:\n  cli: [termnal]\n", "config.yaml:2:8: tools.cli: there is no tool or toolset 'termnal'"),
    ],
)
def test_restart_is_refused_if_config_check_fails(text: str, problem: str) -> None:
    with DaemonProcess() as daemon:
        (daemon.home / "config.yaml").write_text(text)
        checked = daemon.hermes("config", "check")
        assert checked.returncode == 78
        assert problem in checked.stderr
        done = daemon.hermes("restart", timeout_s=20)
        assert done.returncode == 78
        assert problem in done.stderr
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: "not reloaded, the old one stays" in daemon.stderr())
        assert problem in daemon.stderr()
        assert daemon.ask("Hello").status == 200


def test_a_start_that_is_refused_is_in_the_log_too() -> None:
    with DaemonProcess() as daemon:
        daemon.kill()
        (daemon.home / "config.yaml").write_text("telegram:\n  enabled: true\n")
        done = daemon.hermes("daemon", timeout_s=20)
        assert done.returncode == 78
        log = (daemon.home / "logs" / "hermes.log").read_text()
        assert "the daemon did not start (exit code 78)" in log
        for told in (done.stderr, log):
            assert "config.yaml:2:3: the Telegram bot's token is missing" in told


def test_restart_reports_a_refused_start(pool: ThreadPoolExecutor) -> None:
    with DaemonProcess(config=LONG) as daemon:
        running(daemon, pool, "!slow 60")
        restart = pool.submit(daemon.hermes, "restart", timeout_s=30)
        eventually(lambda: stopping(daemon))
        (daemon.home / "config.yaml").write_text("telegram:\n  enabled: true\n")  # after it was checked
        daemon.admin.post("/sessions/long/stop")
        done = restart.result()
        assert done.returncode == 1
        told = done.stderr.replace("\n", " ")
        assert "it refused to start (exit code 78)" in told
        assert "the Telegram bot's token is missing" in told
        assert "Open work is stored" in told


def test_stop_reports_open_work(pool: ThreadPoolExecutor) -> None:
    with DaemonProcess(config=SHORT) as daemon:
        session = running(daemon, pool, "!slow 60")
        done = daemon.hermes("stop")
        assert done.returncode == 0
        assert f"1 session has open work, which is stored and resumes at the next start: {session}." in done.stdout
        assert daemon.process is not None
        daemon.process.wait()


def test_stop_reports_a_daemon_that_was_killed_meanwhile(pool: ThreadPoolExecutor) -> None:
    with DaemonProcess(config=LONG) as daemon:
        running(daemon, pool, "!slow 60")
        stop = pool.submit(daemon.hermes, "stop", "--json")
        eventually(lambda: stopping(daemon))
        assert daemon.process is not None
        daemon.process.kill()
        done = stop.result()
        assert done.returncode == 1
        answer = json.loads(done.stdout)
        assert (answer["clean"], answer["open_sessions"]) == (False, ["long"])


def test_restart_during_a_stop_is_refused_and_stop_during_a_restart_reported(pool: ThreadPoolExecutor) -> None:
    with DaemonProcess(config=LONG) as daemon:
        running(daemon, pool, "!slow 60")
        restart = pool.submit(daemon.hermes, "restart")
        eventually(lambda: stopping(daemon))
        stop = pool.submit(daemon.hermes, "stop")
        eventually(lambda: not daemon.admin.get("/info")["restarting"])
        late = daemon.hermes("restart", timeout_s=30)
        assert late.returncode == 1
        assert "stopping already" in late.stderr
        daemon.admin.post("/sessions/long/stop")
        done = restart.result()
        assert done.returncode == 1
        assert "a stop was requested meanwhile. Open work is stored" in done.stderr.replace("\n", " ")
        assert "has stopped" in stop.result().stdout


def test_restart_reports_a_daemon_that_was_killed_meanwhile(pool: ThreadPoolExecutor) -> None:
    with DaemonProcess(config=LONG) as daemon:
        running(daemon, pool, "!slow 60")
        restart = pool.submit(daemon.hermes, "restart", timeout_s=20)
        eventually(lambda: stopping(daemon))
        assert daemon.process is not None
        daemon.process.kill()
        done = restart.result()
        assert done.returncode == 1
        assert "was killed or crashed and did not come back" in done.stderr.replace("\n", " ")


def test_hanging_daemon_ends_the_wait_after_timeout() -> None:
    with DaemonProcess() as daemon:
        assert daemon.process is not None
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            done = daemon.hermes("stop", "--timeout", "0.5", timeout_s=30)
            assert done.returncode == 75
            assert f"kill -9 {daemon.process.pid}" in done.stderr.replace("\n", " ")
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)


def test_a_known_key_is_answered_truly_while_the_daemon_stops(pool: ThreadPoolExecutor) -> None:
    with DaemonProcess(config=LONG) as daemon:
        answered = daemon.ask("Hello", "short", Idempotency_Key="k1").text
        first = pool.submit(daemon.ask, "!slow 60", "long", Idempotency_Key="k2")
        eventually(lambda: daemon.admin.get("/info")["turns"]["in_flight"])
        stop = pool.submit(daemon.hermes, "stop")
        eventually(lambda: stopping(daemon))
        assert daemon.ask("Hello", "short", Idempotency_Key="k1").text == answered
        again = pool.submit(daemon.ask, "!slow 60", "long", Idempotency_Key="k2")
        refused = daemon.ask("Hello", "other", Idempotency_Key="k3")
        assert (refused.status, refused.json()["error"]["code"]) == (503, "stopping")
        daemon.admin.post("/sessions/long/stop")
        assert first.result().status == again.result().status == 409
        assert stop.result().returncode == 0


def test_a_second_daemon_names_the_next_step() -> None:
    with DaemonProcess() as daemon:
        second = daemon.hermes("daemon", timeout_s=20)
        assert second.returncode == 75
        assert "another Hermes runs on" in second.stderr
        assert "`hermes stop`" in second.stderr

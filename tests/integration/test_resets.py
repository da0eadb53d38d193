"""Resets in a real daemon, over days that a test has go by."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

HOUR = 3600.0
CONFIG = """
session_reset:
  mode: both
  idle_minutes: 120
  at_hour: 6
  timezone: UTC
  notify_exclude_platforms: []
"""


def test_idle_and_daily_resets_come_at_their_time_also_after_a_kill(tmp_path: Path) -> None:
    clock = tmp_path / "clock"

    def it_is(hour: float) -> None:
        """So many hours after a midnight."""
        clock.write_text(str(midnight + hour * HOUR - time.time()), encoding="ascii")

    midnight = (time.time() // 86400 + 1) * 86400
    it_is(9)
    with DaemonProcess(config=CONFIG, environ={"HERMES_TEST_CLOCK": str(clock)}) as daemon:
        first = daemon.ask("hello").session
        why = daemon.hermes("why", first).stdout
        assert "It is reset after 2 h without a person's message, and daily at 6:00." in why
        assert "11:00 UTC, in 1 h 59 min: idle for 2 h." in why

        it_is(11.01)
        eventually(lambda: "ended" in daemon.hermes("why", first).stdout)
        assert "idle for 2 h" in daemon.hermes("why", first).stdout

        it_is(29)  # 5 in the morning
        second = daemon.ask("again", first).session
        assert second != first
        daemon.kill()
        it_is(30.01)
        daemon.start()
        eventually(lambda: "the daily reset at 6:00" in daemon.hermes("why", second).stdout)
        third = daemon.ask("and again", first).session
        assert third not in (first, second)
        assert f"session {second} is ended: the daily reset at 6:00" in daemon.stderr()


def _holds(condition: Callable[[], bool], within_s: float) -> bool:
    try:
        eventually(condition, within_s=within_s)
    except AssertionError:
        return False
    return True


def test_forgotten_servers_block_nothing_and_a_build_that_works_is_waited_for(tmp_path: Path) -> None:
    """Two preview servers are started and forgotten; beside them a build works for three hours."""
    clock, done = tmp_path / "clock", tmp_path / "done"
    clock.write_text("0", encoding="ascii")
    site = tmp_path / "site"
    site.mkdir()

    def later(hours: float) -> None:
        clock.write_text(str(hours * HOUR), encoding="ascii")

    def why(session: str) -> str:
        return daemon.hermes("why", session).stdout

    def shown(session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = daemon.request("GET", f"/api/sessions/{session}/processes").json()["processes"]
        return found

    config = CONFIG.replace("both", "idle") + f"terminal: {{cwd: {site}}}\n"
    with DaemonProcess(config=config, environ={"HERMES_TEST_CLOCK": str(clock)}) as daemon:
        forgot = daemon.ask("\n".join(map(background, (serving(), serving())))).session
        builds = daemon.ask(background(f"until test -e {done}; do echo working; sleep 0.1; done")).session
        assert [process["running"] for process in shown(forgot)] == [True, True]
        assert "http.server" in daemon.ask('!tool process {"action":"list"}', session=forgot).text

        eventually(lambda: all(idles(process) for process in shown(forgot)))  # what a start takes is over
        passed_h = 2 + 1 / 60
        later(passed_h)
        while not _holds(lambda: f"Session {forgot} ended" in why(forgot), within_s=10):
            passed_h += 0.6  # a loaded machine let a server do something just then
            assert passed_h < 5
            later(passed_h)
        assert re.search(r"idle for [234] h", why(forgot))
        eventually(lambda: "background processes still run: proc_" in daemon.stderr())
        eventually(lambda: f"session {builds}: the reset is blocked: idle for 2 h" in daemon.stderr())
        assert "A reset would wait for it: it did something" in why(builds)

        later(passed_h + 1)
        eventually(lambda: "A reset would wait for it: it did something 0 s ago" in why(builds), within_s=40)
        assert daemon.stderr().count("the reset is blocked") == 1, "said once, not with every look"
        done.touch()
        eventually(lambda: f"Session {builds} ended" in why(builds), within_s=40)

        fresh = daemon.ask("what now?", session=forgot)
        assert fresh.session != forgot
        assert "/resume" in fresh.json()["hermes"]["notice"]
        for process in daemon.admin.get("/api/processes")["processes"]:
            if process["running"]:
                daemon.hermes("kill", process["id"])


def test_a_daemon_killed_right_after_a_reset_leaves_ending_what_it_left_to_the_next_one(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0", encoding="ascii")
    config = CONFIG + "  on_stale: end\nprocesses: {heartbeat_s: 0.5}\n"
    environ = {"HERMES_TEST_CLOCK": str(clock), "HERMES_TEST_CRASH": "after Ended"}
    with DaemonProcess(config=config, environ=environ) as daemon:
        session = daemon.ask(background("sleep 1000")).session
        [process] = daemon.admin.get("/api/processes")["processes"]
        clock.write_text(str(2.1 * HOUR), encoding="ascii")
        assert daemon.process is not None
        assert daemon.process.wait(60) == -signal.SIGKILL
        daemon.kill()  # only reaps it
        assert Path(f"/proc/{process['pid']}").exists()
        daemon.start({"HERMES_TEST_CRASH": ""})
        eventually(lambda: not Path(f"/proc/{process['pid']}").exists())
        eventually(lambda: f"session {session} was reset: Inactive background processes" in daemon.stderr())
        assert daemon.admin.get(f"/sessions/{session}")["session"]["phase"] == "ended"


def test_a_process_that_outlives_its_conversation_begins_none_when_it_ends(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0", encoding="ascii")
    config = CONFIG + "processes: {heartbeat_s: 0.5}\n"
    with DaemonProcess(config=config, environ={"HERMES_TEST_CLOCK": str(clock)}) as daemon:
        session = daemon.ask(background("sleep 1000", notify=True)).session
        clock.write_text(str(2.1 * HOUR), encoding="ascii")
        eventually(lambda: daemon.admin.get(f"/sessions/{session}")["session"]["phase"] == "ended")
        [process] = daemon.admin.get("/api/processes")["processes"]
        assert process["running"]
        assert daemon.hermes("kill", process["id"]).returncode == 0
        eventually(lambda: "its conversation is closed, announcing the end" in daemon.stderr())
        assert [each["id"] for each in daemon.admin.get("/api/sessions")["sessions"]] == [session]
        fresh = daemon.ask("hello", session=session)
        assert f"/resume {session}" in fresh.json()["hermes"]["notice"]


def idles(process: dict[str, Any]) -> bool:
    return bool(process["heartbeat_at"] - process["active_at"] > 1)


def background(command: str, **wishes: Any) -> str:
    return "!tool terminal " + json.dumps({"command": command, "background": True, **wishes})


def serving() -> str:
    return "python3 -m http.server --bind 127.0.0.1 0"

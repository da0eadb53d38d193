"""The wall clock jumps by hours and days, to and fro, and over the changes of summer time, while turns run.

A turn in flight does not notice; order is kept by sequence, not by time; a conversation that waits is reset when its
time has come by the new clock, and not twice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.crash.machine import DaemonTalk
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

DAY_S = 86400.0
RESETS = "session_reset: {mode: both, idle_minutes: 60, at_hour: 2, timezone: Europe/Berlin}\n"
SPRING = datetime(2027, 3, 28, 1, 0, tzinfo=UTC)  # in Berlin 2:00 becomes 3:00: there is no 2:30
AUTUMN = datetime(2027, 10, 31, 1, 0, tzinfo=UTC)  # 3:00 becomes 2:00: there are two of it

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


class Clock:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.environ = {"HERMES_TEST_CLOCK": str(self._file)}

    def jump(self, seconds: float) -> None:
        """So far away from the true time."""
        self._file.write_text(str(seconds), encoding="ascii")

    def show(self, moment: datetime) -> None:
        self.jump(moment.timestamp() - time.time())


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


def test_messages_keep_their_order_whatever_the_clock_does(model: ScriptedModel, clock: Clock) -> None:
    with DaemonProcess(config=model.config + "session_reset: {mode: none}\n", environ=clock.environ) as daemon:
        talk = DaemonTalk(daemon, model)
        for number, days in enumerate((0, 3, -10, 0.2, -20, 400)):
            clock.jump(days * DAY_S)
            assert talk.say_until_heard(f"say {number}") == str(number)
        clock.jump(-30 * DAY_S)
        daemon.kill()
        daemon.start()  # in what is its own past
        assert talk.say_until_heard("say after the kill") == "after the kill"
        assert talk.say_until_heard("say 3") == "3", "the same message again is the same turn"
        talk.check()


@pytest.mark.parametrize("change", [SPRING, AUTUMN], ids=["to summer time", "from summer time"])
def test_a_turn_goes_on_over_a_change_of_summer_time_and_days_of_jumps(
    model: ScriptedModel, clock: Clock, tmp_path: Path, change: datetime
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    command = f"run touch {begun}; while [ ! -e {go} ]; do sleep 0.02; done; echo made"
    clock.show(change - timedelta(minutes=30))
    with DaemonProcess(config=model.config + RESETS, environ=clock.environ) as daemon, ThreadPoolExecutor(1) as pool:
        idle = daemon.ask("say hello").session
        waiting = pool.submit(daemon.ask, command, "s", Idempotency_Key="k")
        eventually(begun.exists)
        for moment in (change, change + timedelta(hours=2), change - timedelta(hours=6), change + timedelta(days=3)):
            clock.show(moment)
            assert daemon.ask("say still here", "other").status == 200
        eventually(lambda: f"session {idle} is ended" in daemon.stderr())
        assert "session s is ended" not in daemon.stderr(), "it is at work"
        go.touch()
        answer = waiting.result(30)
        assert "made" in answer.text
        assert answer.session == "s"
        assert daemon.ask(command, "s", Idempotency_Key="k").text == answer.text
        assert daemon.stderr().count(f"session {idle} is ended") == 1
        assert "Traceback" not in daemon.stderr()
        assert daemon.terminate() == 0


def test_a_process_that_works_keeps_its_conversation_over_jumps_to_and_fro_and_its_end_is_told_once(
    model: ScriptedModel, clock: Clock, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    work = {"command": f"until test -e {go}; do echo working; sleep 0.05; done", "background": True, "notify": True}
    config = model.config + "session_reset: {mode: idle, idle_minutes: 120}\nprocesses: {heartbeat_s: 4}\n"
    with DaemonProcess(config=config, environ=clock.environ) as daemon:
        daemon.ask(f"call terminal {json.dumps(work)}", "s")
        for days in (1, -2, 3):
            clock.jump(days * DAY_S)
            # By the new clock: it is looked at every four seconds, and asking takes a while itself.
            eventually(lambda: re.search(r"it did something \d s ago", daemon.hermes("why", "s").stdout))
        daemon.kill()
        clock.jump(-3 * DAY_S)
        daemon.start()
        go.touch()
        eventually(lambda: len(told(daemon)) == 1)
        assert "session s is ended" not in daemon.stderr()
        assert "Traceback" not in daemon.stderr()
        assert daemon.terminate() == 0
        daemon.start()
        assert len(told(daemon)) == 1


def told(daemon: DaemonProcess) -> list[str]:
    """What the conversation heard of its process."""
    said = daemon.admin.get("/sessions/s", tail=100)["transcript"]
    return [each["content"] for each in said if str(each["content"]).startswith("[Background process")]

"""The disk is full, at each step of a turn, of a stop and of a start.

Whoever asks is told clearly, the daemon answers what needs no space, nothing acknowledged is lost, and when there is
space again everything goes on by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.crash.machine import DaemonTalk, SmallDisk, no_file_may_grow
from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.model_server import STALL, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def require_clear_refusal(answer: Answer | None) -> None:
    assert answer is not None
    assert answer.status == 503, answer.body
    assert answer.json()["error"]["code"] == "storage_full"
    assert "no space left" in answer.json()["error"]["message"]
    assert int(answer.headers["Retry-After"]) > 0


def require_answers(daemon: DaemonProcess) -> None:
    """What takes no space is answered as always."""
    assert daemon.request("GET", "/health").status == 200
    assert daemon.request("GET", "/api/sessions/s/messages").status == 200
    assert daemon.admin.get("/sessions/s")["session"]["id"] == "s"


def test_a_message_is_refused_while_the_disk_is_full_and_taken_afterwards(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        with no_file_may_grow(daemon):
            require_clear_refusal(talk.say("say two"))
            require_clear_refusal(talk.say("say new", session="new"))
            require_answers(daemon)
            eventually(lambda: daemon.request("GET", "/health/ready").status == 503)
        assert talk.say_until_heard("say two") == "two"
        eventually(lambda: daemon.request("GET", "/health/ready").status == 200)
        talk.check()


def command_that_waits(tmp_path: Path) -> tuple[str, Path, Path, Path]:
    ran, begun, go = tmp_path / "ran", tmp_path / "begun", tmp_path / "go"
    command = f"run echo once >> {ran}; touch {begun}; while [ ! -e {go} ]; do sleep 0.02; done; echo made"
    return command, ran, begun, go


def test_a_turn_outlives_a_disk_that_fills_up_while_its_tool_runs(
    model: ScriptedModel, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    command, ran, begun, go = command_that_waits(tmp_path)
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        waiting = pool.submit(talk.say, command)
        eventually(begun.exists)
        with no_file_may_grow(daemon):
            go.touch()
            require_hardship(talk, waiting)
        require_made_once(waiting, ran)
        talk.check()


@pytest.mark.parametrize("request_number", [1, 2], ids=["its first request", "the request with the tool's result"])
def test_a_turn_outlives_a_disk_that_fills_up_while_the_model_works_on(
    model: ScriptedModel, pool: ThreadPoolExecutor, tmp_path: Path, request_number: int
) -> None:
    command, ran, _, go = command_that_waits(tmp_path)
    go.touch()
    with DaemonProcess(config=model.config) as daemon, ExitStack() as fault:

        def fill_the_disk(body: dict[str, Any]) -> None:
            if len(model.requests) == request_number:
                fault.enter_context(no_file_may_grow(daemon))

        model.on_request = fill_the_disk
        talk = DaemonTalk(daemon, model)
        waiting = pool.submit(talk.say, command)
        eventually(lambda: len(model.requests) == request_number)
        require_hardship(talk, waiting)
        fault.close()
        require_made_once(waiting, ran)
        talk.check()


def require_hardship(talk: DaemonTalk, waiting: Future[Answer | None]) -> None:
    """The turn cannot go on, and nobody is left in the dark about it."""
    eventually(lambda: "no space left" in talk.daemon.admin.get("/sessions/s")["why"])
    require_answers(talk.daemon)
    require_clear_refusal(talk.say("say something", session="other"))
    assert not waiting.done()


def require_made_once(waiting: Future[Answer | None], ran: Path) -> None:
    answer = waiting.result(30)
    assert answer is not None
    assert "made" in answer.text
    assert ran.read_text() == "once\n"


def test_an_approval_given_while_the_disk_is_full_is_asked_for_again(model: ScriptedModel, tmp_path: Path) -> None:
    folder = tmp_path / "build"
    folder.mkdir()
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        asked = talk.say(f"run rm -r {folder}")
        assert asked is not None
        assert asked.json()["hermes"]["pending"]["kind"] == "approval"
        with no_file_may_grow(daemon):
            require_clear_refusal(talk.say("yes", shown=False))
            require_answers(daemon)
            assert folder.exists()
        assert "exit code 0" in talk.say_until_heard("yes", shown=False)
        assert not folder.exists()
        talk.check()


def test_a_stop_on_a_full_disk_keeps_its_time_and_the_turn_goes_on_after_the_start(
    model: ScriptedModel, pool: ThreadPoolExecutor
) -> None:
    model.on_request = lambda body: stream(STALL)
    with DaemonProcess(config=model.config + "shutdown: {drain_s: 0.3, timeout_s: 15}\n") as daemon:
        talk = DaemonTalk(daemon, model)
        waiting: Future[Answer | None] = pool.submit(talk.say, "say it at last")
        eventually(lambda: model.requests)
        with no_file_may_grow(daemon):
            assert daemon.terminate() == 0
        told = waiting.result(30)
        assert told is None or told.status == 503
        model.on_request = lambda body: None
        daemon.start()
        assert talk.say_until_heard("say it at last") == "it at last"
        talk.check()


def test_a_start_on_a_full_disk_says_so_and_the_next_one_goes_on(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        daemon.kill()
        done = daemon.hermes("daemon", prefix=("sh", "-c", 'ulimit -S -f 0; exec "$@"', "sh"))
        assert done.returncode == 74
        assert "no space left" in done.stderr
        assert "Traceback" not in done.stderr
        daemon.start()
        talk.check()


def test_a_map_that_begins_with_a_megabyte_grows_with_the_conversation(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config + "storage: {map_size_mb: 1}\ncompression: {enabled: false}\n") as daemon:
        talk = DaemonTalk(daemon, model)
        for number in range(5):
            assert talk.say_until_heard(f"say {number} " + "x" * 400_000, f"c{number}").startswith(str(number))
        assert "has grown to 2 MiB" in daemon.stderr()
        assert "has grown to 8 MiB" in daemon.stderr()
        talk.check()


# ---------------------------------------------------------------- a small disk that others fill, and a reserve


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    disk = SmallDisk(40)
    try:
        yield disk
    finally:
        disk.remove()


def test_a_daemon_whose_disk_is_full_since_before_its_start_answers_and_takes_up_its_work_later(
    model: ScriptedModel, pool: ThreadPoolExecutor, disk: SmallDisk
) -> None:
    home = disk.path / "h"
    with DaemonProcess(config=model.config, home=home, prefix=disk.prefix) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        model.on_request = lambda body: stream(STALL)
        waiting = pool.submit(talk.say, "say two")
        eventually(lambda: len(model.requests) == 2)
        daemon.kill()
        waiting.result(30)
        model.on_request = lambda body: None
        with disk.full():
            daemon.start()
            require_answers(daemon)
        assert talk.say_until_heard("say two") == "two"
        talk.check()

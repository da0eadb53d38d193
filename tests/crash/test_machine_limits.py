"""No descriptors are left, the log cannot be written, the home is read-only or somebody else's.

Conversations under way go on, whoever is refused is told why, and when the hardship is over all is as before.
"""

from __future__ import annotations

import http.client
import json
import resource
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import pytest

from tests.crash.machine import DaemonTalk, SmallDisk
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    disk = SmallDisk(40)
    try:
        yield disk
    finally:
        disk.remove()


# ---------------------------------------------------------------- descriptors


class Line:
    """A client that keeps its connection."""

    def __init__(self, daemon: DaemonProcess) -> None:
        address = urlsplit(daemon.address)
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port or 0, timeout=30)
        self._key = daemon.key

    def say(self, text: str, session: str) -> tuple[int, str]:
        body = json.dumps({"model": "hermes", "messages": [{"role": "user", "content": text}]})
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "X-Hermes-Session-Id": session,
            "Idempotency-Key": text,
        }
        self._connection.request("POST", "/v1/chat/completions", body, headers)
        response = self._connection.getresponse()
        return response.status, response.read().decode()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def no_descriptors_left(daemon: DaemonProcess) -> Iterator[None]:
    assert daemon.process is not None
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_without_descriptors_a_conversation_gets_an_answer_or_a_reason_and_goes_on_afterwards(
    model: ScriptedModel,
) -> None:
    with DaemonProcess(config=model.config) as daemon, ExitStack() as stack:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        line = stack.enter_context(closing(Line(daemon)))
        host, port = daemon.address.removeprefix("http://").split(":")
        assert line.say("say first", "line")[0] == 200
        with no_descriptors_left(daemon):
            status, said = line.say("run echo made", "line")
            assert status == 200 or json.loads(said)["error"]["message"]
            stack.enter_context(socket.create_connection((host, int(port))))  # nobody can take it now
        assert talk.say_until_heard("say two") == "two"
        assert "made" in line.say("run echo made again", "line")[1]
        assert "Traceback" not in daemon.stderr()
        talk.check()


def test_a_flood_of_connections_is_refused_while_a_conversation_goes_on_and_lets_others_in_when_it_is_over(
    model: ScriptedModel,
) -> None:
    limited = ("sh", "-c", 'ulimit -Sn 100; ulimit -Hn 300; exec "$@"', "sh")
    config = model.config + "api: {max_connections: 4000, max_connections_per_peer: 4000}\n"
    with DaemonProcess(config=config, prefix=limited) as daemon:
        talk = DaemonTalk(daemon, model)
        with closing(Line(daemon)) as line, ExitStack() as flood:
            assert line.say("say before", "line")[0] == 200
            host, port = daemon.address.removeprefix("http://").split(":")
            for _ in range(400):
                flood.enter_context(socket.create_connection((host, int(port))))
            assert "made" in line.say("run echo made", "line")[1], "there are descriptors for its tools and its model"
            assert daemon.hermes("ps").returncode == 0
        assert talk.say_until_heard("say after") == "after"
        talk.check()


# ---------------------------------------------------------------- places that cannot be written


def test_unwritable_log_is_reported_once_and_blocks_nothing(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        shutil.rmtree(daemon.home / "logs")
        (daemon.home / "logs").write_text("a file where the folder was")
        daemon.terminate()
        done = daemon.hermes("daemon")
        assert done.returncode != 0
        assert "logs" in done.stderr
        assert "Traceback" not in done.stderr
        (daemon.home / "logs").unlink()
        daemon.start()
        shutil.rmtree(daemon.home / "logs")
        (daemon.home / "logs").write_text("once more, while it runs")
        assert talk.say_until_heard("say two") == "two"
        (daemon.home / "logs").unlink()
        talk.check()
        assert daemon.stderr().count("cannot be written") <= 1


def test_a_home_that_has_become_read_only_refuses_what_is_new_and_a_start(
    model: ScriptedModel, disk: SmallDisk
) -> None:
    home = disk.path / "h"
    with DaemonProcess(config=model.config, home=home, prefix=disk.prefix) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        daemon.kill()
        with disk.read_only():
            done = daemon.hermes("daemon", prefix=disk.prefix)
            assert done.returncode in (74, 78)
            assert "Read-only file system" in done.stderr or "not writable" in done.stderr
            assert "Traceback" not in done.stderr
        daemon.start()
        talk.check()


def test_a_second_daemon_leaves_the_first_ones_conversation_alone(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        second = daemon.hermes("daemon")
        assert second.returncode == 75
        assert "another Hermes runs" in second.stderr
        talk.say("say two")
        talk.check()

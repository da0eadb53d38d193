"""Events of all sessions in one stream, across breaks and restarts."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.event_reader import read_events

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


class Reader:
    """Reads a stream in a thread. `next` waits for an event with that name."""

    def __init__(self, daemon: DaemonProcess, path: str = "/api/events", last: str = "") -> None:
        self.seen: list[tuple[str, Any]] = []
        self._events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._stream = read_events(daemon, path, last)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for event in self._stream:
                self._events.put(event)
        except OSError:  # the daemon was killed
            pass

    def next(self, name: str) -> Any:
        while True:
            event = self._events.get(timeout=60)
            self.seen.append(event)
            if event[0] == name:
                return event[1]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.seen]


def test_all_sessions_are_in_one_stream_with_the_names_of_runs(daemon: DaemonProcess) -> None:
    reader = Reader(daemon)
    reader.next("stream.opened")
    daemon.ask("!slow 1", session="one")
    first = reader.next("run.completed")
    daemon.ask("!echo hi", session="two")
    second = reader.next("run.completed")
    assert (first["session_id"], second["session_id"], second["output"]) == ("one", "two", "hi")
    assert second["platform"] == "api"
    for name in ("session.started", "run.accepted", "run.started", "message.delta"):
        assert name in reader.names
    run = daemon.request("GET", f"/v1/runs/{second['run_id']}").json()
    assert run["output"] == "hi"
    ids = [int(data["_id"]) for _, data in reader.seen if data["_id"]]
    assert ids == sorted(set(ids))


def test_filters_select_session_and_type(daemon: DaemonProcess) -> None:
    reader = Reader(daemon, "/api/events?session_id=two&type=run.completed,session.updated")
    reader.next("stream.opened")
    daemon.ask("!echo one", session="one")
    daemon.ask("!echo two", session="two")
    reader.next("run.completed")
    daemon.request("POST", "/api/sessions/two/commands", {"text": "/title Renamed"})
    updated = reader.next("session.updated")
    assert updated["preferences"]["title"] == "Renamed"
    assert {data["session_id"] for _, data in reader.seen[1:]} == {"two"}


def test_named_key_sees_its_own_sessions_only(daemon: DaemonProcess) -> None:
    made = daemon.hermes("keys", "create", "ci")
    key = next(word for word in made.stdout.split() if word.startswith("hk_"))
    token = daemon.request("POST", "/api/tokens", {}, Authorization=f"Bearer {key}").json()["token"]
    reader = Reader(daemon, f"/api/events?token={token}")
    reader.next("stream.opened")
    daemon.ask("!echo private", session="owners")
    daemon.ask("!echo mine", session="cis", Authorization=f"Bearer {key}")
    assert reader.next("run.completed")["output"] == "mine"
    assert {data["session_id"] for _, data in reader.seen[1:]} == {"cis"}


def test_reader_continues_after_a_kill_without_a_gap(daemon: DaemonProcess) -> None:
    reader = Reader(daemon, "/api/events?type=stream,run.completed")
    reader.next("stream.opened")
    daemon.ask("!echo one", session="s")
    last = reader.next("run.completed")["_id"]
    daemon.ask("!echo two", session="s")
    daemon.kill()
    daemon.start()
    daemon.ask("!echo three", session="s")
    again = Reader(daemon, "/api/events?type=stream,run.completed", last)
    outputs = [again.next("run.completed")["output"] for _ in range(2)]
    assert outputs == ["two", "three"]
    assert again.names[0] == "stream.opened"


def test_unknown_position_is_reported_as_a_gap(daemon: DaemonProcess) -> None:
    reader = Reader(daemon, last="999999")
    assert reader.next("gap")["reason"] == "unknown_position"
    daemon.ask("!echo on", session="s")
    assert reader.next("run.completed")["output"] == "on"


def test_planned_stop_is_announced(daemon: DaemonProcess) -> None:
    reader = Reader(daemon)
    opened = reader.next("stream.opened")
    assert daemon.terminate() == 0
    assert reader.next("daemon.stopping")["last_event_id"] == opened["_id"]


def test_browser_reads_with_a_token(daemon: DaemonProcess) -> None:
    token = daemon.request("POST", "/api/tokens", {}).json()["token"]
    reader = Reader(daemon, f"/api/events?token={token}")
    reader.next("stream.opened")
    daemon.ask("!echo hi", session="s")
    assert json.dumps(reader.next("run.completed")["output"]) == '"hi"'

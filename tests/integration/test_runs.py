"""Runs over the API: live text for every reader, lists, and approvals by id."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.event_reader import read_events
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def start(daemon: DaemonProcess, text: str, **fields: Any) -> dict[str, Any]:
    run: dict[str, Any] = daemon.request("POST", "/v1/runs", {"input": text, **fields}).json()
    return run


def get(daemon: DaemonProcess, path: str) -> Any:
    return daemon.request("GET", path).json()


def ask_for_approval(daemon: DaemonProcess) -> dict[str, Any]:
    call = json.dumps({"command": "rm -rf /tmp/nothing-here-at-all"})
    return start(daemon, f"!tool terminal {call}")


def text_of(events: list[tuple[str, Any]]) -> str:
    """The text as a client shows it: what comes before a reset does not count."""
    text = ""
    for name, data in events:
        text = "" if name == "message.reset" else text + data["text"] if name == "message.delta" else text
    return text


def test_the_first_reply_of_a_run_is_streamed_also_to_a_late_reader(daemon: DaemonProcess) -> None:
    run = start(daemon, "!slow 3")
    started = threading.Event()
    read: list[list[tuple[str, Any]]] = [[], []]

    def follow(reader: int) -> None:
        for name, data in read_events(daemon, f"/v1/runs/{run['run_id']}/events"):
            read[reader].append((name, data))
            if name == "message.delta":
                started.set()

    early = threading.Thread(target=follow, args=(0,))
    early.start()
    assert started.wait(60)
    late = threading.Thread(target=follow, args=(1,))
    late.start()
    early.join(60)
    late.join(60)
    for events in read:
        name, data = events[-1]
        assert name == "run.completed"
        assert text_of(events) == data["output"] != ""
    assert sum(name == "message.delta" for name, _ in read[0]) > 1


def test_runs_are_listed_newest_first_in_stable_pages(daemon: DaemonProcess) -> None:
    runs = [start(daemon, f"!echo {n}", session_id=f"s{n % 2}")["run_id"] for n in range(5)]
    eventually(lambda: all(run["status"] == "completed" for run in get(daemon, "/v1/runs")["data"]))
    first = get(daemon, "/v1/runs?limit=2")
    start(daemon, "!echo later")
    second = get(daemon, f"/v1/runs?limit=2&cursor={first['next_cursor']}")
    listed = [run["run_id"] for page in (first, second) for run in page["data"]]
    assert listed == [*reversed(runs)][:4]
    of_session = get(daemon, "/v1/runs?session_id=s1")["data"]
    assert [run["output"] for run in of_session] == ["3", "1"]


def test_open_approvals_of_all_sessions_are_listed_and_answered_by_id(daemon: DaemonProcess) -> None:
    runs = [ask_for_approval(daemon) for _ in range(2)]
    listed = eventually(lambda: len(found := get(daemon, "/api/approvals")["approvals"]) == 2 and found)
    waiting = get(daemon, "/v1/runs?status=waiting_for_approval")["data"]
    assert (
        {run["run_id"] for run in waiting} == {run["run_id"] for run in runs} == {each["run_id"] for each in listed}
    )
    chosen = listed[0]
    answered = daemon.request("POST", f"/api/approvals/{chosen['id']}", {"choice": "deny"}).json()
    assert answered["answered"]
    eventually(lambda: get(daemon, f"/v1/runs/{chosen['run_id']}")["status"] == "completed")
    assert [each["id"] for each in get(daemon, "/api/approvals")["approvals"]] == [listed[1]["id"]]
    again = daemon.request("POST", f"/api/approvals/{chosen['id']}", {"choice": "once"})
    assert (again.status, again.json()["error"]["code"]) == (404, "approval_not_found")

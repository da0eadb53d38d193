"""Streams of the pages: live parts, samples, session events, and their end with the login."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.web.visitor import WITHIN_S, Visitor

pytestmark = pytest.mark.timeout(120)


@contextmanager
def reading(visitor: Visitor, path: str, last: str = "") -> Iterator[Iterator[tuple[str, Any, str]]]:
    """Name, data and id of each event."""
    connection = http.client.HTTPConnection(urlsplit(visitor.address).netloc, timeout=WITHIN_S)
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())}
    connection.request("GET", path, headers=headers | ({"Last-Event-ID": last} if last else {}))
    answer = connection.getresponse()
    try:
        assert answer.status == 200, answer.read()
        yield _events(answer)
    finally:
        answer.close()
        connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any, str]]:
    fields: dict[str, str] = {}
    for raw in answer:
        if line := raw.decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("event", ""), json.loads(fields["data"]), fields.get("id", "")
            fields = {}


@pytest.mark.parametrize("part", ["overview", "actors", "approvals", "processes"])
def test_live_part_is_the_same_html_as_in_the_page(visitor: Visitor, part: str) -> None:
    with reading(visitor, f"/ui/live/{part}") as events:
        name, data, _ = next(events)
    assert name == "part"
    assert data["html"].lstrip().startswith("<")
    assert visitor.get("/ui/live/nothing", accept="*/*").status == 404


def test_live_part_is_sent_again_when_it_changed(daemon: DaemonProcess, visitor: Visitor) -> None:
    with reading(visitor, "/ui/live/actors") as events:
        next(events)
        session = daemon.ask("!echo here").session
        while session not in next(events)[1]["html"]:
            pass


def test_samples_continue_after_the_last_one(visitor: Visitor) -> None:
    with reading(visitor, "/ui/live-samples", last="0") as events:
        first = [next(events) for _ in range(2)]
    assert [place for _, _, place in first] == ["1", "2"]
    with reading(visitor, "/ui/live-samples", last="1") as events:
        assert next(events)[1] == first[1][1]
    with reading(visitor, "/ui/live-samples?after=1") as events:  # a tab that was hidden meanwhile
        assert next(events)[1] == first[1][1]
    kept = json.loads(visitor.get("/ui/samples").text)["samples"]
    assert kept[0] == first[0][1]


def test_session_events_continue_after_the_last_one(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo one").session
    with reading(visitor, f"/ui/events?session_id={session}") as events:
        _, _, place = next(events)  # where the stream begins
        daemon.ask("!echo two", session=session)
        seen = [next(events)[0] for _ in range(2)]
    with reading(visitor, f"/ui/events?session_id={session}", last=place) as events:
        again = []
        while "run.completed" not in again:
            again.append(next(events)[0])
    assert "run.accepted" in seen + again
    assert "run.accepted" in again


def test_logout_ends_the_streams(visitor: Visitor) -> None:
    with reading(visitor, "/ui/live/actors") as events:
        next(events)
        visitor.get("/")
        assert visitor.post("/ui/logout").status == 303
        assert not [name for name, _, _ in events if name != "part"]  # it ends

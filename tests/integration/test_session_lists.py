"""Sessions over the API: create, change, list, search, and read messages in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def get(daemon: DaemonProcess, path: str) -> Any:
    answer = daemon.request("GET", path)
    assert answer.status == 200, answer.body
    return answer.json()


def ids(page: Any) -> list[str]:
    return [session["id"] for session in page["sessions"]]


def test_session_is_created_and_changed(daemon: DaemonProcess) -> None:
    made = daemon.request("POST", "/api/sessions", {"id": "mine", "title": "First", "reasoning": "low"})
    assert (made.status, made.json()["session"]["title"]) == (201, "First")
    assert made.json()["preferences"]["reasoning"] == "low"
    again = daemon.request("POST", "/api/sessions", {"id": "mine"})
    assert (again.status, again.json()["error"]["code"]) == (409, "session_exists")
    changed = daemon.request("PATCH", "/api/sessions/mine", {"title": "Second", "model": "other"}).json()
    assert (changed["session"]["title"], changed["preferences"]["model"]) == ("Second", "other")
    assert daemon.request("PATCH", "/api/sessions/mine", {"model": ""}).json()["preferences"]["model"] == ""
    for wrong in ({}, {"reasoning": "much"}, {"busy": "later"}, {"personality": "nobody"}, {"yolo": True}):
        assert daemon.request("PATCH", "/api/sessions/mine", wrong).status in (400, 403, 422), wrong
    assert daemon.ask("!echo hi", session="mine").text == "hi"
    unnamed = daemon.request("POST", "/api/sessions", {}).json()
    assert get(daemon, f"/api/sessions/{unnamed['session_id']}")["session"]["messages"] == 0


def test_pages_do_not_repeat_a_session_that_becomes_active(daemon: DaemonProcess) -> None:
    for number in range(6):
        daemon.ask(f"!echo {number}", session=f"page{number}")
    first = get(daemon, "/api/sessions?limit=3")
    assert ids(first) == ["page5", "page4", "page3"]
    daemon.ask("!echo again", session="page3")
    second = get(daemon, f"/api/sessions?limit=3&cursor={first['next_cursor']}")
    assert ids(second) == ["page2", "page1", "page0"]


def test_filters_totals_and_previews(daemon: DaemonProcess) -> None:
    daemon.ask("!echo something to remember", session="shown")
    daemon.request("PATCH", "/api/sessions/shown", {"title": "Groceries"})
    found = get(daemon, "/api/sessions?title=grocer&phase=idle&platform=api&preview=1&total=1")
    assert (ids(found), found["total"], found["has_more"]) == (["shown"], 1, False)
    preview = found["previews"]["shown"]
    assert preview == {"first": "!echo something to remember", "last": "something to remember"}
    assert get(daemon, "/api/sessions?platform=telegram")["sessions"] == []


def test_search_finds_messages_of_all_sessions(daemon: DaemonProcess) -> None:
    daemon.ask("!echo the xylophone is blue", session="music")
    found = eventually(lambda: get(daemon, "/api/search?q=xylophone&role=assistant")["hits"])
    assert [hit["session_id"] for hit in found] == ["music"]
    assert "xylophone" in found[0]["snippet"]
    assert get(daemon, "/api/search?q=xylophone&session_id=shown")["hits"] == []
    assert daemon.request("GET", "/api/search").status == 400


def test_messages_are_read_backwards_page_by_page(daemon: DaemonProcess) -> None:
    for number in range(7):
        daemon.ask(f"!echo {number}", session="long")
    page = get(daemon, "/api/sessions/long/messages?limit=4")
    pages = [page]
    while page["has_more"]:
        page = get(daemon, f"/api/sessions/long/messages?limit=4&before={page['messages'][0]['seq']}")
        pages.insert(0, page)
    said = [message["content"] for page in pages for message in page["messages"]]
    assert said == [text for number in range(7) for text in (f"!echo {number}", str(number))]
    both = daemon.request("GET", "/api/sessions/long/messages?before=3&after=1")
    assert both.status == 422

"""What a person can do to a session over HTTP."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.state import Preferences, Turn
from tests.adapters.a_call import waiting
from tests.adapters.conftest import ApiHarness
from tests.support.fakes import NOW, a_session


@pytest.fixture
def sessions(world: ApiHarness) -> ApiHarness:
    """A conversation that went on in another session."""
    world.desk.sessions[SessionId("old")] = a_session("old", successor=SessionId("new"))
    world.desk.sessions[SessionId("new")] = a_session("new", parent=SessionId("old"))
    return world


async def post(client: aiohttp.ClientSession, path: str, body: Any = None) -> tuple[int, Any, str]:
    async with client.post(path, json=body) as response:
        return response.status, await response.json(), response.headers.get("X-Hermes-Session-Id", "")


@pytest.mark.parametrize(
    ("what", "body", "wanted"),
    [
        ("fork", {"title": "other"}, (201, "s", "branch", "other", "False")),
        ("fork", None, (201, "s", "branch", "", "False")),
        ("compress", {"topic": "the plan"}, (202, "s", "compress", "the plan")),
        ("undo", {"turns": 3}, (200, "s", "undo", "3")),
        ("undo", {}, (200, "s", "undo", "1")),
    ],
)
async def test_a_wish_is_done_and_the_session_shown_as_it_is_then(
    world: ApiHarness, client: aiohttp.ClientSession, what: str, body: Any, wanted: tuple[Any, ...]
) -> None:
    world.desk.sessions[SessionId("s")] = a_session("s")
    status, told, header = await post(client, f"/api/sessions/s/{what}", body)
    assert [(status, *wish) for wish in world.desk.wishes] == [wanted]
    assert told["session_id"] == told["session"]["id"] == header
    assert (header != "s") == (what == "fork")


async def test_an_answer_goes_to_the_call_that_it_names(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.sessions[SessionId("s")] = waiting(a_session("s"), "t")
    status, told, _ = await post(client, "/api/sessions/s/answer", {"answer": "once", "call_id": "c1"})
    assert (status, told["session"]["phase"]) == (200, "running")
    assert world.desk.wishes == [("s", "answer", "once", "c1")]


async def test_a_stop_ends_what_runs(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.sessions[SessionId("s")] = a_session("s")
    assert (await post(client, "/api/sessions/s/stop", {"reason": "enough"}))[0] == 200
    assert world.desk.stopped == [("s", "enough", None)]


async def test_steer_submits_a_steering_message(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.sessions[SessionId("s")] = a_session("s")
    status, told, _ = await post(client, "/api/sessions/s/steer", {"text": "this way"})
    assert (status, told) == (202, {"session_id": "s", "turn_id": "turn-1", "handling": "started"})
    (submission,) = world.desk.submitted
    assert (submission.busy, submission.session) == ("steer", "s")
    assert submission.messages == (b'{"role":"user","content":"this way"}',)


@pytest.mark.parametrize("what", ["steer", "stop", "fork", "compress", "answer", "undo"])
async def test_a_session_that_is_not_there_stays_that_way(
    world: ApiHarness, client: aiohttp.ClientSession, what: str
) -> None:
    status, body, _ = await post(client, f"/api/sessions/nobody/{what}", {"text": "x", "answer": "x"})
    assert (status, body["error"]["code"]) == (404, "session_not_found")
    assert not world.desk.submitted


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("steer", {}, "text"),
        ("steer", {"text": ""}, "text"),
        ("steer", {"text": "a\0b"}, "text"),
        ("fork", {"title": 7}, "title"),
        ("fork", {"title": "x" * 201}, "title"),
        ("compress", {"topic": []}, "topic"),
        ("answer", {}, "answer"),
        ("answer", {"answer": "x", "call_id": 1}, "call_id"),
        ("undo", {"turns": 0}, "turns"),
        ("undo", {"turns": True}, "turns"),
        ("stop", {"reason": ""}, "reason"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_its_name(
    sessions: ApiHarness, client: aiohttp.ClientSession, path: str, body: Any, param: str
) -> None:
    status, told, _ = await post(client, f"/api/sessions/new/{path}", body)
    assert (status, told["error"]["param"]) == (400, param)
    assert not sessions.desk.wishes


async def test_a_session_shows_what_it_waits_for_and_what_waits_in_it(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    later = Turn(id=TurnId("t2"), accepted_at=NOW, steer=True)
    session = a_session("s", queue=(later,), preferences=Preferences(title="My chat"))
    world.desk.sessions[SessionId("s")] = waiting(session, "t1")
    async with client.get("/api/sessions/s") as response:
        view = await response.json()
    assert view["pending"]["question"] == "May I run this?\n`rm -rf x`\nIt deletes a directory tree."
    assert view["pending"]["choices"] == ["once", "session", "always", "deny"]
    assert view["queue"] == [{"turn_id": "t2", "accepted_at": NOW, "steer": True}]
    assert view["preferences"]["title"] == "My chat"


async def test_exact_reads_this_session_instead_of_the_live_end(
    sessions: ApiHarness, client: aiohttp.ClientSession
) -> None:
    sessions.desk.transcripts = {SessionId("old"): [], SessionId("new"): []}
    for query, session in (("", "new"), ("?exact=1", "old"), ("?exact=0", "new")):
        async with client.get(f"/api/sessions/old{query}") as response:
            view = await response.json()
            assert view["session"]["id"] == response.headers["X-Hermes-Session-Id"] == session
        async with client.get(f"/api/sessions/old/messages{query}") as response:
            assert (await response.json())["session_id"] == session
    async with client.get("/api/sessions/old?exact=maybe") as response:
        assert response.status == 400

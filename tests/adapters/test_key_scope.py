"""Named API keys against every route of the API: own sessions only, no processes, a budget, an end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import aiohttp
import pytest

from hermes.adapters.http.caller import CALLER
from hermes.adapters.http.guard import OPEN_PATHS
from hermes.adapters.http.key_scope import ROUTES
from hermes.adapters.http.listener import Lifetime
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.own_sessions import OwnSessions
from hermes.adapters.openai_api.provider_api import PATHS
from hermes.adapters.openai_api.routes import api_routes
from hermes.adapters.openai_api.server import ApiServer
from hermes.adapters.openai_api.turns.turn_event import of_event
from hermes.domain.access.api_key import ApiKey
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.domain.events import Notice
from hermes.domain.ids import RESPONSE, RUN, SessionId, TurnId, TurnToken
from hermes.domain.operations import Tally
from hermes.domain.turn.usage import Usage
from tests.adapters.conftest import PATIENCE_S, ApiHarness, ask, chat, logged
from tests.support.fakes import NOW, process_view

OWNERS = "X-Hermes-Session-Id"
REFUSED = {"GET /api/processes", "GET /api/processes/{id}", "GET /api/processes/{id}/log"} | {
    "POST /api/processes/{id}/kill",
    "GET /api/sessions/{id}/processes",
    "GET /api/sessions/{id}/agents",
    "GET /api/sessions/{id}/context",
    "GET /health/detailed",
    "GET /api/jobs",
    "POST /api/jobs",
    "GET /api/jobs/{id}",
    "PATCH /api/jobs/{id}",
    "DELETE /api/jobs/{id}",
    "GET /api/jobs/{id}/runs",
    *(f"POST /api/jobs/{{id}}/{verb}" for verb in ("pause", "resume", "run")),
    *(f"POST {path}" for path in PATHS),
}


async def a_key(world: ApiHarness, name: str = "ci", **limits: Any) -> str:
    chosen: dict[str, Any] = {"role": Role.USER, "expires_s": None, "day_tokens": 0, "day_usd": 0.0} | limits
    _, text = await world.keys.create(name, **chosen)
    return text.reveal()


async def as_key(world: ApiHarness, api: ApiServer, name: str = "ci", **limits: Any) -> aiohttp.ClientSession:
    return await world.client(api, Authorization=f"Bearer {await a_key(world, name, **limits)}")


async def call(client: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, str]:
    async with client.request(method, path, json=body) as response:
        text = await response.text()
        return response.status, json.loads(text).get("error", {}).get("code", "") if text.startswith("{") else text


async def test_every_route_is_either_open_to_named_keys_or_refused(world: ApiHarness) -> None:
    service = Service(
        sessions=world.desk,
        make_commands=cache(world.commands),
        hub=world.hub,
        operations=world.operations,
        processes=world.processes,
        new_turn_id=lambda: TurnId("t"),
        clock=lambda: NOW,
        lifetime=Lifetime(),
    )
    known = {f"{route.method} {route.path.replace(':.+', '')}" for route in api_routes(service)}
    assert known == ROUTES | REFUSED | {f"GET {path}" for path in OPEN_PATHS} | {"POST /hooks/{id}"}  # its own secret


async def test_session_of_a_named_key_belongs_to_it(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    ci = await as_key(world, api)
    status, _, headers = await chat(ci, ask("hello", user="mallory"))
    assert status == 200
    source = world.desk.submitted[-1].source
    assert (source.platform, source.user, source.role) == ("key-ci", "ci", Role.USER)
    session = headers[OWNERS]
    assert (await chat(ci, ask("again"), **{OWNERS: session}))[0] == 200
    assert (await call(ci, "GET", f"/api/sessions/{session}/messages"))[0] == 200
    assert (await call(client, "GET", f"/api/sessions/{session}"))[0] == 200  # the owner sees all


OF_THE_KEY_ITSELF = {"GET /api/events", "POST /api/tokens", "GET /api/search"}  # have tests of their own
FILE_ROUTES = {each for each in ROUTES if "/v1/files" in each}  # see test_api_files.py


@pytest.mark.parametrize("route", sorted((ROUTES | REFUSED) - OF_THE_KEY_ITSELF - FILE_ROUTES))
async def test_named_key_reaches_nothing_of_others(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession, route: str
) -> None:
    _, _, headers = await chat(client, ask("the owner's words"), **{OWNERS: "owners"})
    world.processes.known = {"proc_a": process_view("proc_a", "owners")}
    turn = TurnId(headers["X-Hermes-Turn-Id"])
    token = TurnToken(session=SessionId("owners"), turn=turn)
    before = (len(world.desk.submitted), list(world.desk.wishes), dict(world.desk.sessions))
    ci = await as_key(world, api)
    method, _, path = route.partition(" ")
    kind = RESPONSE if "responses" in path else RUN
    names = {"/v1/models": "hermes", "/api/processes": "proc_a", "/api/sessions": "owners"}
    name = next((value for prefix, value in names.items() if path.startswith(prefix)), token.text(kind))
    bodies: dict[str, Any] = {
        "/v1/chat/completions": ask("go on"),
        "/v1/responses": {"model": "hermes", "input": "go on", "previous_response_id": token.text(RESPONSE)},
        "/v1/runs": {"model": "hermes", "input": "go on", "session_id": "owners"},
        "/api/commands": {"text": "/resume owners"},
        "/api/sessions/{id}/commands": {"text": "/title mine"},
        "/api/sessions/{id}/steer": {"text": "stop that"},
        "/api/sessions/{id}/chat": {"message": "go on"},
        "/api/sessions/{id}/chat/stream": {"message": "go on"},
        "/v1/completions": {"prompt": "go on"},
        "/api/sessions/{id}/answer": {"answer": "yes"},
        "/api/sessions": {"id": "owners"},
        "/api/sessions/{id}": {"title": "mine"},
        "/v1/runs/{id}/answer": {"answer": "yes"},
        "/v1/runs/{id}/approval": {"choice": "once"},
        "/mcp": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "messages_read", "arguments": {"session_id": "owners"}},
        },
    }
    sent = {"json": bodies.get(path, {})} if method in ("POST", "PATCH") else {}
    with_session = {OWNERS: "owners"} if path in ("/v1/chat/completions", "/v1/completions") else {}
    url = path.replace("{id}", name)
    async with ci.request(method, url, headers=with_session, **sent) as response:
        said = await response.text()
    harmless = {
        "GET /v1/models",
        "GET /v1/capabilities",
        "GET /v1/toolsets",
        "GET /v1/models/{id}",
        "GET /v1/runs",
        "GET /api/approvals",
        "GET /api/sessions",
        "GET /api/commands",
        "POST /api/commands",
        "POST /mcp",  # see tests/mcp/test_serving.py
    }
    expected = {200} if route in harmless else {403} if route in REFUSED else {404}
    assert response.status in expected, said
    assert "the owner's words" not in said
    assert "proc_a" not in said or "error" in said
    if route == "GET /api/sessions":
        assert json.loads(said) == {"sessions": [], "has_more": False, "next_cursor": None}
    if route == "POST /api/commands":
        assert not json.loads(said)["ok"]
    assert before == (len(world.desk.submitted), world.desk.wishes, world.desk.sessions)


async def test_message_commands_do_not_reach_the_session_of_another(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    await chat(client, ask("hello"), **{OWNERS: "owners"})
    ci = await as_key(world, api)
    for command in ("/steer do this", "/queue do this", "/undo", "/status"):
        status, body, _ = await chat(ci, ask(command), **{OWNERS: "owners"})
        assert (status, body["error"]["code"]) == (404, "session_not_found"), command
    assert len(world.desk.submitted) == 1


WRITES: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("/v1/chat/completions", ask("secret"), {OWNERS: "work"}),
    ("/v1/chat/completions", ask("/title mine"), {OWNERS: "work"}),
    ("/v1/completions", {"prompt": "secret"}, {OWNERS: "work"}),
    ("/v1/responses", {"model": "hermes", "input": "secret", "conversation": "work"}, {}),
    ("/v1/runs", {"model": "hermes", "input": "secret", "session_id": "work"}, {}),
    ("/api/sessions/work/chat", {"message": "secret"}, {}),
    ("/api/sessions/work/steer", {"text": "secret"}, {}),
    ("/api/sessions/work/commands", {"text": "/title mine"}, {}),
]


@pytest.mark.parametrize("write", WRITES)
async def test_owner_does_not_write_into_the_session_of_a_named_key(
    world: ApiHarness,
    api: ApiServer,
    client: aiohttp.ClientSession,
    write: tuple[str, dict[str, Any], dict[str, str]],
) -> None:
    path, body, headers = write
    ci = await as_key(world, api)
    await chat(ci, ask("hello"), **{OWNERS: "work"})
    before = (len(world.desk.submitted), dict(world.desk.sessions))
    async with client.post(path, json=body, headers=headers) as response:
        said = await response.json()
    assert (response.status, said["error"]["code"]) == (409, "session_of_another_key"), said
    assert before == (len(world.desk.submitted), world.desk.sessions)
    assert (await call(client, "GET", "/api/sessions/work/messages"))[0] == 200
    assert (await call(client, "POST", "/api/sessions/work/stop", {}))[0] == 200


async def test_owner_does_not_branch_the_session_of_a_named_key_for_a_message(
    world: ApiHarness, api: ApiServer
) -> None:
    await chat(await as_key(world, api), ask("hello"), **{OWNERS: "work"})
    token = CALLER.set(None)
    try:
        with pytest.raises(BadInputError) as refused:
            await OwnSessions(world.desk).branch(SessionId("work"), after=TurnId("turn-1"))
    finally:
        CALLER.reset(token)
    assert refused.value.code == "session_of_another_key"
    assert list(world.desk.sessions) == ["work"]


async def test_session_continued_by_another_caller_no_longer_belongs_to_the_key(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    ci = await as_key(world, api)
    await chat(ci, ask("hello"), **{OWNERS: "shared"})
    session = world.desk.sessions[SessionId("shared")]
    world.desk.sessions[SessionId("shared")] = replace(session, platform="api")
    assert await call(ci, "GET", "/api/sessions/shared") == (404, "session_not_found")


async def test_list_shows_own_sessions_only(world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession) -> None:
    await chat(client, ask("hello"), **{OWNERS: "owners"})
    one, other = await as_key(world, api, "one"), await as_key(world, api, "other")
    await chat(one, ask("hello"), **{OWNERS: "ones"})
    await chat(other, ask("hello"), **{OWNERS: "others"})
    for reader, expected in ((one, {"ones"}), (other, {"others"}), (client, {"owners", "ones", "others"})):
        async with reader.get("/api/sessions") as response:
            assert {each["id"] for each in (await response.json())["sessions"]} == expected


async def test_idempotency_keys_of_two_named_keys_are_apart(world: ApiHarness, api: ApiServer) -> None:
    one, other = await as_key(world, api, "one"), await as_key(world, api, "other")
    _, _, first = await chat(one, ask("hello"), **{"Idempotency-Key": "k"})
    _, _, second = await chat(other, ask("hello"), **{"Idempotency-Key": "k"})
    assert first[OWNERS] != second[OWNERS]
    _, _, again = await chat(one, ask("hello"), **{"Idempotency-Key": "k"})
    assert again["X-Hermes-Idempotent-Replay"] == "true"


@pytest.mark.parametrize("command", ["/yolo on", "/why", "/processes", "/restart", "/grants", "/approve always"])
async def test_commands_that_a_named_key_may_not_give(world: ApiHarness, api: ApiServer, command: str) -> None:
    ci = await as_key(world, api)
    await chat(ci, ask("hello"), **{OWNERS: "s"})
    async with ci.post("/api/sessions/s/commands", json={"text": command}) as response:
        assert not (await response.json())["ok"]
    assert not world.desk.wishes
    assert not world.desk.sessions[SessionId("s")].preferences.yolo


@pytest.mark.parametrize("allowed", [False, True])
async def test_yolo_over_the_api_takes_a_setting(world: ApiHarness, allowed: bool) -> None:
    client = await world.client(await world.api(allow_yolo=allowed))
    await chat(client, ask("hello"), **{OWNERS: "s"})
    async with client.post("/api/sessions/s/commands", json={"text": "/yolo on"}) as response:
        assert (await response.json())["ok"] is allowed
    assert world.desk.sessions[SessionId("s")].preferences.yolo is allowed


async def test_revoked_and_expired_keys_are_refused_with_a_reason(world: ApiHarness, api: ApiServer) -> None:
    gone, late = await as_key(world, api, "gone"), await as_key(world, api, "late", expires_s=-1)
    await world.keys.revoke("gone")
    assert await call(gone, "GET", "/v1/models") == (401, "revoked_api_key")
    assert await call(late, "GET", "/v1/models") == (401, "expired_api_key")
    stranger = await world.client(api, Authorization="Bearer hk_guessed")
    assert await call(stranger, "GET", "/v1/models") == (401, "invalid_api_key")


async def test_revoked_key_ends_its_event_stream(world: ApiHarness, api: ApiServer) -> None:
    ci = await as_key(world, api)
    async with ci.get("/api/events") as stream:
        assert b"stream.opened" in await stream.content.readline() + await stream.content.readline()
        await world.keys.revoke("ci")
        async with asyncio.timeout(PATIENCE_S):
            rest = await stream.content.read()
    assert b"revoked_api_key" in rest


async def test_named_key_gets_notices_of_the_model_without_its_words() -> None:
    notice = Notice(session=SessionId("s"), text="http://10.0.0.1 refused sk-1; next try in 2 s", of_model=True)
    assert of_event(notice)[1]["text"] == notice.text
    key = ApiKey(name="ci", role=Role.USER, hash="", created_at=0)
    token = CALLER.set(key)
    try:
        assert "sk-1" not in of_event(notice)[1]["text"]
    finally:
        CALLER.reset(token)


async def test_key_that_has_spent_its_budget_starts_nothing_more(world: ApiHarness, api: ApiServer) -> None:
    ci = await as_key(world, api, day_tokens=100)
    await chat(ci, ask("hello"), **{OWNERS: "s"})
    today = datetime.fromtimestamp(NOW, UTC).strftime("%Y-%m-%d")
    used = Usage(prompt_tokens=90, completion_tokens=10)
    world.desk.tallies = [Tally(day=today, model="m", platform="key-other", usage=used)]
    assert (await chat(ci, ask("more"), **{OWNERS: "s"}))[0] == 200
    world.desk.tallies.append(Tally(day=today, model="m", platform="key-ci", usage=used))
    status, body, headers = await chat(ci, ask("more"), **{OWNERS: "s"})
    assert (status, body["error"]["code"]) == (402, "key_budget_exceeded")
    assert "00:00 UTC" in body["error"]["message"]
    again = datetime.fromtimestamp(NOW + int(headers["Retry-After"]), UTC)
    assert (again.hour, again.minute) == (0, 0)
    assert (await call(ci, "GET", "/api/sessions/s"))[0] == 200
    assert (await call(ci, "POST", "/api/sessions/s/stop", {}))[0] == 200


async def test_log_names_the_key_and_never_shows_it(world: ApiHarness, api: ApiServer) -> None:
    with logged() as lines:
        text = await a_key(world)
        ci = await world.client(api, Authorization=f"Bearer {text}")
        await chat(ci)
    said = "".join(lines)
    assert "api key ci" in said
    assert text not in said


async def test_keys_are_kept_by_the_store_as_hashes(world: ApiHarness, api: ApiServer) -> None:
    text = await a_key(world)
    stored = world.desk.facts["api.keys"]
    assert text.encode() not in stored
    assert b'"ci"' in stored

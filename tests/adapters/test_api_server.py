"""The API's life, and the routes around the conversation itself."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from functools import cache

import aiohttp
import pytest

from hermes.adapters.http.listener import Lifetime
from hermes.adapters.http.peer_limit import PeerLimit
from hermes.adapters.http.schema import decode
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.openapi.document import document
from hermes.adapters.openai_api.openapi.operations import OPERATIONS
from hermes.adapters.openai_api.routes import api_routes
from hermes.adapters.openai_api.server import ACCEPTS, ApiServer, ApiSettings
from hermes.domain.errors import AlreadyRunningError, ConfigError
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Phase
from tests.adapters.conftest import PATIENCE_S, ApiHarness, ask, chat, events, iterate
from tests.support.fakes import a_session
from tests.support.waiting import until

# ---------------------------------------------------------------- start and stop


async def test_the_address_says_which_port_it_got(api: ApiServer) -> None:
    host, _, port = api.address.rpartition(":")
    assert host == "http://127.0.0.1"
    assert int(port) > 0


async def test_a_port_that_is_taken_is_said_plainly(world: ApiHarness, api: ApiServer) -> None:
    port = int(api.address.rpartition(":")[2])
    with pytest.raises(AlreadyRunningError, match=f"port {port} on 127.0.0.1 is in use"):
        await world.api(port=port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
async def test_a_host_that_is_not_here_is_said_plainly(world: ApiHarness, host: str) -> None:
    with pytest.raises(ConfigError, match=r"api\.host"):
        await world.api(host=host)


async def test_ipv6_has_its_brackets(world: ApiHarness) -> None:
    api = await world.api(host="::1")
    assert api.address.startswith("http://[::1]:")
    assert (await chat(await world.client(api)))[0] == 200


async def test_a_flood_of_connections_is_accepted_a_few_in_a_round(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted, admit = [0], PeerLimit.admit

    def count(limit: PeerLimit, transport: asyncio.Transport) -> str | None:
        admitted[0] += 1
        return admit(limit, transport)

    monkeypatch.setattr(PeerLimit, "admit", count)
    address = ("127.0.0.1", int(api.address.rpartition(":")[2]))
    with ExitStack() as stack:
        for _ in range(100):  # the loop does not run: without a place in the kernel a connection would time out
            stack.enter_context(socket.create_connection(address, PATIENCE_S))
        async with asyncio.timeout(PATIENCE_S):
            while (before := admitted[0]) < 100:
                await asyncio.sleep(0)  # one round
                assert admitted[0] - before <= ACCEPTS + 1


async def test_a_server_that_never_started_can_be_stopped(world: ApiHarness) -> None:
    server = ApiServer(ApiSettings(host="127.0.0.1", port=0, key="k"), world.service(), world.keys)
    server.close_intake()
    await server.stop(1)


async def test_closed_intake_refuses_new_turns_and_finishes_running_ones(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    world.desk.hold()
    running = asyncio.create_task(chat(client))
    await until(lambda: world.desk.submitted)
    api.close_intake()
    status, body, headers = await chat(client)
    assert (status, body["error"]["code"], headers["Retry-After"]) == (503, "stopping", "5")
    async with client.get("/health/ready") as response:
        assert (response.status, (await response.json())["reason"]) == (503, "stopping")
    async with client.get("/api/sessions") as response:
        assert response.status == 200
    world.desk.unheld.set()
    assert (await running)[0] == 200
    assert len(world.desk.submitted) == 1


async def test_a_stop_waits_for_answers_that_come_in_time(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    world.desk.hold()
    running = asyncio.create_task(chat(client))
    await until(lambda: world.desk.submitted)
    stopping = asyncio.create_task(api.stop(30))
    async with aiohttp.ClientSession() as other:
        with pytest.raises(aiohttp.ClientConnectionError):
            await other.get(api.address + "/health")
    world.desk.unheld.set()
    assert (await running)[0] == 200
    await stopping


async def test_waiting_clients_are_answered_at_the_end_of_the_grace_period(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    world.desk.hold()
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as stream:
        await anext(iterate(stream))
        plain = asyncio.create_task(chat(client, **{"Idempotency-Key": "k"}))
        await until(lambda: len(world.desk.submitted) == 2)
        await api.stop(0.05)
        last = (await events(stream))[-1].data
        assert (last["error"]["code"], last["error"]["type"]) == ("stopping", "server_error")
        assert "turn-1 is stored" in last["error"]["message"]
        assert last["error"]["message"].endswith("GET /api/sessions/20270115_080000_00000000/messages")
        status, body, headers = await plain
        assert (status, body["error"]["code"], headers["X-Should-Retry"]) == (503, "stopping", "false")
        assert "turn-2 is stored" in body["error"]["message"]
        assert body["error"]["message"].endswith("send it again under the same Idempotency-Key")


@pytest.mark.parametrize("steps", range(8))
async def test_connection_during_the_stop_does_not_delay_it(api: ApiServer, steps: int) -> None:
    loop = asyncio.get_running_loop()
    host, _, port = api.address.removeprefix("http://").rpartition(":")
    with socket.socket() as newcomer:
        newcomer.setblocking(False)
        await loop.sock_connect(newcomer, (host, int(port)))
        for _ in range(steps):  # from the knock at the door to the first request waited for
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            await api.stop(0.05)


# ---------------------------------------------------------------- health


async def test_health_tells_the_version_and_readiness_its_reason(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    async with client.get("/health") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok", "version": "1.2.3"})
    async with client.get("/health/ready") as response:
        assert (response.status, await response.json()) == (200, {"status": "ready"})
    world.operations.not_ready = "the disk is full"
    async with client.get("/health/ready") as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "5"
        assert await response.json() == {"status": "not ready", "reason": "unavailable"}
    async with client.get("/health") as response:
        assert response.status == 200


# ---------------------------------------------------------------- models and sessions


async def test_the_models_are_our_names_and_the_real_one(client: aiohttp.ClientSession) -> None:
    async with client.get("/v1/models") as response:
        listed = await response.json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["hermes", "toy-1", "hermes-agent", "hermes:chat"]
    async with client.get("/v1/models/toy-1") as response:
        assert await response.json() == listed["data"][1]


async def test_a_name_with_a_slash_is_a_model_too(world: ApiHarness) -> None:
    client = await world.client(await world.api(model_name="house/hermes"))
    async with client.get("/v1/models/house/hermes") as response:
        assert (await response.json())["id"] == "house/hermes"
    status, body, _ = await chat(client, ask(model="house/hermes"))
    assert (status, body["model"]) == (200, "house/hermes")


async def test_sessions_are_listed_in_pages(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    for name in ("a", "b", "c"):
        world.desk.sessions[SessionId(name)] = a_session(name)
    async with client.get("/api/sessions?limit=2") as response:
        first = [session["id"] for session in (await response.json())["sessions"]]
    async with client.get("/api/sessions", params={"limit": 2, "after": first[-1]}) as response:
        rest = [session["id"] for session in (await response.json())["sessions"]]
    assert (first, rest) == (["c", "b"], ["a"])


async def test_one_session_is_shown_by_any_id_of_its_lineage(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    world.desk.sessions[SessionId("old")] = a_session("old", phase=Phase.ENDED, successor=SessionId("new"))
    world.desk.sessions[SessionId("new")] = a_session("new", parent=SessionId("old"))
    world.desk.transcripts[SessionId("new")] = []
    async with client.get("/api/sessions/old") as response:
        assert response.headers["X-Hermes-Session-Id"] == "new"
        view = await response.json()
    assert view["session"]["id"] == "new"
    assert view["lineage"] == ["old", "new"]
    assert view["why"] == "idle: new"
    async with client.get("/api/sessions/old/messages") as response:
        assert response.headers["X-Hermes-Session-Id"] == "new"
        assert await response.json() == {"session_id": "new", "messages": [], "has_more": False}


async def test_a_transcript_is_read_in_pages_or_from_its_end(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    for text in ("one", "two"):
        await chat(client, ask(text), **{"X-Hermes-Session-Id": "s"})

    async def contents(query: str) -> list[str]:
        async with client.get(f"/api/sessions/s/messages?{query}") as response:
            return [message["content"] for message in (await response.json())["messages"]]

    assert await contents("") == ["one", "Hello, world", "two", "Hello, world"]
    assert await contents("limit=1") == ["Hello, world"]
    assert await contents("after=-1&limit=1") == ["one"]
    assert await contents("after=1&limit=1") == ["two"]
    assert await contents("after=3") == []


async def test_a_page_of_a_transcript_says_whether_there_is_more(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    for text in ("one", "two"):
        await chat(client, ask(text), **{"X-Hermes-Session-Id": "s"})

    async def has_more(query: str) -> bool:
        async with client.get(f"/api/sessions/s/messages?{query}") as response:
            said: bool = (await response.json())["has_more"]
            return said

    assert [await has_more(query) for query in ("", "limit=4", "after=-1", "after=2", "after=3")] == [False] * 5
    assert [await has_more(query) for query in ("limit=3", "after=-1&limit=3", "after=1&limit=1")] == [True] * 3


async def test_a_deleted_session_is_gone(client: aiohttp.ClientSession) -> None:
    await chat(client, **{"X-Hermes-Session-Id": "s"})
    async with client.delete("/api/sessions/s") as response:
        assert (response.status, await response.json()) == (200, {"id": "s", "deleted": True})
    async with client.get("/api/sessions/s") as response:
        assert response.status == 404


# ---------------------------------------------------------------- the description


async def test_openapi_matches_the_routes(world: ApiHarness) -> None:
    service = Service(
        sessions=world.desk,
        make_commands=cache(world.commands),
        hub=world.hub,
        operations=world.operations,
        processes=world.processes,
        new_turn_id=lambda: pytest.fail("no turn"),
        clock=lambda: 0.0,
        lifetime=Lifetime(),
    )
    routes = {(route.method.lower(), route.path.replace("{id:.+}", "{id}")) for route in api_routes(service)}
    described = {(method, path) for path, methods in document("1")["paths"].items() for method in methods}
    assert routes == described - {("get", "/"), ("get", "/metrics")}  # the server adds these two


def test_examples_of_the_description_are_valid() -> None:
    for each in OPERATIONS:
        if isinstance(each.body, type) and each.example is not None:
            decode(each.example, each.body)


def test_every_operation_has_a_name_of_its_own() -> None:
    operations = [operation for methods in document("1")["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)


def test_openapi_describes_stream_events_and_where_tools_run() -> None:
    described = document("1")
    answer = described["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]
    told = answer["content"]["text/event-stream"]["schema"]["description"]
    places = [
        told.index(part)
        for part in ("role chunk", "deltas", "finish chunk", "hermes.session", "usage chunk", "[DONE]", '{"error"')
    ]
    assert places == sorted(places)
    assert "run on the server" in described["info"]["description"]


async def test_the_description_is_served_whole(client: aiohttp.ClientSession) -> None:
    async with client.get("/openapi.json") as response:
        served = await response.json()
    assert served == document("1.2.3")
    assert served["openapi"] == "3.1.0"
    assert not (_references(served) - {f"#/components/schemas/{name}" for name in served["components"]["schemas"]})


def _references(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(_references, value.values()))
    if isinstance(value, list):
        return set().union(*map(_references, value))
    return set()


async def test_a_session_has_exactly_the_described_fields(client: aiohttp.ClientSession) -> None:
    await chat(client)
    async with client.get("/api/sessions") as response:
        (session,) = (await response.json())["sessions"]
    described = document("1")["components"]["schemas"]["Session"]
    assert set(session) == set(described["properties"]) == set(described["required"])


async def test_a_browser_gets_a_page_without_a_key(world: ApiHarness, api: ApiServer) -> None:
    stranger = await world.client(api, Authorization="")
    async with stranger.get("/", headers={"Host": "evil.example"}) as response:
        text = await response.text()
        assert (response.status, response.content_type) == (200, "text/html")
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "<code>hermes chat</code>" in text

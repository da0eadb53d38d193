"""Slash commands over HTTP, on real sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from hermes.adapters.http.field import encode
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.server import ApiServer, ApiSettings
from hermes.adapters.openai_api.turns.turn_wait import only_once
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.services.commands.registry import COMMANDS
from hermes.services.keys import KeyService
from tests.services.commands.harness import CommandHarness, world
from tests.support.fakes import FakeOperations, process_view

KEY = "a-key-for-tests"


@asynccontextmanager
async def served() -> AsyncIterator[tuple[CommandHarness, aiohttp.ClientSession]]:
    async with world() as here:
        service = Service(
            sessions=here.desk,
            make_commands=lambda: here.commands,
            hub=here.hub,
            operations=FakeOperations(),
            processes=here.processes,
            new_turn_id=here.new_turn_id,
            clock=lambda: here.now,
        )
        settings = ApiSettings(host="127.0.0.1", port=0, key=KEY, max_body_bytes=10_000)
        server = ApiServer(settings, service, KeyService(here.desk, service.clock))
        await server.start()
        try:
            headers = {"Authorization": f"Bearer {KEY}"}
            async with aiohttp.ClientSession(server.address, headers=headers) as client:
                yield here, client
        finally:
            await server.stop(0)


async def give(client: aiohttp.ClientSession, session: str, body: Any) -> tuple[int, Any, dict[str, str]]:
    async with client.post(f"/api/sessions/{session}/commands", json=body) as response:
        return response.status, await response.json(), dict(response.headers)


async def test_the_commands_are_listed() -> None:
    async with served() as (_, client), client.get("/api/commands") as response:
        listed = (await response.json())["commands"]
        assert [command["name"] for command in listed] == [command.name for command in COMMANDS]


async def test_a_command_is_carried_out_in_its_session() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        await here.talk("b", "s")
        status, body, headers = await give(client, "s", {"text": "/undo"})
        assert (status, body["ok"], body["session_id"], body["turn_id"]) == (200, True, "s", None)
        assert headers["X-Hermes-Session-Id"] == "s"
        assert await here.transcript("s") == ["a", "about a"]


async def test_a_command_that_starts_a_turn_tells_its_id() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        _, body, headers = await give(client, "s", {"text": "/retry"})
        assert body["turn_id"] == headers["X-Hermes-Turn-Id"] == (await here.next_thought()).job.turn


async def test_a_command_that_moves_the_conversation_tells_where_to() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        _, body, headers = await give(client, "s", {"text": "/new Rome", "user": "ann"})
        assert body["session_id"] == headers["X-Hermes-Session-Id"] != "s"
        assert (await here.session("s")).owner == "ann"
        _, body, _ = await give(client, "s", {"text": "/sessions"})
        assert body["rows"][1][-1] == "s"


async def test_new_asks_over_the_command_route() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        here.processes.known = {"proc_a": process_view("proc_a")}
        _, body, _ = await give(client, "s", {"text": "/new"})
        assert (body["session_id"], body["choices"]) == ("s", ["yes", "no"])
        _, body, _ = await give(client, "s", {"text": "/new yes"})
        assert body["session_id"] != "s"
        assert body["choices"] == []


async def test_what_cannot_be_done_is_an_answer_that_says_so() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        status, body, _ = await give(client, "s", {"text": "/undo 9"})
        assert (status, body["ok"]) == (200, False)
        status, body, _ = await give(client, "s", {"text": "/udno"})
        assert (status, body["ok"]) == (200, False)
        assert "/undo" in body["text"]


async def test_text_that_is_not_a_command_is_an_openai_error() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        for body, code in (
            ({"text": "hello"}, "invalid_value"),
            ({"text": "/etc/passwd"}, "invalid_value"),
            ({"text": 7}, "invalid_value"),
            ({}, "invalid_value"),
            ([], "invalid_value"),
            ({"text": "/new", "user": 7}, "invalid_value"),
        ):
            status, answer, _ = await give(client, "s", body)
            assert (status, answer["error"]["code"], answer["error"]["type"]) == (400, code, "invalid_request_error")
        status, answer, _ = await give(client, "gone", {"text": "/status"})
        assert (status, answer["error"]["code"]) == (404, "session_not_found")
        status, answer, _ = await give(client, "s", {"text": "/title " + "x" * 20_000})
        assert status == 413


async def test_half_a_character_does_no_harm() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        async with client.post(
            "/api/sessions/s/commands",
            data=b'{"text": "/title a\\ud800b"}',
            headers={"Content-Type": "application/json"},
        ) as response:
            assert response.status in (200, 400)
        assert (await here.session("s")).preferences.title in ("", "a?b")


async def test_command_with_idempotency_key_runs_once_and_is_traced() -> None:
    async with served() as (here, client):
        for said in "abc":
            await here.talk(said, "s")
        keyed = {"Idempotency-Key": "k1"}
        for replay in (None, "true"):
            async with client.post("/api/sessions/s/commands", json={"text": "/undo"}, headers=keyed) as response:
                assert response.headers.get("X-Hermes-Idempotent-Replay") == replay
        assert await here.transcript("s") == ["a", "about a", "b", "about b"]
        async with client.post("/api/sessions/s/commands", json={"text": "/undo 2"}, headers=keyed) as response:
            assert response.status == 422
        assert len(await here.desk.trace("k1", 5)) == 1


async def test_command_in_chat_request_runs_once_per_key() -> None:
    async with served() as (here, client):
        for said in "abc":
            await here.talk(said, "s")
        body = {"model": "hermes", "messages": [{"role": "user", "content": "/undo"}]}
        keyed = {"Idempotency-Key": "k1", "X-Hermes-Session-Id": "s"}
        replies: list[str] = []
        for _ in range(2):
            async with client.post("/v1/chat/completions", json=body, headers=keyed) as response:
                replies.append((await response.json())["choices"][0]["message"]["content"])
        assert replies[0] == replies[1]
        assert await here.transcript("s") == ["a", "about a", "b", "about b"]


async def test_repeated_command_gets_its_first_reply() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        for text, ok in (("/undo 7", False), ("/title here", True)):
            answers: list[dict[str, object]] = []
            for _ in range(2):
                keyed = {"Idempotency-Key": text}
                async with client.post("/api/sessions/s/commands", json={"text": text}, headers=keyed) as response:
                    answers.append(await response.json())
            assert answers[0]["ok"] is ok
            assert (answers[1]["ok"], answers[1]["text"]) == (ok, answers[0]["text"])


async def test_command_interrupted_by_a_crash_is_not_reported_as_done() -> None:
    async with served() as (here, client):
        await here.talk("a", "s")
        said = EncodedMessage(encode({"text": "/undo"}, "text"))
        came = Submission(turn=TurnId("t"), messages=(said,), source=Source(platform="api"), session=SessionId("s"))
        await here.desk.note_command(only_once(came, "k1", "s"))
        keyed = {"Idempotency-Key": "k1"}
        async with client.post("/api/sessions/s/commands", json={"text": "/undo"}, headers=keyed) as response:
            answer = await response.json()
        assert answer["ok"] is False
        assert "interrupted while running it" in answer["text"]
        assert await here.transcript("s") == ["a", "about a"]

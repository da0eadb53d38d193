"""Routes and headers that clients of hermes-agent use, and the older completions."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from hermes.adapters.http.schema import decode
from hermes.adapters.openai_api.provider_api import PATHS
from hermes.adapters.openai_api.server import ApiServer
from hermes.adapters.openai_api.text_completion import TextCompletionRequest
from hermes.domain.errors import BadInputError
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.adapters.conftest import ApiHarness, ask, chat, events


async def get(client: aiohttp.ClientSession, path: str) -> Any:
    async with client.get(path) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_health_needs_no_key(api: ApiServer) -> None:
    async with aiohttp.ClientSession(api.address) as stranger:
        assert (await get(stranger, "/v1/health"))["status"] == "ok"
        async with stranger.get("/health/detailed") as response:
            assert response.status == 401


async def test_capabilities_list_every_described_route(client: aiohttp.ClientSession) -> None:
    known = await get(client, "/v1/capabilities")
    described = (await get(client, "/openapi.json"))["paths"]
    assert {each["path"] for each in known["endpoints"].values()} == set(described)
    assert known["features"]["session_chat"] is True


async def test_toolsets_tell_what_is_enabled(world: ApiHarness) -> None:
    client = await world.client(await world.api(tools=("web", "read_file")))
    found = {each["name"]: each["enabled"] for each in (await get(client, "/v1/toolsets"))["data"]}
    assert (found["web"], found["file"], found["terminal"]) == (True, True, False)


async def test_message_in_a_session_is_answered(client: aiohttp.ClientSession) -> None:
    await chat(client, ask(), **{"X-Hermes-Session-Id": "s"})
    async with client.post("/api/sessions/s/chat", json={"message": "Hi"}) as response:
        body = await response.json()
        assert response.headers["X-Hermes-Completed"] == "true"
    assert (body["session_id"], body["message"]["content"]) == ("s", "Hello, world")
    async with client.post("/api/sessions/unknown/chat", json={"message": "Hi"}) as response:
        assert response.status == 404


async def test_message_in_a_session_is_streamed(client: aiohttp.ClientSession) -> None:
    await chat(client, ask(), **{"X-Hermes-Session-Id": "s"})
    async with client.post("/api/sessions/s/chat/stream", json={"message": "Hi"}) as response:
        received = await events(response)
    names = [event.event for event in received]
    assert (names[0], names[-3:]) == ("run.started", ["assistant.completed", "run.completed", "done"])
    assert "".join(each.data["delta"] for each in received if each.event == "assistant.delta") == "Hello, world"
    assert [each.data["seq"] for each in received] == list(range(1, len(received) + 1))


async def test_prompt_is_completed(client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/completions", json={"model": "hermes", "prompt": ["Hi"]}) as response:
        body = await response.json()
    assert (body["object"], body["choices"][0]["text"]) == ("text_completion", "Hello, world")
    async with client.post("/v1/completions", json={"prompt": "Hi", "stream": True}) as response:
        received = await events(response)
    assert received[-1].data == "[DONE]"
    texts = [event.data["choices"][0]["text"] for event in received[:-1]]
    assert "".join(texts) == "Hello, world"


@pytest.mark.parametrize("prompt", [None, 1, [], ["a", "b"], [1]])
def test_prompt_must_be_one_text(prompt: Any) -> None:
    with pytest.raises(BadInputError):
        decode({"prompt": prompt}, TextCompletionRequest)


async def test_failed_turn_names_its_error_in_a_header(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.failure = Failure(kind=FailureKind.AUTH, message="no")
    status, _, headers = await chat(client)
    assert (status, headers["X-Hermes-Completed"], headers["X-Hermes-Error"]) == (502, "false", "upstream_auth")


@pytest.mark.parametrize("path", PATHS)
async def test_provider_services_without_a_provider_have_a_clear_error(
    client: aiohttp.ClientSession, path: str
) -> None:
    async with client.post(path, json={}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (501, "not_offered")

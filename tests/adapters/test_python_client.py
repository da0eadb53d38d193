"""`hermes.client` against the API over sessions in memory: answers, retries and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.adapters.openai_api.server import ApiServer
from hermes.client import ApiError, ConnectionFailedError, HermesClient
from hermes.domain.errors import BusyError, UnknownSessionError
from tests.adapters.conftest import KEY, ApiHarness


class Pauses(list[float]):
    async def __call__(self, pause_s: float) -> None:
        self.append(pause_s)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def hermes(api: ApiServer, pauses: Pauses) -> AsyncIterator[HermesClient]:
    async with HermesClient(api.address, KEY, sleep=pauses) as client:
        yield client


async def test_message_is_answered(hermes: HermesClient) -> None:
    answer = await hermes.chat("Hi", session_id="s")
    assert (answer.text, answer.session_id, answer.finish_reason) == ("Hello, world", "s", "stop")


async def test_answer_is_streamed(hermes: HermesClient) -> None:
    parts = [part async for part in hermes.stream("Hi", session_id="s")]
    assert "".join(part.text for part in parts) == "Hello, world"
    assert parts[-1].session_id == "s"


async def test_refusal_has_status_and_code(hermes: HermesClient) -> None:
    with pytest.raises(ApiError) as refused:
        await hermes.session("unknown")
    assert (refused.value.status, refused.value.code) == (404, "session_not_found")


async def test_busy_server_is_tried_again(world: ApiHarness, hermes: HermesClient, pauses: Pauses) -> None:
    world.desk.refusal = BusyError("full")
    with pytest.raises(ApiError) as refused:
        await hermes.chat("Hi")
    assert (refused.value.status, len(pauses)) == (429, 3)
    world.desk.refusal = None
    assert (await hermes.chat("Hi")).text == "Hello, world"


async def test_other_refusals_are_not_tried_again(world: ApiHarness, hermes: HermesClient, pauses: Pauses) -> None:
    world.desk.refusal = UnknownSessionError("no")
    with pytest.raises(ApiError):
        await hermes.chat("Hi")
    assert pauses == []


async def test_message_is_repeated_under_its_key(world: ApiHarness, api: ApiServer, pauses: Pauses) -> None:
    async with HermesClient(api.address, KEY, sleep=pauses, new_key=lambda: "one") as client:
        first, second = [await client.chat("Hi") for _ in range(2)]
    assert first.turn_id == second.turn_id
    assert len(world.desk.submitted) == 1


async def test_unreachable_server_is_an_error_after_the_retries(pauses: Pauses) -> None:
    async with HermesClient("http://127.0.0.1:1", KEY, sleep=pauses) as client:
        with pytest.raises(ConnectionFailedError):
            await client.chat("Hi")
    assert len(pauses) == 3

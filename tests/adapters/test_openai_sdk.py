"""The real client library, plain and streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest

from hermes.adapters.openai_api.server import ApiServer
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.adapters.conftest import KEY, ApiHarness

MESSAGES: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
SESSION = {"X-Hermes-Session-Id": "from-the-sdk"}


@pytest.fixture
async def sdk(api: ApiServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{api.address}/v1", api_key=KEY) as client:
        yield client


async def test_a_plain_answer(sdk: openai.AsyncOpenAI) -> None:
    raw = await sdk.chat.completions.with_raw_response.create(
        model="hermes", messages=MESSAGES, extra_headers=SESSION
    )
    completion = raw.parse()
    assert raw.headers["X-Hermes-Session-Id"] == "from-the-sdk"
    assert completion.choices[0].message.content == "Hello, world"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 10
    assert completion.model_extra is not None
    assert completion.model_extra["hermes"]["session_id"] == "from-the-sdk"


@pytest.mark.parametrize("usage", [False, True])
async def test_a_stream_read_in_the_simplest_way(sdk: openai.AsyncOpenAI, usage: bool) -> None:
    """`chunk.choices[0]` without a look, as many programs do: only the usage chunk, if asked for, has no choice."""
    options: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": usage}
    stream = await sdk.chat.completions.create(
        model="hermes", messages=MESSAGES, stream=True, stream_options=options, extra_headers=SESSION
    )
    text, finish, sessions = "", None, set()
    async for chunk in stream:
        if usage and not chunk.choices:
            continue
        text += chunk.choices[0].delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
        if hermes := (chunk.model_extra or {}).get("hermes"):
            sessions.add(hermes["session_id"])
    assert (text, finish, sessions) == ("Hello, world", "stop", {"from-the-sdk"})


async def test_text_summed_over_chunks_occurs_once(sdk: openai.AsyncOpenAI) -> None:
    stream = await sdk.chat.completions.create(
        model="hermes", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert sum(chunk.usage.total_tokens for chunk in chunks if chunk.usage) == 10
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert list(filter(None, reasons)) == ["stop"]
    assert chunks[-1].model_extra is not None
    assert "session_id" in chunks[-1].model_extra["hermes"]


@pytest.mark.parametrize("usage", [False, True])
async def test_a_stream_read_through_the_librarys_own_accumulator(sdk: openai.AsyncOpenAI, usage: bool) -> None:
    options: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": usage}
    async with sdk.chat.completions.stream(model="hermes", messages=MESSAGES, stream_options=options) as stream:
        kinds = [event.type async for event in stream]
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "Hello, world"
    assert completion.choices[0].finish_reason == "stop"
    assert kinds.count("content.done") == 1
    assert (completion.usage is not None and completion.usage.total_tokens == 10) == usage


async def test_a_failed_turn_raises_and_is_not_sent_a_second_time(world: ApiHarness, sdk: openai.AsyncOpenAI) -> None:
    world.desk.failure = Failure(kind=FailureKind.CONNECTION, message="the model cannot be reached")
    with pytest.raises(openai.InternalServerError, match="cannot be reached"):
        await sdk.chat.completions.create(model="hermes", messages=MESSAGES)
    assert len(world.desk.submitted) == 1
    stream = await sdk.chat.completions.create(model="hermes", messages=MESSAGES, stream=True)
    with pytest.raises(openai.APIError, match="cannot be reached"):
        async for _ in stream:
            pass
    assert len(world.desk.submitted) == 2


async def test_errors_arrive_as_the_librarys_own(world: ApiHarness, sdk: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as not_found:
        await sdk.chat.completions.create(model="gpt-17", messages=MESSAGES)
    assert not_found.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        await sdk.chat.completions.create(model="hermes", messages=MESSAGES, max_tokens=-1)
    assert bad.value.param == "max_tokens"
    with pytest.raises(openai.AuthenticationError):
        await sdk.with_options(api_key="wrong").models.list()


async def test_the_list_of_models(sdk: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in sdk.models.list()] == ["hermes", "toy-1", "hermes-agent", "hermes:chat"]
    assert (await sdk.models.retrieve("toy-1")).owned_by == "hermes"

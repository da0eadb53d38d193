"""A turn that does more than talk, over chat completions: tools, questions, several replies, a session that moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import openai
import pytest

from hermes.adapters.openai_api.server import ApiServer
from hermes.adapters.openai_api.turns.stream_cursor import STARTS_AGAIN
from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    CallProgress,
    Event,
    Notice,
    SessionMoved,
    TextDelta,
    TextReset,
    TurnAnswered,
)
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.usage import Usage
from tests.adapters.a_call import a_call, waiting
from tests.adapters.conftest import KEY, ApiHarness, Sse, ask, chat, iterate, text_of
from tests.support.fakes import a_session
from tests.support.waiting import until

EVENTS = {"X-Hermes-Events": "1"}
S, T = SessionId("20270115_080000_00000000"), TurnId("turn-1")
HERE: dict[str, Any] = {"session": S, "turn": T}
CALL: dict[str, Any] = {**HERE, "call": "c1"}
BEGAN = CallBegan(**CALL, name="terminal", summary="ls")
ENDED = CallEnded(**CALL, name="terminal", outcome=CallOutcome.OK, took_s=0.25, summary="ls")
ASKED = CallAsked(**CALL, name="terminal", question="rm -rf x", choices=("once", "deny"), approval=True, summary="rm")
ANSWERED = CallAnswered(**CALL, name="terminal", answer="once", by="api", summary="rm")


def answered(text: str, session: SessionId = S) -> TurnAnswered:
    usage = Usage(prompt_tokens=7, completion_tokens=3)
    return TurnAnswered(session=session, turn=T, text=text, model="toy-1", finish_reason="stop", usage=usage)


def says(text: str) -> TextDelta:
    return TextDelta(**HERE, text=text)


@pytest.fixture
def held(world: ApiHarness) -> ApiHarness:
    """Turns say nothing by themselves: the test tells what happens in them."""
    world.desk.words = ()
    world.desk.hold()
    return world


async def streamed(world: ApiHarness, client: aiohttp.ClientSession, *happening: Event) -> list[Sse]:
    """As a client that asked for our events, whose stream stays open while a person is asked."""
    async with client.post("/v1/chat/completions", json=ask(stream=True), headers=EVENTS) as response:
        incoming = iterate(response)
        received = [await anext(incoming)]
        for event in happening:
            world.hub.publish(event)
        return received + [event async for event in incoming]


def named(received: list[Sse]) -> list[tuple[str, Any]]:
    return [(sse.event, sse.data["hermes"]) for sse in received if sse.event.startswith("hermes.")]


async def test_tools_questions_and_notices_are_named_events_without_text(
    held: ApiHarness, client: aiohttp.ClientSession
) -> None:
    progress = CallProgress(**CALL, text="half")
    notice = Notice(session=S, turn=T, text="it takes long")
    received = await streamed(
        held, client, ASKED, ANSWERED, BEGAN, progress, ENDED, notice, says("done"), answered("done")
    )
    ids = {"session_id": S, "turn_id": T}
    call = {**ids, "call_id": "c1"}
    assert named(received) == [
        (
            "hermes.approval.request",
            {**call, "name": "terminal", "summary": "rm", "question": "rm -rf x", "choices": ["once", "deny"]},
        ),
        ("hermes.answered", {**call, "name": "terminal", "summary": "rm", "answer": "once", "by": "api"}),
        ("hermes.tool.started", {**call, "name": "terminal", "summary": "ls"}),
        ("hermes.tool.progress", {**call, "text": "half"}),
        ("hermes.tool.completed", {**call, "name": "terminal", "summary": "ls", "outcome": "ok", "took_s": 0.25}),
        ("hermes.notice", {**ids, "text": "it takes long"}),
        ("hermes.session", ids),
    ]
    for sse in received:
        if sse.event.startswith("hermes."):
            assert sse.data["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}]
    assert text_of(received) == "done"


async def test_a_question_of_the_model_has_its_own_name(held: ApiHarness, client: aiohttp.ClientSession) -> None:
    question = replace(ASKED, approval=False, question="Which?")
    received = await streamed(held, client, question, answered("done"))
    assert named(received)[0][0] == "hermes.question"


async def test_text_before_tool_calls_is_streamed_and_plain_answer_is_the_last_text(
    held: ApiHarness, client: aiohttp.ClientSession
) -> None:
    happening = (says("Let me "), says("look."), BEGAN, ENDED, says("Found it."))
    received = await streamed(held, client, *happening, answered("Found it."))
    assert text_of(received) == "Let me look.\n\nFound it."
    assert received[-1].data == "[DONE]"
    plain = asyncio.create_task(chat(client))
    await until(lambda: len(held.desk.submitted) == 2)
    for event in (*happening, answered("Found it.")):
        held.hub.publish(replace(event, turn=TurnId("turn-2")))
    assert (await plain)[1]["choices"][0]["message"]["content"] == "Found it."


async def test_last_text_is_completed_from_the_journal(held: ApiHarness, client: aiohttp.ClientSession) -> None:
    received = await streamed(held, client, says("Let me look."), BEGAN, ENDED, answered("Found it."))
    assert text_of(received) == "Let me look.\n\nFound it."


async def test_repeated_identical_answer_is_streamed_without_a_break(
    held: ApiHarness, client: aiohttp.ClientSession
) -> None:
    happening = (says("One two"), TextReset(**HERE), says("One"), says(" two three"))
    received = await streamed(held, client, *happening, answered("One two three"))
    assert text_of(received) == "One two three"
    assert received[-1].data == "[DONE]"


@pytest.mark.parametrize("later", [(), (BEGAN, ENDED)], ids=["the last reply", "a reply before"])
async def test_repeated_different_answer_is_sent_whole(
    held: ApiHarness, client: aiohttp.ClientSession, later: tuple[Event, ...]
) -> None:
    happening = (says("One"), TextReset(**HERE), says("Something else"), *later)
    received = await streamed(held, client, *happening, answered("Something else"))
    assert text_of(received).startswith(f"One{STARTS_AGAIN}Something else")
    assert received[-1].data == "[DONE]"


async def test_moved_session_is_reported_by_event_and_final_chunk(
    held: ApiHarness, client: aiohttp.ClientSession
) -> None:
    new = SessionId("new")
    moved = SessionMoved(session=S, successor=new, reason="compression", turn=T)
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        assert response.headers["X-Hermes-Session-Id"] == S
        incoming = iterate(response)
        received = [await anext(incoming)]
        for event in (moved, answered("done", new)):
            held.hub.publish(event)
        received += [event async for event in incoming]
    sessions = [sse.data["session_id"] for sse in received if sse.event == "hermes.session"]
    assert sessions == ["new", "new"]
    assert received[-3].data["hermes"]["session_id"] == "new"
    plain = asyncio.create_task(chat(client))
    await until(lambda: len(held.desk.submitted) == 2)
    held.hub.publish(replace(answered("done", new), turn=TurnId("turn-2")))
    _, body, headers = await plain
    assert headers["X-Hermes-Session-Id"] == body["hermes"]["session_id"] == "new"


# ---------------------------------------------------------------- a plain request does not wait for a person


async def test_plain_answer_contains_the_question_and_leaves_the_turn_open(
    held: ApiHarness, client: aiohttp.ClientSession
) -> None:
    plain = asyncio.create_task(chat(client))
    await until(lambda: held.desk.submitted)
    held.hub.publish(ASKED)
    status, body, headers = await plain
    assert status == 200
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "stop"
    assert "rm -rf x" in choice["message"]["content"]
    assert choice["message"]["content"].endswith("Reply with yes (this once) or no.")
    assert body["hermes"]["pending"] == {
        "kind": "approval",
        "call_id": "c1",
        "question": "rm -rf x",
        "choices": ["once", "deny"],
        "session_id": S,
        "turn_id": T,
    }
    assert headers["X-Hermes-Turn-Id"] == T
    assert T not in held.desk.outcomes


async def test_missed_question_is_read_from_the_journal(world: ApiHarness) -> None:
    world.desk.hold()
    client = await world.client(await world.api(ping_s=0.02))
    plain = asyncio.create_task(chat(client))
    await until(lambda: S in world.desk.sessions)
    world.desk.sessions[S] = waiting(a_session(S), T, a_call(question="Which?", choices=("a", "b")))
    _, body, _ = await plain
    assert body["hermes"]["pending"]["kind"] == "question"
    assert "Reply with one of: a, b." in body["choices"][0]["message"]["content"]


async def test_repeated_request_gets_the_same_question(held: ApiHarness, client: aiohttp.ClientSession) -> None:
    key = {"Idempotency-Key": "k"}
    first = asyncio.create_task(chat(client, **key))
    await until(lambda: held.desk.submitted)
    held.hub.publish(ASKED)
    await first
    held.desk.sessions[S] = waiting(a_session(S), T)
    _, body, headers = await chat(client, **key)
    assert body["hermes"]["pending"]["call_id"] == "c1"
    assert headers["X-Hermes-Idempotent-Replay"] == "true"


async def test_a_stream_with_our_events_gets_a_question_once_and_stays_open(world: ApiHarness) -> None:
    world.desk.words = ()
    world.desk.hold()
    client = await world.client(await world.api(ping_s=0.02))
    async with client.post("/v1/chat/completions", json=ask(stream=True), headers=EVENTS) as response:
        incoming = iterate(response)
        received = [await anext(incoming)]
        world.desk.sessions[S] = waiting(a_session(S), T)
        while received[-3:] != [Sse("comment", "ping")] * 3:
            received.append(await anext(incoming))
        assert [name for name, _ in named(received)] == ["hermes.approval.request"]
        world.desk.sessions[S] = a_session(S)
        world.desk.unheld.set()
        received += [event async for event in incoming]
    assert received[-1].data == "[DONE]"


async def test_a_question_ends_the_stream_of_an_ordinary_client(
    held: ApiHarness, client: aiohttp.ClientSession
) -> None:
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        incoming = iterate(response)
        received = [await anext(incoming)]
        held.hub.publish(says("I need this."))
        held.hub.publish(ASKED)
        received += [event async for event in incoming]
    assert text_of(received) == "I need this.\n\nrm -rf x\n\nReply with yes (this once) or no."
    finish = received[-3].data
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert finish["hermes"]["pending"]["call_id"] == "c1"
    assert received[-1].data == "[DONE]"


# ---------------------------------------------------------------- the real client library


@pytest.fixture
async def sdk(api: ApiServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{api.address}/v1", api_key=KEY) as client:
        yield client


async def test_the_client_library_passes_over_events_it_does_not_know(
    held: ApiHarness, sdk: openai.AsyncOpenAI
) -> None:
    stream = await sdk.chat.completions.create(
        model="hermes", messages=[{"role": "user", "content": "Hi"}], stream=True, extra_headers=EVENTS
    )
    for event in (ASKED, ANSWERED, BEGAN, ENDED, says("done"), answered("done")):
        held.hub.publish(event)
    text = ""
    async for chunk in stream:
        text += chunk.choices[0].delta.content or ""
    assert text == "done"

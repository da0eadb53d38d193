"""One message in, one durable turn, one answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import aiohttp
import pytest

from hermes.adapters.openai_api.turns.stream_cursor import STARTS_AGAIN
from hermes.domain.errors import (
    BadInputError,
    BusyError,
    HermesError,
    OutcomeUnknownError,
    SessionParkedError,
    SetAsideError,
    StoppingError,
    StorageFailedError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.events import TextDelta, TurnBegan
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.ports.sessions import Sessions
from tests.adapters.conftest import ApiHarness, Sse, ask, chat, events, iterate, logged, read_text, text_of
from tests.support.fakes import FakeSessions, a_session
from tests.support.waiting import until


async def stream(client: aiohttp.ClientSession, body: Any = None, **headers: str) -> list[Sse]:
    body = ask(**(body or {}), stream=True)
    async with client.post("/v1/chat/completions", json=body, headers=headers) as response:
        assert response.status == 200
        return await events(response)


# ---------------------------------------------------------------- the plain answer


async def test_a_plain_answer_has_the_shape_openai_clients_expect(client: aiohttp.ClientSession) -> None:
    status, body, headers = await chat(client)
    assert status == 200
    assert body == {
        "id": "chatcmpl-turn-1",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": "hermes",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello, world", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        "hermes": {"session_id": "20270115_080000_00000000", "turn_id": "turn-1"},
    }
    assert headers["X-Hermes-Session-Id"] == "20270115_080000_00000000"
    assert headers["X-Hermes-Turn-Id"] == "turn-1"


async def test_notice_of_the_session_service_is_in_the_answer(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    world.desk.notice = "a fresh session: the old one was suspended"
    _, body, _ = await chat(client)
    assert body["hermes"]["notice"] == "a fresh session: the old one was suspended"


OTHERS = "ignored: the stored session is the history."
TOOLS = "Tools of these types were ignored: web_search."


@pytest.mark.parametrize(
    ("fields", "session", "notice"),
    [
        ({"earlier": 3}, True, f"3 earlier messages of this request were {OTHERS}"),
        ({"earlier": 1}, True, f"1 earlier message of this request was {OTHERS}"),
        ({"earlier": 3}, False, None),
        ({"tools": [{"type": "web_search"}]}, False, TOOLS),
        ({"tools": []}, True, None),
        (
            {"earlier": 1, "tools": [{"type": "web_search"}]},
            True,
            f"1 earlier message of this request was {OTHERS} {TOOLS}",
        ),
    ],
)
async def test_what_was_not_taken_is_said(
    world: ApiHarness, client: aiohttp.ClientSession, fields: dict[str, Any], session: bool, notice: str | None
) -> None:
    messages = [{"role": "user", "content": "Hi"}] * (fields.pop("earlier", 0) + 1)
    headers = {"X-Hermes-Session-Id": "s"} if session else {}
    fields = {**fields, "messages": messages}
    _, body, _ = await chat(client, ask(**fields), **headers)
    assert body["hermes"].get("notice") == notice
    finish = (await stream(client, fields, **headers))[-3]
    assert finish.data["hermes"].get("notice") == notice
    world.desk.notice = "This is a fresh one."
    _, body, _ = await chat(client, ask(**fields), **headers)
    assert body["hermes"]["notice"] == " ".join(filter(None, ["This is a fresh one.", notice]))


async def test_the_answer_names_the_model_as_the_request_did(client: aiohttp.ClientSession) -> None:
    _, body, _ = await chat(client, ask(model="toy-1"))
    assert body["model"] == "toy-1"
    assert {event.data["model"] for event in (await stream(client, {"model": "toy-1"}))[:-1]} == {"toy-1"}


async def test_without_a_session_the_requests_messages_are_the_history(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "ping", "name": "Ann"},
        {"role": "assistant", "tool_calls": [_call()], "refusal": None},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"role": "user", "content": "größer ☃"},
    ]
    await chat(client, ask(messages=messages))
    (submission,) = world.desk.submitted
    assert submission.session is None
    assert submission.key is None
    assert submission.source.platform == "api"
    assert submission.instructions == b'{"role":"system","content":"be brief"}'
    assert [*submission.opening, *submission.messages] == [
        b'{"role":"user","content":"ping","name":"Ann"}',
        b'{"role":"assistant","content":null,"tool_calls":'
        + json.dumps([_call()], separators=(",", ":")).encode()
        + b"}",
        b'{"role":"tool","content":"a\\nb","tool_call_id":"c1"}',
        '{"role":"user","content":"größer ☃"}'.encode(),
    ]


def _call() -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}


async def test_with_a_session_only_the_new_message_is_taken(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    messages = [
        {"role": "system", "content": "x"},
        {"role": "user", "content": "old"},
        {"role": "user", "content": "new"},
    ]
    status, body, headers = await chat(client, ask(messages=messages), **{"X-Hermes-Session-Id": "my.own:id-1"})
    assert status == 200
    assert world.desk.submitted[0].session == "my.own:id-1"
    assert world.desk.submitted[0].messages == (b'{"role":"user","content":"new"}',)
    assert headers["X-Hermes-Session-Id"] == body["hermes"]["session_id"] == "my.own:id-1"


async def test_an_old_id_is_answered_with_the_live_one(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.sessions[SessionId("old")] = a_session("old", successor=SessionId("new"))
    world.desk.sessions[SessionId("new")] = a_session("new", parent=SessionId("old"))
    _, body, headers = await chat(client, **{"X-Hermes-Session-Id": "old"})
    assert headers["X-Hermes-Session-Id"] == body["hermes"]["session_id"] == "new"
    async with client.post(
        "/v1/chat/completions", json=ask(stream=True), headers={"X-Hermes-Session-Id": "old"}
    ) as response:
        assert response.headers["X-Hermes-Session-Id"] == "new"
        received = await events(response)
    assert received[-2].data["session_id"] == received[-2].data["hermes"]["session_id"] == "new"


async def test_valid_options_go_to_the_model_and_unknown_fields_nowhere(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    options: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 1,
        "max_tokens": 10,
        "seed": -1,
        "presence_penalty": 2,
        "response_format": {"type": "json_object"},
        "user": "ann",
    }
    status, _, _ = await chat(
        client,
        ask(**options, stop="END", tools=[{"type": "web_search"}], wish={"1": 2}, n=1, frequency_penalty=None),
    )
    assert status == 200
    assert json.loads(world.desk.submitted[0].options) == {**options, "stop": ["END"]}
    assert world.desk.submitted[0].source.user == "ann"


# ---------------------------------------------------------------- the stream


async def test_stream_starts_with_role_and_ends_with_session_and_done(
    client: aiohttp.ClientSession,
) -> None:
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Hermes-Session-Id"] == "20270115_080000_00000000"
        assert response.headers["X-Hermes-Turn-Id"] == "turn-1"
        received = await events(response)
    assert received[0].data["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert received[0].data["hermes"]["handling"] == "started"
    assert text_of(received) == "Hello, world"
    finish, session, done = received[-3:]
    assert finish.data["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert finish.data["hermes"] == {"session_id": "20270115_080000_00000000", "turn_id": "turn-1"}
    assert session.event == "hermes.session"
    assert session.data == {
        "id": "chatcmpl-turn-1",
        "object": "chat.completion.chunk",
        "created": 1_800_000_000,
        "model": "hermes",
        "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}],
        "hermes": finish.data["hermes"],
        "session_id": "20270115_080000_00000000",
        "turn_id": "turn-1",
    }
    assert done.data == "[DONE]"
    assert {event.data["id"] for event in received[:-1]} == {"chatcmpl-turn-1"}


async def test_requested_usage_is_the_last_chunk_without_choices(client: aiohttp.ClientSession) -> None:
    received = await stream(client, {"stream_options": {"include_usage": True}})
    finish, session, usage, done = received[-4:]
    assert (session.event, done.data) == ("hermes.session", "[DONE]")
    assert usage.data["choices"] == []
    assert usage.data["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert usage.data["hermes"] == finish.data["hermes"]
    assert [event for event in received[:-1] if "usage" in event.data] == [usage]


async def test_first_byte_is_sent_after_the_durable_submit(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.hold()
    world.desk.words = ()
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        assert (await anext(iterate(response))).data["choices"][0]["delta"]["role"] == "assistant"
        assert len(world.desk.submitted) == 1
        world.desk.unheld.set()
        assert (await events(response))[-1].data == "[DONE]"


async def test_a_silent_stream_is_kept_alive_by_comments(world: ApiHarness) -> None:
    client = await world.client(await world.api(ping_s=0.02))
    world.desk.hold()
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        incoming = iterate(response)
        while (event := await anext(incoming)).event != "comment":
            pass
        assert event.data == "ping"
        world.desk.unheld.set()
        assert [event async for event in incoming][-1].data == "[DONE]"


async def test_failed_turn_ends_the_stream_with_an_error_without_done(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    world.desk.failure = Failure(kind=FailureKind.OVERLOADED, message="the model is overloaded")
    received = await stream(client)
    assert received[-1] == Sse(
        "",
        {
            "error": {
                "message": "the model is overloaded. The message is stored: `/retry` in its session retries it; "
                "sending it again within a minute does the same.",
                "type": "server_error",
                "param": None,
                "code": "upstream_overloaded",
            }
        },
    )
    assert Sse("", "[DONE]") not in received


async def test_a_stream_that_lost_events_is_completed_from_the_journal(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    world.desk.hold()
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        incoming = iterate(response)
        received = await read_text(incoming, "Hello, world")
        (feed,) = world.hub.feeds
        feed.fall_behind()
        world.desk.words = (*world.desk.words, " and", " everybody")
        world.hub.publish(TextDelta(session=SessionId("s"), turn=TurnId("turn-1"), text=" lost"))
        world.desk.unheld.set()
        received += [event async for event in incoming]
    assert text_of(received) == "Hello, world and everybody"
    assert received[-1].data == "[DONE]"


async def test_missed_outcome_is_read_from_the_journal(world: ApiHarness) -> None:
    client = await world.client(await world.api(ping_s=0.02))
    world.desk.silent = True
    status, body, _ = await chat(client)
    assert status == 200
    assert body["choices"][0]["message"]["content"] == "Hello, world"


async def test_restarted_turn_never_mixes_two_answers(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    world.desk.hold()
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        incoming = iterate(response)
        received = await read_text(incoming, "Hello, world")
        world.hub.publish(TurnBegan(session=SessionId("s"), turn=TurnId("turn-1"), attempt=2))
        world.hub.publish(TextDelta(session=SessionId("s"), turn=TurnId("turn-1"), text="Something else"))
        world.desk.words = ("Something else",)
        world.desk.unheld.set()
        received += [event async for event in incoming]
    assert text_of(received) == f"Hello, world{STARTS_AGAIN}Something else"
    assert received[-1].data == "[DONE]"


async def test_instructions_apply_to_a_named_session_too(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    named = {"X-Hermes-Session-Id": "s"}
    _, body, _ = await chat(client, ask(messages=messages), **named)
    await chat(client, ask(messages=messages[1:]), **named)
    await chat(client, ask(messages=messages[1:]))
    first, second, third = world.desk.submitted
    assert [json.loads(message)["role"] for message in first.messages] == ["user"]
    assert json.loads(first.instructions or b"") == messages[0]
    assert (second.instructions, third.instructions) == (None, b""), "the session keeps them; a history is complete"
    assert "notice" not in body["hermes"]


@pytest.mark.parametrize("name", ["hermes", "hermes-agent", "default"])
async def test_our_own_names_are_taken_as_model(client: aiohttp.ClientSession, name: str) -> None:
    status, body, _ = await chat(client, ask(model=name))
    assert (status, body["model"]) == (200, name)


# ---------------------------------------------------------------- once only


async def test_repeated_idempotency_key_returns_the_stored_answer(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    key = {"Idempotency-Key": "abc 123"}
    _, first, headers = await chat(client, **key)
    assert "X-Hermes-Idempotent-Replay" not in headers
    status, second, headers = await chat(client, **key)
    assert status == 200
    assert second["id"] == first["id"]
    assert second["choices"] == first["choices"]
    assert headers["X-Hermes-Idempotent-Replay"] == "true"
    assert text_of(await stream(client, **key)) == "Hello, world"
    assert len(world.desk.submitted) == 1
    assert world.desk.submitted[0].inbound == f"api:{hashlib.sha256(b'abc 123').hexdigest()}"


async def test_a_repeated_request_waits_for_the_turn_that_runs(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    world.desk.hold()
    key = {"Idempotency-Key": "k"}
    first = asyncio.create_task(chat(client, **key))
    await until(lambda: world.desk.submitted)
    second = asyncio.create_task(chat(client, **key))
    await until(lambda: len(world.hub.feeds) == 2)
    world.desk.unheld.set()
    assert (await first)[1]["id"] == (await second)[1]["id"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (ask("something else"), {}),
        (ask(temperature=1), {}),
        (ask(), {"X-Hermes-Session-Id": "another"}),
    ],
    ids=["another text", "another option", "another session"],
)
async def test_another_request_under_the_same_key_is_refused(
    world: ApiHarness, client: aiohttp.ClientSession, body: object, headers: dict[str, str]
) -> None:
    await chat(client, **{"Idempotency-Key": "k"})
    status, answer, _ = await chat(client, body, **{"Idempotency-Key": "k"}, **headers)
    assert status == 422
    assert answer["error"]["code"] == "idempotency_mismatch"
    assert len(world.desk.submitted) == 1


# ---------------------------------------------------------------- leaving


async def leave_during_a_turn(
    world: ApiHarness,
    client: aiohttp.ClientSession,
    *,
    streamed: bool,
    path: str = "/v1/chat/completions",
    **headers: str,
) -> None:
    world.desk.hold()
    body = {"input": "Hi", "stream": streamed} if path == "/v1/responses" else ask(stream=streamed)

    async def post() -> None:
        async with client.post(path, json=body, headers=headers) as response:
            await response.read()

    request = asyncio.create_task(post())
    await until(lambda: world.desk.submitted)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_client_that_leaves_does_not_end_its_turn(
    world: ApiHarness, client: aiohttp.ClientSession, streamed: bool
) -> None:
    await leave_during_a_turn(world, client, streamed=streamed)
    assert world.desk.stopped == []
    world.desk.unheld.set()
    await until(lambda: world.desk.outcomes)
    await until(lambda: not world.hub.feeds)
    async with client.get("/api/sessions/20270115_080000_00000000/messages") as response:
        assert [message["content"] for message in (await response.json())["messages"]] == ["Hi", "Hello, world"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize(("streamed", "flag"), [(False, "1"), (True, "true")])
async def test_cancel_on_disconnect_stops_the_turn(
    world: ApiHarness, client: aiohttp.ClientSession, streamed: bool, flag: str, path: str
) -> None:
    header = {"X-Hermes-Cancel-On-Disconnect": flag}
    await leave_during_a_turn(world, client, streamed=streamed, path=path, **header)
    await until(lambda: world.desk.stopped)
    assert world.desk.stopped == [(SessionId("20270115_080000_00000000"), "its client left", TurnId("turn-1"))]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BadInputError("no", param="x"), (400, "invalid_value", None)),
        (BusyError("full"), (429, "busy", "1")),
        (StoppingError("down"), (503, "stopping", "5")),
        (SessionParkedError("parked"), (409, "session_parked", None)),
        (SetAsideError("aside"), (500, "dead_letter", None)),
        (UnknownSessionError("who"), (404, "session_not_found", None)),
        (OutcomeUnknownError("maybe"), (500, "outcome_unknown", None)),
        (StorageFullError("full"), (503, "storage_full", "30")),
        (StorageFailedError("io"), (500, "storage_error", None)),
        (HermesError("else"), (500, "internal_error", None)),
    ],
)
async def test_each_refusal_has_its_status(
    world: ApiHarness, client: aiohttp.ClientSession, error: HermesError, expected: tuple[int, str, str | None]
) -> None:
    world.desk.refusal = error
    got, body, headers = await chat(client)
    assert (got, body["error"]["code"], headers.get("Retry-After")) == expected
    assert body["error"]["message"] == str(error)
    assert set(body["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FailureKind.AUTH, (502, "upstream_auth", None)),
        (FailureKind.BILLING, (502, "upstream_billing", None)),
        (FailureKind.RATE_LIMIT, (429, "rate_limit_exceeded", "3")),
        (FailureKind.OVERLOADED, (503, "upstream_overloaded", "3")),
        (FailureKind.TIMEOUT, (504, "upstream_timeout", None)),
        (FailureKind.CONNECTION, (502, "upstream_connection", None)),
        (FailureKind.CONTEXT_OVERFLOW, (400, "context_length_exceeded", None)),
        (FailureKind.BAD_REQUEST, (400, "upstream_bad_request", None)),
        (FailureKind.MALFORMED_REPLY, (502, "upstream_malformed_reply", None)),
        (FailureKind.POLICY, (400, "content_filter", None)),
        (FailureKind.UNSUPPORTED, (501, "unsupported", None)),
        (FailureKind.CANCELLED, (409, "cancelled", None)),
        (FailureKind.INTERNAL, (500, "internal_error", None)),
    ],
)
async def test_each_way_a_turn_can_fail_has_its_status(
    world: ApiHarness, client: aiohttp.ClientSession, kind: FailureKind, expected: tuple[int, str, str | None]
) -> None:
    world.desk.failure = Failure(kind=kind, message="it failed", retry_after_s=2.5)
    got, body, headers = await chat(client)
    assert (got, body["error"]["code"], headers.get("Retry-After")) == expected
    assert body["error"]["message"].startswith("it failed")
    assert ("The message is stored" in body["error"]["message"]) == (expected[2] is not None)
    assert headers["X-Hermes-Session-Id"] == "20270115_080000_00000000"
    assert headers["X-Should-Retry"] == "false", "the message is stored: a client library must not send it again"


@pytest.mark.parametrize("streamed", [False, True])
async def test_unexpected_error_has_an_id_in_answer_and_log(
    world: ApiHarness, client: aiohttp.ClientSession, streamed: bool
) -> None:
    async def explode(*_args: object) -> None:
        raise ZeroDivisionError("the secret of the message")

    setattr(world.desk, "outcome" if streamed else "submit", explode)
    with logged() as lines:
        if streamed:
            async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
                world.hub.feeds[0].fall_behind()
                error = (await events(response))[-1].data["error"]
        else:
            status, body, _ = await chat(client)
            assert status == 500
            error = body["error"]
    assert error["code"] == "internal_error"
    error_id = error["message"].rstrip(".").split()[-1]
    assert f"error {error_id}" in "".join(lines)
    assert "ZeroDivisionError" in "".join(lines)
    assert "Traceback" not in str(error)
    assert "secret" not in str(error)


async def test_the_log_has_one_line_per_turn_with_ids_and_without_text(client: aiohttp.ClientSession) -> None:
    with logged() as lines:
        await chat(client, ask("very private"))
    assert lines == ["DEBUG api: turn turn-1 of session 20270115_080000_00000000 was answered\n"]


@pytest.mark.parametrize("failure", [None, Failure(kind=FailureKind.RATE_LIMIT, message="slow down.")])
async def test_a_replayed_turn_is_not_logged_as_a_second_end(
    world: ApiHarness, client: aiohttp.ClientSession, failure: Failure | None
) -> None:
    world.desk.failure = failure
    with logged() as lines:
        answers = [await chat(client, **{"Idempotency-Key": "k"}) for _ in range(2)]
    ends = [line.partition(" api: turn turn-1 of session 20270115_080000_00000000 ")[2] for line in lines]
    first = "failed: rate_limit\n" if failure else "was answered\n"
    assert ends == [first, "was replayed for a repeated Idempotency-Key\n"]
    if failure:
        told = "`/retry` in its session retries it; sending it under a new Idempotency-Key would store it twice."
        assert {body["error"]["message"] for _, body, _ in answers} == {f"slow down. The message is stored: {told}"}


async def test_two_requests_on_one_session_are_two_turns(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    session = {"X-Hermes-Session-Id": "shared"}
    answers = await asyncio.gather(chat(client, **session), chat(client, **session))
    assert {answer[1]["hermes"]["turn_id"] for answer in answers} == {"turn-1", "turn-2"}
    assert {answer[2]["X-Hermes-Session-Id"] for answer in answers} == {"shared"}


def test_the_fake_front_desk_has_every_method_of_the_port() -> None:
    wanted = {name for name in vars(Sessions) if not name.startswith("_")}
    assert wanted <= set(dir(FakeSessions))

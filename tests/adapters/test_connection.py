"""Clients that are slow, silent, too many or deaf do not hold the server."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from hermes.adapters.http.service import TURNS_A_ROUND
from hermes.adapters.openai_api.server import ApiServer
from tests.adapters.conftest import KEY, PATIENCE_S, ApiHarness, ask, connect, iterate, raw
from tests.support.waiting import until

GET = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()


async def closes(reader: asyncio.StreamReader) -> bool:
    """Whether the server ends the connection without another word."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read() == b""
    except ConnectionResetError:
        return True


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head + await reader.readexactly(length)


async def test_a_client_that_says_nothing_is_dropped(world: ApiHarness) -> None:
    reader, writer = await connect(await world.api(header_timeout_s=0.05))
    assert await closes(reader)
    writer.close()


async def test_half_a_head_is_not_waited_for(world: ApiHarness) -> None:
    reader, writer = await connect(await world.api(header_timeout_s=0.05))
    writer.write(GET[:20])
    assert await closes(reader)
    writer.close()


async def test_a_head_that_comes_byte_by_byte_does_not_reset_the_clock(world: ApiHarness) -> None:
    reader, writer = await connect(await world.api(header_timeout_s=0.1))

    async def drip() -> None:
        for byte in GET[:-1] * 1_000:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    assert await closes(reader)
    dripping.cancel()
    await asyncio.gather(dripping, return_exceptions=True)
    writer.close()


async def test_head_timeout_covers_later_requests_but_not_idle_time(
    world: ApiHarness,
) -> None:
    api = await world.api(header_timeout_s=1.0)
    reader, writer = await connect(api)
    writer.write(GET)
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    silent, other_writer = await connect(api)
    assert await closes(silent)  # the limit is over for one that came later
    writer.write(GET)
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    writer.write(GET[:20])
    assert await closes(reader)
    writer.close()
    other_writer.close()


async def test_half_a_head_behind_a_whole_request_is_not_waited_for(world: ApiHarness) -> None:
    api = await world.api(header_timeout_s=0.5)
    body = json.dumps(ask()).encode()
    head = GET.replace(b"GET /v1/models", b"POST /v1/chat/completions").removesuffix(b"\r\n")
    post = head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for request in (GET, post):
        reader, writer = await connect(api)
        writer.write(request + GET[:20])
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
        assert await closes(reader)
        writer.close()


async def test_idle_time_after_a_request_is_not_limited(world: ApiHarness) -> None:
    api = await world.api(header_timeout_s=2.0)
    body = json.dumps(ask()).encode()
    head = GET.replace(b"GET /v1/models", b"POST /v1/chat/completions").removesuffix(b"\r\n")
    post = head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    open_ones = []
    for parts in (
        (GET,),
        (GET[:30], GET[30:]),
        (post + body,),
        (post, body),
        (post + body[:5], body[5:]),
        (GET + GET,),
    ):
        reader, writer = await connect(api)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)  # so that each comes by itself
        open_ones.append((reader, writer, len(parts[0]) > len(GET) and parts[0].startswith(GET)))
    for reader, _, twice in open_ones:
        for _ in range(2 if twice else 1):
            assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    silent, other = await connect(api)
    assert await closes(silent)  # the limit is over for one that came later
    for reader, writer, _ in open_ones:
        writer.write(GET)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
    other.close()


async def test_an_answer_may_take_longer_than_a_head(world: ApiHarness) -> None:
    client = await world.client(await world.api(header_timeout_s=1.0, ping_s=0.4))
    world.desk.hold()
    async with client.post("/v1/chat/completions", json=ask(stream=True)) as response:
        incoming = iterate(response)
        pings = 0
        while pings < 4:
            pings += (await anext(incoming)).event == "comment"
        world.desk.unheld.set()
        assert [event async for event in incoming][-1].data == "[DONE]"


async def test_requests_sent_one_behind_the_other_are_answered_in_order(api: ApiServer) -> None:
    reader, writer = await connect(api)
    writer.write(GET + GET.replace(b"/v1/models", b"/v1/models/hermes") + GET)
    answers = [await answer(reader) for _ in range(3)]
    assert [b'"data"' in text for text in answers] == [True, False, True]
    writer.close()


async def test_idle_strangers_do_not_lock_the_owner_out(world: ApiHarness) -> None:
    api = await world.api()
    strangers = [await connect(api) for _ in range(100)]
    reader, writer = await connect(api)
    writer.write(GET)
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    late = [await connect(api) for _ in range(100)]
    writer.write(GET)  # and the connection stays
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    for _, each in (*strangers, *late, (reader, writer)):
        each.close()


async def test_wrong_keys_do_not_lock_the_owner_out(world: ApiHarness) -> None:
    api = await world.api()
    strangers = [await connect(api) for _ in range(31)]
    for stranger, wrong in strangers:
        wrong.write(GET.replace(KEY.encode(), b"wrong"))
        assert (await answer(stranger)).startswith(b"HTTP/1.1 401")
    more = [await connect(api) for _ in range(70)]
    reader, writer = await connect(api)
    writer.write(GET)
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    for _, each in (*strangers, *more, (reader, writer)):
        each.close()


async def test_idle_connection_with_a_key_gives_way(world: ApiHarness) -> None:
    api = await world.api(max_connections_per_peer=2)
    known = [await connect(api) for _ in range(2)]
    for reader, writer in known:
        writer.write(GET)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    third, third_writer = await connect(api)
    third_writer.write(GET)
    assert (await answer(third)).startswith(b"HTTP/1.1 200")
    assert await closes(known[0][0])
    for _, writer in (*known, (third, third_writer)):
        writer.close()


async def test_request_beyond_the_limit_gets_a_503(world: ApiHarness) -> None:
    """Both places are taken by requests that are being answered; health checks still pass."""
    api = await world.api(max_connections_per_peer=2)
    world.desk.hold()
    busy = [await connect(api) for _ in range(2)]
    for number, (_, writer) in enumerate(busy):
        writer.write(_posted(ask()))
        await until(lambda number=number: len(world.desk.submitted) == number + 1)  # type: ignore[misc]
    reader, writer = await connect(api)
    writer.write(GET)
    refused = await answer(reader)
    assert refused.startswith(b"HTTP/1.1 503")
    head = refused.lower()
    assert b"\r\nretry-after: 5\r\n" in head
    assert b"\r\nconnection: close\r\n" in head
    assert b"too_many_connections" in head
    assert await closes(reader)
    world.desk.unheld.set()
    for reader, _ in busy:
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    for _, each in (*busy, (reader, writer)):
        each.close()


async def test_connection_beyond_all_places_gets_a_503_without_a_request(world: ApiHarness) -> None:
    api = await world.api(max_connections=1, max_connections_per_peer=5)
    world.desk.hold()
    reader, held = await connect(api)
    held.write(_posted(ask()))
    await until(lambda: world.desk.submitted)
    refused, writer = await connect(api)
    assert (await answer(refused)).startswith(b"HTTP/1.1 503")
    world.desk.unheld.set()
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    held.close()
    writer.close()


async def test_flooded_api_stores_nothing_for_clients_that_left_before_their_turn(world: ApiHarness) -> None:
    """All requests arrive in one round of the event loop: the first ones start, the others find their client gone."""
    api = await world.api()
    flood = [await connect(api) for _ in range(3 * TURNS_A_ROUND)]
    for reader, writer in flood:
        writer.write(GET)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    for number, (_, writer) in enumerate(flood):
        writer.write(_posted(ask(f"request {number}")))
        writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        answers = [await reader.read() for reader, _ in flood]
    served = sum(each.startswith(b"HTTP/1.1 200") for each in answers)
    refused = sum(each.startswith(b"HTTP/1.1 429") and b"busy" in each for each in answers)
    assert served >= TURNS_A_ROUND
    assert refused >= 1
    assert served + refused == len(flood)
    assert len(world.desk.submitted) == served
    for _, writer in flood:
        writer.close()


async def test_client_that_closes_its_side_after_the_request_gets_its_answer(world: ApiHarness) -> None:
    api = await world.api()
    world.desk.hold()
    for request in (GET, _posted(ask()), _posted(ask(stream=True))):
        reader, writer = await connect(api)
        writer.write(request)
        writer.write_eof()
        world.desk.unheld.set()
        async with asyncio.timeout(PATIENCE_S):
            said = await reader.read()
        assert said.startswith(b"HTTP/1.1 200")
        assert b"world" in said or b"data" in said
        writer.close()


async def test_client_that_leaves_stops_its_turn_if_it_asked_for_that(world: ApiHarness) -> None:
    api = await world.api()
    world.desk.hold()
    _, writer = await connect(api)
    writer.write(_posted(ask()).replace(b"Host:", b"X-Hermes-Cancel-On-Disconnect: 1\r\nHost:", 1))
    await until(lambda: world.desk.submitted)
    writer.close()
    await until(lambda: world.desk.stopped)


@pytest.mark.parametrize("key", [KEY, "wrong"])
async def test_body_is_asked_for_after_the_key_was_checked(api: ApiServer, key: str) -> None:
    reader, writer = await connect(api)
    head, body = _posted(ask()).replace(KEY.encode(), key.encode()).split(b"\r\n\r\n")
    writer.write(head + b"\r\nExpect: 100-continue\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        first = await reader.readuntil(b"\r\n\r\n")
    if key == KEY:
        assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    else:
        assert first.startswith(b"HTTP/1.1 401")
    writer.close()


async def test_large_header_is_a_431(api: ApiServer) -> None:
    said = await raw(api, GET.replace(b"Host:", b"X-Large: " + b"a" * 20_000 + b"\r\nHost:", 1))
    assert b" 431 " in said.partition(b"\r\n")[0]
    assert b"Server: hermes" in said
    assert b"aaaa" not in said


async def test_two_keys_in_one_request_are_refused(api: ApiServer) -> None:
    said = await raw(api, GET.replace(b"Host:", b"Authorization: Bearer other\r\nConnection: close\r\nHost:", 1))
    assert said.startswith(b"HTTP/1.1 400")


async def test_stalled_reader_is_dropped_and_its_turn_continues(world: ApiHarness) -> None:
    api = await world.api(stall_timeout_s=0.1, ping_s=0.01)
    world.desk.words = ("x" * 100_000,) * 100
    host, port = api.address.removeprefix("http://").rsplit(":", 1)
    deaf = socket.socket()
    deaf.setblocking(False)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_connect(deaf, (host, int(port)))
        await loop.sock_sendall(deaf, _posted(ask(stream=True)))
        await until(lambda: world.hub.feeds)
        await until(lambda: not world.hub.feeds)
    finally:
        deaf.close()
    await until(lambda: world.desk.outcomes)
    assert world.desk.stopped == []


def _posted(body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data

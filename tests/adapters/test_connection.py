"""Clients that are slow, silent, too many or deaf do not hold the server."""

from __future__ import annotations

import asyncio
import json
import socket

from hermes.adapters.openai_api.server import ApiServer
from tests.adapters.conftest import KEY, PATIENCE_S, ApiHarness, ask, connect, iterate
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


async def test_connection_with_a_key_counts_until_it_is_closed(world: ApiHarness) -> None:
    api = await world.api(max_connections_per_peer=2)
    known = [await connect(api) for _ in range(2)]
    for reader, writer in known:
        writer.write(GET)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    third = await connect(api)
    assert await closes(third[0])
    for _, writer in (*known, third):
        writer.close()
        await writer.wait_closed()
    again = await connect(api)
    again[1].write(GET)
    assert (await answer(again[0])).startswith(b"HTTP/1.1 200")
    again[1].close()


async def test_the_limit_in_all_counts_every_peer(world: ApiHarness) -> None:
    api = await world.api(max_connections=1, max_connections_per_peer=5)
    reader, held = await connect(api)
    held.write(GET)
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    reader, writer = await connect(api)
    assert await closes(reader)
    held.close()
    writer.close()


async def test_a_stranger_gives_way_where_all_places_are_taken(world: ApiHarness) -> None:
    api = await world.api(max_connections=1, max_connections_per_peer=5)
    stranger, held = await connect(api)
    reader, writer = await connect(api)
    writer.write(GET)
    assert (await answer(reader)).startswith(b"HTTP/1.1 200")
    assert await closes(stranger)
    held.close()
    writer.close()


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

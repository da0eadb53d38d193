"""Limits of the sandbox's proxy: time, memory and connections."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from hermes.sandbox.network.proxy import GuardProxy
from hermes.sandbox.network.proxy_client import DEFAULT_LIMITS
from hermes.sandbox.network.proxy_event import EventKind, Reason
from tests.sandbox.proxied import HOST, LISTED, AnswerServer, Proxied, connect, get, hello_for, proxied
from tests.support.waiting import until


async def test_slow_request_is_ended(server: AnswerServer) -> None:
    async with proxied(ports=[server.port], limits=replace(DEFAULT_LIMITS, head_s=1.0)) as made:
        reader, writer = await made.connect()
        dripping = asyncio.create_task(drip(writer))
        async with asyncio.timeout(10):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        dripping.cancel()
        writer.close()
        answer = await made.talk(connect(HOST, server.port), end=False)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answer
    assert made.refused == [Reason.TOO_SLOW, Reason.TOO_SLOW]


async def drip(writer: asyncio.StreamWriter) -> None:
    for byte in b"GET http://site.test/ HTTP/1.1\r\n" + b"X: a\r\n" * 10_000:
        writer.write(bytes((byte,)))
        await asyncio.sleep(0.01)


async def silent(made: Proxied, count: int) -> list[asyncio.StreamWriter]:
    writers = [(await made.connect())[1] for _ in range(count)]
    await until(lambda: made.proxy.clients >= count)
    return writers


async def test_sixty_fifth_client_of_a_sandbox_is_refused(server: AnswerServer) -> None:
    async with proxied(ports=[server.port]) as made:
        writers = await silent(made, 64)
        assert (await made.talk(get(HOST, server.port), end=False)).startswith(b"HTTP/1.1 503 ")
        assert made.refused == [Reason.TOO_MANY_CLIENTS]
        async with proxied(ports=[server.port], proxy=made.proxy) as other:
            assert (await other.talk(get(HOST, server.port), end=False)).endswith(b"ok")
        writers.pop().close()
        await until(lambda: made.proxy.clients < 64)
        assert (await made.talk(get(HOST, server.port), end=False)).endswith(b"ok")
        for writer in writers:
            writer.close()


async def test_clients_of_all_sandboxes_are_bounded(server: AnswerServer) -> None:
    limits = replace(DEFAULT_LIMITS, clients=5)
    async with proxied(ports=[server.port], limits=limits) as made:
        writers = await silent(made, 5)
        async with proxied(ports=[server.port], proxy=made.proxy) as other:
            assert (await other.talk(get(HOST, server.port), end=False)).startswith(b"HTTP/1.1 503 ")
        for writer in writers:
            writer.close()
        await until(lambda: made.proxy.clients == 0)


async def test_clients_are_accepted_at_a_bounded_rate(server: AnswerServer) -> None:
    limits = replace(DEFAULT_LIMITS, accept_pause_s=0.02)
    async with proxied(ports=[server.port], limits=limits) as made:
        began = time.monotonic()
        await asyncio.gather(*(made.talk(b"garbage\r\n\r\n") for _ in range(20)))
        assert time.monotonic() - began >= 19 * 0.02


async def test_garbage_is_refused_without_waiting_for_its_end(server: AnswerServer) -> None:
    async with proxied(ports=[server.port]) as made:
        began = time.monotonic()
        assert (await made.talk(hello_for(HOST), end=False)).startswith(b"HTTP/1.1 400 ")
        assert time.monotonic() - began < DEFAULT_LIMITS.head_s / 2


async def test_idle_tunnel_is_ended(server: AnswerServer) -> None:
    server.answer = b""

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silence, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port], limits=replace(DEFAULT_LIMITS, idle_s=0.2)) as made:
            answer = await made.talk(connect(HOST, port) + hello_for(HOST), end=False)
            assert answer.endswith(b"established\r\n\r\n")
            await until(lambda: made.proxy.clients == 0)
        assert [event.kind for event in made.events] == [EventKind.ALLOWED]


async def test_traffic_in_one_direction_keeps_a_tunnel_open() -> None:
    """Nothing is uploaded for three times the idle limit, while the download goes on."""

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        for _ in range(30):
            writer.write(b"x")
            await asyncio.sleep(0.1)
        writer.close()

    async with await asyncio.start_server(trickle, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port], limits=replace(DEFAULT_LIMITS, idle_s=1.0)) as made:
            answer = await made.talk(connect(HOST, port) + hello_for(HOST), end=False)
            assert answer.endswith(b"\r\n\r\n" + b"x" * 30)


async def test_half_closed_tunnel_still_carries_the_answer() -> None:
    async def answer_at_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = await reader.read()
        writer.write(b"%d bytes" % len(received))
        writer.close()

    async with await asyncio.start_server(answer_at_the_end, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port]) as made:
            hello = hello_for(HOST)
            answer = await made.talk(connect(HOST, port) + hello + b"x" * 300_000)
            assert answer.endswith(b"%d bytes" % (len(hello) + 300_000))
            await until(lambda: made.events)
    assert made.events[0].bytes_sent == len(hello) + 300_000


async def test_slow_reader_slows_the_server_down() -> None:
    """A server that never stops sending is held up by a client that does not read."""
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.read(1)
        try:
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536
        except OSError:
            pass

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port]) as made:
            reader, writer = await made.connect()
            writer.write(get(HOST, port))
            await reader.readexactly(1)
            before = -1
            async with asyncio.timeout(20):
                while before != sent:
                    before = sent
                    await asyncio.sleep(0.3)
            assert sent < 64 << 20  # what the kernel buffers on the way
            writer.close()


async def test_close_ends_everything(server: AnswerServer) -> None:
    server.answer = b""
    hold = asyncio.Event()

    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hold.wait()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port]) as made:
            idle, waiting = await made.connect(), await made.connect()
            waiting[1].write(connect(HOST, port) + hello_for(HOST))
            await waiting[0].readuntil(b"\r\n\r\n")
            await until(lambda: made.proxy.clients == 2)
            await made.serving.close()
            assert made.proxy.clients == 0
            for reader, writer in (idle, waiting):
                assert await reader.read() == b""
                writer.close()
            with pytest.raises(ConnectionRefusedError):
                await made.connect()
            await made.serving.close()
        hold.set()


async def test_lookups_are_shared_and_bounded(server: AnswerServer) -> None:
    go_on = asyncio.Event()
    running: list[str] = []

    async def resolve(host: str) -> list[str]:
        running.append(host)
        await go_on.wait()
        return ["127.0.0.1"]

    proxy = GuardProxy(resolve=resolve, refusal=lambda _: "")
    hosts = ["a.site.test"] * 3 + [f"{letter}.site.test" for letter in "bcdef"]
    async with proxied(ports=[server.port], proxy=proxy, allowed=LISTED) as made:
        talks = [asyncio.create_task(made.talk(get(host, server.port), end=False)) for host in hosts]
        await until(lambda: proxy.clients == len(hosts) and len(running) == 4)
        go_on.set()
        assert all(said.endswith(b"ok") for said in await asyncio.gather(*talks))
    assert len(running) == len(set(running)) == 6

"""Proxy of a sandbox: what it forwards and what it refuses."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import replace

import pytest

from hermes.sandbox.network.proxy import GuardProxy
from hermes.sandbox.network.proxy_client import DEFAULT_LIMITS
from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason
from hermes.sandbox.network.proxy_request import MAX_HEAD_BYTES, client_hello, server_name
from tests.sandbox.proxied import HOST, AnswerServer, Names, connect, get, hello_for, proxied
from tests.support.waiting import until

ALERT = b"\x15\x03"


async def test_plain_request_reaches_its_server(server: AnswerServer) -> None:
    async with proxied(ports=[server.port]) as made:
        assert (await made.talk(get(HOST, server.port), end=False)).endswith(b"\r\n\r\nok")
        await until(lambda: made.events)
    [request] = server.received
    assert request == f"GET / HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nConnection: close\r\n\r\n".encode()
    assert made.events == [
        ProxyEvent(
            kind=EventKind.ALLOWED,
            host=HOST,
            port=server.port,
            bytes_sent=len(request),
            bytes_received=len(server.answer),
        )
    ]


async def test_second_request_on_a_plain_connection_is_not_forwarded(server: AnswerServer) -> None:
    second = b"GET http://other.test/ HTTP/1.1\r\n\r\n"
    async with proxied(ports=[server.port]) as made:
        await made.talk(get(HOST, server.port) + second, end=False)
        body = b"POST http://site.test:%d/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc" % server.port
        await made.talk(body + second, end=False)
        await until(lambda: len(made.events) == 2)
    assert [event.bytes_sent for event in made.events] == [len(received) for received in server.received]
    assert len(server.received) == 2
    assert not any(b"other.test" in received for received in server.received)
    assert server.received[1].endswith(b"\r\n\r\nabc")


async def test_bytes_after_a_body_are_not_forwarded() -> None:
    """The body arrives after the head, with a second request in the same segment."""
    received = bytearray()

    async def read_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        received.extend(await reader.readexactly(3))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                received.extend(await reader.read(100))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(read_all, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port]) as made:
            reader, writer = await made.connect()
            writer.write(b"POST http://site.test:%d/ HTTP/1.1\r\nContent-Length: 3\r\n\r\n" % port)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"abcGET http://other.test/ HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"200 OK\r\n\r\n")
            writer.close()
    assert received.endswith(b"\r\n\r\nabc")


async def test_chunked_body_is_forwarded() -> None:
    bodies: list[bytes] = []

    async def read_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        bodies.append(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(read_chunks, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with proxied(ports=[port]) as made:
            reader, writer = await made.connect()
            writer.write(b"PUT http://site.test:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab" % port)
            await until(lambda: made.proxy.clients)
            writer.write(b"c\r\n0\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            writer.close()
    assert bodies == [b"3\r\nabc\r\n0\r\n\r\n"]


@pytest.mark.parametrize("name", [HOST, None])
async def test_tunnel_carries_tls_for_its_host(server: AnswerServer, name: str | None) -> None:
    server.answer = b"from the server"
    async with proxied(ports=[server.port]) as made:
        answer = await made.talk(connect(HOST, server.port) + hello_for(name))
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\nfrom the server"
    [received] = server.received
    body = client_hello(received)
    assert body is not None
    assert server_name(body) == name


REFUSED = [
    ("evil.test", Reason.NOT_LISTED),
    ("site.test.evil.test", Reason.NOT_LISTED),
    ("localhost", Reason.NOT_LISTED),
    ("gone.test", Reason.UNRESOLVED),
    ("empty.site.test", Reason.UNRESOLVED),
    ("inner.test", Reason.NOT_PUBLIC),
    ("mixed.test", Reason.NOT_PUBLIC),
    ("metadata.test", Reason.NOT_PUBLIC),
    ("six.site.test", Reason.NOT_PUBLIC),
    ("mapped.site.test", Reason.NOT_PUBLIC),
    ("link.site.test", Reason.NOT_PUBLIC),
    ("127.0.0.1", Reason.NOT_A_NAME),
    ("169.254.169.254", Reason.NOT_A_NAME),
    ("93.184.216.34", Reason.NOT_A_NAME),
    ("2130706433", Reason.NOT_A_NAME),
    ("0x7f000001", Reason.NOT_A_NAME),
    ("0x7f.1", Reason.NOT_A_NAME),
    ("0177.0.0.1", Reason.NOT_A_NAME),
    ("127.1", Reason.NOT_A_NAME),
    ("127.0.0.1.", Reason.NOT_A_NAME),
    ("[::1]", Reason.NOT_A_NAME),
    ("[::ffff:127.0.0.1]", Reason.NOT_A_NAME),
    ("[fd00:ec2::254]", Reason.NOT_A_NAME),
    ("127%2e0%2e0%2e1", Reason.NOT_A_NAME),
    ("site..test", Reason.NOT_A_NAME),
]


@pytest.fixture
def names() -> Names:
    made = Names()
    made.known |= {
        "inner.test": [["10.0.0.1"]],
        "mixed.test": [["127.0.0.1", "10.0.0.1"]],
        "metadata.test": [["169.254.169.254"]],
        "six.site.test": [["fd00:ec2::254"]],
        "mapped.site.test": [["::ffff:127.0.0.1"]],
        "link.site.test": [["fe80::1%lo"]],
        "empty.site.test": [[]],
    }
    return made


@pytest.mark.parametrize("request_for", [connect, get])
@pytest.mark.parametrize(("host", "reason"), REFUSED)
async def test_other_hosts_are_refused(
    server: AnswerServer, names: Names, host: str, reason: Reason, request_for: type[bytes]
) -> None:
    async with proxied(ports=[server.port], names=names) as made:
        answer = await made.talk(request_for(host, server.port))  # type: ignore[call-overload]
        expected = b"HTTP/1.1 502 " if reason is Reason.UNRESOLVED else b"HTTP/1.1 403 "
        assert answer.startswith(expected + b"sandbox: ")
        [event] = made.events
        assert (event.kind, event.reason, event.port) == (EventKind.REFUSED, reason, server.port)
        assert event.host == host.removesuffix(".")
    assert not server.received


async def test_refusal_explains_what_the_owner_can_do(server: AnswerServer) -> None:
    async with proxied(ports=[server.port]) as made:
        answer = await made.talk(get("evil.test", server.port))
    head, _, body = answer.partition(b"\r\n\r\n")
    said = "sandbox: evil.test is not on the list of allowed hosts (sandbox.allowed_hosts); the owner can allow it"
    assert body.decode() == said + "\n"
    assert head.decode().startswith(f"HTTP/1.1 403 {said}\r\n")


@pytest.mark.parametrize("port", [22, 25, 1, 65535])
async def test_other_ports_are_refused(server: AnswerServer, port: int) -> None:
    async with proxied(ports=[443, 80]) as made:
        assert (await made.talk(connect(HOST, port))).startswith(b"HTTP/1.1 403 ")
        assert (await made.talk(get(HOST, port))).startswith(b"HTTP/1.1 403 ")
    assert made.refused == [Reason.PORT, Reason.PORT]


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n", b"403", Reason.FORM),
        (b"GET https://site.test/ HTTP/1.1\r\n\r\n", b"403", Reason.FORM),
        (b"\x00\x01garbage\r\n\r\n", b"400", Reason.MALFORMED),
        (b"\x16\x03\x01\x02\x00", b"400", Reason.MALFORMED),
        (b"garbage\r\n\r\n", b"400", Reason.MALFORMED),
        (b"GET http://site.test/ HT", b"400", Reason.MALFORMED),
        (b"GET http://site.test/ HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", b"431", Reason.HEAD_TOO_LARGE),
        (b"A" * 100_000, b"431", Reason.HEAD_TOO_LARGE),
    ],
)
async def test_garbage_is_refused(server: AnswerServer, data: bytes, status: bytes, reason: Reason) -> None:
    async with proxied(ports=[80, server.port]) as made:
        assert (await made.talk(data)).startswith(b"HTTP/1.1 " + status)
    assert made.refused == [reason]


async def test_largest_head_is_served(server: AnswerServer) -> None:
    head = get(HOST, server.port).removesuffix(b"\r\n")
    async with proxied(ports=[server.port]) as made:
        filler = b"X: " + b"a" * (MAX_HEAD_BYTES - len(head) - 3)
        assert (await made.talk(head + filler + b"\r\n\r\n", end=False)).endswith(b"ok")


async def test_client_that_sends_nothing_causes_no_event(server: AnswerServer) -> None:
    async with proxied(ports=[server.port]) as made:
        assert await made.talk(b"") == b""
    assert made.events == []


async def test_tunnel_to_another_server_name_is_refused(server: AnswerServer) -> None:
    async with proxied(ports=[server.port]) as made:
        answer = await made.talk(connect(HOST, server.port) + hello_for("other.test"))
        assert answer.split(b"\r\n\r\n", 1)[1].startswith(ALERT)
        [event] = made.events
    assert (event.reason, event.host, event.port) == (Reason.OTHER_SERVER_NAME, HOST, server.port)
    assert server.received in ([], [b""])


@pytest.mark.parametrize(
    "data", [b"SSH-2.0-client\r\n", b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n", b"\x17\x03\x03"]
)
async def test_tunnel_of_plain_text_is_refused(server: AnswerServer, data: bytes) -> None:
    async with proxied(ports=[server.port]) as made:
        answer = await made.talk(connect(HOST, server.port) + data)
    assert b"\r\n\r\nHTTP/1.1 403 sandbox: CONNECT is for TLS only" in answer
    assert made.refused == [Reason.NOT_TLS]
    assert server.received in ([], [b""])


async def test_address_that_was_judged_is_the_one_connected_to(server: AnswerServer, names: Names) -> None:
    names.known["rebind.site.test"] = [["127.0.0.1"], ["10.0.0.1"]]
    async with proxied(ports=[server.port], names=names) as made:
        assert (await made.talk(get("rebind.site.test", server.port), end=False)).endswith(b"ok")
        assert names.asked == ["rebind.site.test"]
        assert (await made.talk(get("rebind.site.test", server.port))).startswith(b"HTTP/1.1 403 ")
    assert len(server.received) == 1
    assert made.refused == [Reason.NOT_PUBLIC]


async def test_without_injection_loopback_is_refused(server: AnswerServer, names: Names) -> None:
    strict = GuardProxy(resolve=names.resolve)
    async with proxied(ports=[server.port], proxy=strict) as made:
        await made.talk(get(HOST, server.port))
    assert made.refused == [Reason.NOT_PUBLIC]


async def test_next_address_is_tried_when_one_does_not_answer(server: AnswerServer, names: Names) -> None:
    names.known["two.site.test"] = [["127.0.0.2", "127.0.0.1"]]
    proxy = GuardProxy(resolve=names.resolve, refusal=lambda _: "")
    async with proxied(ports=[server.port], proxy=proxy) as made:
        assert (await made.talk(get("two.site.test", server.port), end=False)).endswith(b"ok")


async def test_server_that_does_not_answer(names: Names) -> None:
    names.known["closed.test"] = [["127.0.0.1"]]
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with proxied(ports=[port], names=names) as made:
        assert (await made.talk(get("closed.test", port))).startswith(b"HTTP/1.1 502 sandbox: closed.test does not")
    assert made.refused == [Reason.UNREACHABLE]


async def test_new_host_is_asked_about_once(server: AnswerServer, names: Names) -> None:
    names.known["new.test"] = [["127.0.0.1"]]
    asked: list[str] = []
    answer = asyncio.Event()

    async def ask(host: str) -> bool:
        asked.append(host)
        await answer.wait()
        return host == "new.test"

    async with proxied(ports=[server.port], names=names, ask=ask) as made:
        talks = [asyncio.create_task(made.talk(get("new.test", server.port), end=False)) for _ in range(5)]
        await until(lambda: made.proxy.clients == 5)
        answer.set()
        assert all(said.endswith(b"ok") for said in await asyncio.gather(*talks))
        assert (await made.talk(get("New.test", server.port), end=False)).endswith(b"ok")
        for _ in range(2):
            assert (await made.talk(get("evil.test", server.port))).startswith(b"HTTP/1.1 403 ")
    assert asked == ["new.test", "evil.test"]
    assert [event.host for event in made.events if event.kind is EventKind.ASKED] == asked


async def test_number_of_asked_hosts_is_bounded(server: AnswerServer) -> None:
    asked: list[str] = []

    async def ask(host: str) -> bool:
        asked.append(host)
        return False

    async with proxied(ports=[server.port], ask=ask, limits=replace(DEFAULT_LIMITS, asked_hosts=2)) as made:
        for number in range(4):
            assert (await made.talk(get(f"n{number}.test", server.port))).startswith(b"HTTP/1.1 403 ")
    assert asked == ["n0.test", "n1.test"]

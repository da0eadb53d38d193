"""One client's connection to the sandbox's proxy: read the request, judge it, connect, relay."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason, refusal_answer
from hermes.sandbox.network.proxy_request import (
    END_OF_HEAD,
    MAX_HEAD_BYTES,
    PlainRequest,
    ProxyRequest,
    RequestRefusedError,
    Tunnel,
    client_hello,
    parse_request,
    server_name,
)
from hermes.sandbox.network.relay import Relay
from hermes.system.public_address import is_host_name

MayReach: TypeAlias = Callable[[str], Awaitable[bool]]  # whether a host is allowed
Lookup: TypeAlias = Callable[[str], Awaitable[list[str]]]  # a host's addresses, all of them judged

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x31"  # fatal, access denied
_READ_BYTES = 16 * 1024
_LINGER_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    clients_per_sandbox: int = 64
    clients: int = 256
    asked_hosts: int = 32  # of one sandbox
    head_s: float = 30.0  # until a request, and then a ClientHello, has arrived in full
    connect_s: float = 10.0  # per address, and for its lookup
    idle_s: float = 300.0
    accept_pause_s: float = 0.002  # bounds the share of the event loop that opening connections in a loop can take


DEFAULT_LIMITS = ProxyLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRules:
    ports: frozenset[int]
    may_reach: MayReach
    lookup: Lookup
    limits: ProxyLimits


class ProxyClient:
    def __init__(self, sock: socket.socket, rules: ProxyRules, report: Callable[[ProxyEvent], None]) -> None:
        self._sock = sock
        self._rules = rules
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()  # and not yet used
        self._answer_as_http = True

    async def serve(self) -> None:
        """Serve the client's one request. The caller closes the socket."""
        try:
            await self._serve()
        except RequestRefusedError as refused:
            self._report(
                ProxyEvent(kind=EventKind.REFUSED, host=refused.host, port=refused.port, reason=refused.reason)
            )
            await self._answer(refused)
        except OSError:  # the client went away
            pass

    async def _serve(self) -> None:
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = await self._request()
        if request is None:
            return
        try:
            await self._judge(request)
            server = await self._connect(request)
        except RequestRefusedError as refused:
            raise RequestRefusedError(refused.reason, request.host, request.port) from None
        with server:
            relay = Relay(self._sock, server, idle_s=self._rules.limits.idle_s)
            first = await self._first_bytes(request)
            try:
                await self._forward(request, first, server, relay)
            finally:
                self._report(
                    ProxyEvent(
                        kind=EventKind.ALLOWED,
                        host=request.host,
                        port=request.port,
                        bytes_sent=len(first) + relay.up.bytes,
                        bytes_received=relay.down.bytes,
                    )
                )

    async def _request(self) -> ProxyRequest | None:
        """Read and parse the head of a request; None if the client sent nothing."""
        try:
            async with asyncio.timeout(self._rules.limits.head_s):
                size = await self._head_size()
        except TimeoutError:
            raise RequestRefusedError(Reason.TOO_SLOW) from None
        head = bytes(self._received[:size])
        del self._received[:size]
        return parse_request(head) if head else None

    async def _head_size(self) -> int:
        """Receive until the head is complete, and return its size; 0 if the client sent nothing."""
        searched = 0
        while (end := self._received.find(END_OF_HEAD, searched)) < 0:
            searched = max(0, len(self._received) - len(END_OF_HEAD))
            if searched > MAX_HEAD_BYTES:
                raise RequestRefusedError(Reason.HEAD_TOO_LARGE)
            if self._received and not self._received[:1].isalpha():
                raise RequestRefusedError(Reason.MALFORMED)
            if not await self._receive():
                if self._received:
                    raise RequestRefusedError(Reason.MALFORMED)
                return 0
        if end > MAX_HEAD_BYTES:
            raise RequestRefusedError(Reason.HEAD_TOO_LARGE)
        return end + len(END_OF_HEAD)

    async def _receive(self) -> bool:
        part = await self._loop.sock_recv(self._sock, _READ_BYTES)
        self._received += part
        return bool(part)

    async def _judge(self, request: ProxyRequest) -> None:
        if request.port not in self._rules.ports:
            raise RequestRefusedError(Reason.PORT)
        if not is_host_name(request.host):
            raise RequestRefusedError(Reason.NOT_A_NAME)
        if not await self._rules.may_reach(request.host):
            raise RequestRefusedError(Reason.NOT_LISTED)

    async def _connect(self, request: ProxyRequest) -> socket.socket:
        """Connect to one of the addresses that were judged. A second lookup could return others."""
        try:
            async with asyncio.timeout(self._rules.limits.connect_s):
                addresses = await self._rules.lookup(request.host)
        except OSError:
            raise RequestRefusedError(Reason.UNRESOLVED) from None
        for address in addresses:
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                async with asyncio.timeout(self._rules.limits.connect_s):
                    await self._loop.sock_connect(sock, (address, request.port))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                sock.close()
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise RequestRefusedError(Reason.UNREACHABLE if addresses else Reason.UNRESOLVED)

    async def _first_bytes(self, request: ProxyRequest) -> bytes:
        """Return what the server gets first: the checked ClientHello, or the head and the body's first bytes."""
        if isinstance(request, PlainRequest):
            return request.head + self._received[: request.body_bytes]
        await self._loop.sock_sendall(self._sock, _ESTABLISHED)
        try:
            return await self._hello(request)
        except RequestRefusedError as refused:
            self._answer_as_http = not self._received.startswith(b"\x16")
            raise RequestRefusedError(refused.reason, request.host, request.port) from None

    async def _hello(self, request: Tunnel) -> bytes:
        try:
            async with asyncio.timeout(self._rules.limits.head_s):
                while (hello := client_hello(self._received)) is None:
                    if not await self._receive():
                        raise RequestRefusedError(Reason.NOT_TLS)
        except TimeoutError:
            raise RequestRefusedError(Reason.TOO_SLOW) from None
        name = server_name(hello)
        if name is not None and name != request.host:
            raise RequestRefusedError(Reason.OTHER_SERVER_NAME)
        first = bytes(self._received)
        self._received.clear()
        return first

    async def _forward(self, request: ProxyRequest, first: bytes, server: socket.socket, relay: Relay) -> None:
        async with asyncio.timeout(self._rules.limits.idle_s):
            await self._loop.sock_sendall(server, first)
        if isinstance(request, Tunnel):
            await relay.tunnel()
        elif request.body_bytes is None:
            await relay.exchange(None)
        else:
            await relay.exchange(request.body_bytes - (len(first) - len(request.head)))

    async def _answer(self, refused: RequestRefusedError) -> None:
        """Send the refusal, then read on for a moment: closing over unread bytes could drop the answer."""
        answer = refusal_answer(refused.reason, refused.host, refused.port)
        with suppress(OSError):
            async with asyncio.timeout(_LINGER_S):
                await self._loop.sock_sendall(self._sock, answer if self._answer_as_http else _TLS_ALERT)
                self._sock.shutdown(socket.SHUT_WR)
                while await self._loop.sock_recv(self._sock, _READ_BYTES):  # noqa: ASYNC110 - sock_recv may not yield
                    await asyncio.sleep(0)

"""Client connection: timeouts and limits that aiohttp lacks, for slow, too many and lost clients.

A request's head must arrive within `header_timeout_s` of its first byte (of the connection, for the first one). A
client that reads nothing for `stall_timeout_s` is dropped. An admission decides immediately about a new connection.
Handlers can wait for `lost`. Timers are those of the event loop: an idle connection costs one of them.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from aiohttp import StreamReader, web
from aiohttp.streams import EMPTY_PAYLOAD
from loguru import logger

from hermes.adapters.http import problem

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

KEEPALIVE_S = 75.0
_END_OF_HEAD = b"\r\n\r\n"  # also of a chunked body


class ConnectionAdmission(Protocol):
    def admit(self, transport: asyncio.Transport) -> str | None:
        """Return a name for the connection; None closes it without an answer."""

    def release(self, name: str) -> None: ...
    def set_busy(self, name: str, *, busy: bool) -> None:
        """Note if a request on it is being answered."""

    def set_known(self, name: str) -> None:
        """Note that a request on it had a valid key."""


@dataclass(slots=True, kw_only=True)
class _Stranger:
    peer: str
    transport: asyncio.Transport
    busy: bool = False


class PeerLimit:
    """Connection limits in all and per address, so that idle unauthenticated clients cannot lock out others.

    Connections without a valid key so far are a separate pool per address. It is as large as the other pool: a
    client may open all its connections before its first request. In a full pool a new connection replaces the oldest
    idle one.
    """

    def __init__(self, *, in_all: int, per_peer: int) -> None:
        self._in_all = in_all
        self._per_peer = per_peer
        self._strangers: dict[str, _Stranger] = {}  # oldest first
        self._strangers_of: Counter[str] = Counter()
        self._known: dict[str, str] = {}  # address of each
        self._known_of: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._quiet_until = 0.0

    def admit(self, transport: asyncio.Transport) -> str | None:
        address = transport.get_extra_info("peername")
        peer = str(address[0]) if address else ""
        if not self._has_room(peer):
            self._complain(peer)
            return None
        name = str(next(self._numbers))
        self._strangers[name] = _Stranger(peer=peer, transport=transport)
        self._strangers_of[peer] += 1
        return name

    def release(self, name: str) -> None:
        if (stranger := self._strangers.pop(name, None)) is not None:
            _decrease(self._strangers_of, stranger.peer)
        elif (peer := self._known.pop(name, None)) is not None:
            _decrease(self._known_of, peer)

    def set_busy(self, name: str, *, busy: bool) -> None:
        if (stranger := self._strangers.get(name)) is not None:
            stranger.busy = busy

    def set_known(self, name: str) -> None:
        if (stranger := self._strangers.get(name)) is not None:
            self.release(name)
            self._known[name] = stranger.peer
            self._known_of[stranger.peer] += 1

    def _has_room(self, peer: str) -> bool:
        if self._known_of[peer] >= self._per_peer:
            return False
        if self._strangers_of[peer] >= self._per_peer and not self._evict(peer):
            return False
        return len(self._strangers) + len(self._known) < self._in_all or self._evict()

    def _evict(self, peer: str | None = None) -> bool:
        """Drop the oldest idle unauthenticated connection, optionally of one address. False: there is none."""
        for name, each in self._strangers.items():
            if not each.busy and peer in (None, each.peer):
                self.release(name)
                each.transport.abort()
                return True
        return False

    def _complain(self, peer: str) -> None:
        """Log at most once a minute."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._quiet_until = now + 60
            here = self._strangers_of[peer] + self._known_of[peer]
            in_all = len(self._strangers) + len(self._known)
            logger.warning("http: too many connections: {} in all, {} from {}", in_all, here, peer)


def _decrease(counted: Counter[str], peer: str) -> None:
    counted[peer] -= 1
    if not counted[peer]:
        del counted[peer]


class Connection(web.RequestHandler):
    __slots__ = (
        "_body",
        "_busy",
        "_door",
        "_half",
        "_head_timer",
        "_header_timeout_s",
        "_name",
        "_stall_timeout_s",
        "_stall_timer",
        "_wire",
        "lost",
    )

    def __init__(
        self, server: web.Server, *, door: ConnectionAdmission, header_timeout_s: float, stall_timeout_s: float
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=KEEPALIVE_S,
            access_log=cast("Any", None),
            auto_decompress=False,  # compressed bodies are refused, so that they need not be unpacked
        )
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._door = door
        self._name: str | None = None
        self._wire: asyncio.Transport | None = None
        self._busy = False
        self._body: StreamReader = EMPTY_PAYLOAD  # body of the last request
        self._half = False  # a part of the next head has arrived
        self._header_timeout_s = header_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast("asyncio.Transport", transport)
        self._name = self._door.admit(self._wire)
        if self._name is None:
            self._wire.abort()
            return
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        for timer in (self._head_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        if self._name is not None:
            self._door.release(self._name)
        self.lost.set_result(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._busy and self._head_timer is None:
            self._await_head()
        heads, taken = self._request_count, self._body.total_bytes
        super().data_received(data)
        if not data:  # the base class processes data that it held back
            return
        if self._request_count > heads and self._messages:
            self._body, taken = self._messages[-1][1], 0
        end = len(data) - (self._body.total_bytes - taken)  # end of the data that is not the last body
        self._half = end > 0 and not data.endswith(_END_OF_HEAD, 0, end)

    def is_known(self) -> None:
        """Note that a request on it had a valid key."""
        if self._name is not None:
            self._door.set_known(self._name)

    def request_began(self) -> None:
        self._set_busy(busy=True)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def request_ended(self) -> None:
        self._set_busy(busy=False)
        if self._half and not self._messages and self._head_timer is None:
            self._await_head()  # the next head arrived during the last request

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self._loop.call_later(self._stall_timeout_s, self._drop, "does not read its answer")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer errors that never reached a handler. The base class would show tracebacks in debug mode."""
        if request.writer.output_size > 0 or self.lost.done():
            raise ConnectionError("a part of another answer was sent, or the client is gone")
        if status == 400:
            detail = (message or "").partition("\n")[0].rstrip(":")
            said = problem.Problem(
                status=400, code="invalid_http", message=f"The request is not valid HTTP: {detail}"
            )
        else:
            said = problem.of_error(exc if isinstance(exc, Exception) else RuntimeError("no exception given"))
        response = said.response()
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Translate refusals of the framework, such as an unknown expectation."""
        if isinstance(resp, web.HTTPException):
            resp = problem.of_error(resp).response()
        return await super().finish_response(request, resp, start_time)

    def _set_busy(self, *, busy: bool) -> None:
        self._busy = busy
        if self._name is not None:
            self._door.set_busy(self._name, busy=busy)

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(
            self._header_timeout_s, self._drop, "does not complete its request head"
        )

    def _drop(self, why: str) -> None:
        logger.debug("http: dropped a client that {}", why)
        if self._wire is not None:
            self._wire.abort()


def connection_of(request: web.BaseRequest) -> Connection:
    connection = request.protocol
    assert isinstance(connection, Connection)
    return connection


@web.middleware
async def watch_heads(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Outermost middleware: the request head is complete when it runs."""
    connection = connection_of(request)
    connection.request_began()
    try:
        return await handler(request)
    finally:
        connection.request_ended()

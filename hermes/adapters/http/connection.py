"""One client's connection: what aiohttp leaves out about clients that are slow, too many, or gone.

Rules: a request's head arrives within `header_timeout_s` of its first byte (of the connection, for the first one);
a client that takes nothing for `stall_timeout_s` is dropped; a door decides at once who may come in; whoever works
for a client can wait for `lost`. Timers are the loop's own: an idle connection costs one of them.
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
_END_OF_HEAD = b"\r\n\r\n"  # and of a body in chunks


class ConnectionAdmission(Protocol):
    def admit(self, transport: asyncio.Transport) -> str | None:
        """A name for the connection, or None: it is closed without a word."""

    def release(self, name: str) -> None: ...
    def set_busy(self, name: str, *, busy: bool) -> None:
        """A request on it is being answered, or none is any more."""

    def set_known(self, name: str) -> None:
        """A request on it had a valid key."""


@dataclass(slots=True, kw_only=True)
class _Stranger:
    peer: str
    transport: asyncio.Transport
    busy: bool = False


class PeerLimit:
    """Limits connections in all and from one address, so that idle strangers lock nobody out.

    Connections on which no request had a valid key yet are a pool of their own for each address. It is as large as
    that of the others: a client may open all of its connections before it sends the first request. In a full pool the
    oldest idle one gives way to a newcomer.
    """

    def __init__(self, *, in_all: int, per_peer: int) -> None:
        self._in_all = in_all
        self._per_peer = per_peer
        self._strangers: dict[str, _Stranger] = {}  # the oldest first
        self._strangers_of: Counter[str] = Counter()
        self._known: dict[str, str] = {}  # the address of each
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
        """Drop the oldest idle stranger, of that address if one is given. False: there is none."""
        for name, each in self._strangers.items():
            if not each.busy and peer in (None, each.peer):
                self.release(name)
                each.transport.abort()
                return True
        return False

    def _complain(self, peer: str) -> None:
        """Once a minute, not for each of a flood."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._quiet_until = now + 60
            here = self._strangers_of[peer] + self._known_of[peer]
            in_all = len(self._strangers) + len(self._known)
            logger.warning("too many connections: {} in all, {} from {}", in_all, here, peer)


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
            auto_decompress=False,  # compressed bodies are refused, so nobody has to unpack a bomb to discard it
        )
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._door = door
        self._name: str | None = None
        self._wire: asyncio.Transport | None = None
        self._busy = False
        self._body: StreamReader = EMPTY_PAYLOAD  # of the last request whose head has come
        self._half = False  # whether bytes have come that are part of the next head, and not all of it
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
        if not data:  # the base looks again at what it has held back
            return
        if self._request_count > heads and self._messages:
            self._body, taken = self._messages[-1][1], 0
        end = len(data) - (self._body.total_bytes - taken)  # of what is not the last body
        self._half = end > 0 and not data.endswith(_END_OF_HEAD, 0, end)

    def is_known(self) -> None:
        """A request on it had a valid key."""
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
            self._await_head()  # it came behind the request that was just answered

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self._loop.call_later(self._stall_timeout_s, self._drop, "takes nothing of its answer")

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
        """What never reached a handler, or failed behind them all. The base would show tracebacks in debug mode."""
        if request.writer.output_size > 0 or self.lost.done():
            raise ConnectionError("part of another answer was sent already, or nobody is there to read one")
        if status == 400:
            detail = (message or "").partition("\n")[0].rstrip(":")
            said = problem.Problem(status=400, code="invalid_http", message=f"This is not an HTTP request: {detail}")
        else:
            said = problem.of_error(exc if isinstance(exc, Exception) else RuntimeError("no exception given"))
        response = said.response()
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """What the framework refuses in front of our layers (an unknown expectation, say) is told like the rest."""
        if isinstance(resp, web.HTTPException):
            resp = problem.of_error(resp).response()
        return await super().finish_response(request, resp, start_time)

    def _set_busy(self, *, busy: bool) -> None:
        self._busy = busy
        if self._name is not None:
            self._door.set_busy(self._name, busy=busy)

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(self._header_timeout_s, self._drop, "sends no whole request")

    def _drop(self, why: str) -> None:
        logger.debug("dropped a client that {}", why)
        if self._wire is not None:
            self._wire.abort()


def connection_of(request: web.BaseRequest) -> Connection:
    connection = request.protocol
    assert isinstance(connection, Connection)
    return connection


@web.middleware
async def watch_heads(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The outermost layer: the head is complete when this runs."""
    connection = connection_of(request)
    connection.request_began()
    try:
        return await handler(request)
    finally:
        connection.request_ended()

"""Client connection: timeouts and limits that aiohttp lacks, for slow, too many and lost clients.

A client may close its side after a request: it still gets the answer, unless the answer is a stream that has begun.
A request's head must arrive within `header_timeout_s` of its first byte (of the connection, for the first one). A
client that reads nothing for `stall_timeout_s` is dropped. An admission decides immediately about a new connection.
Handlers can wait for `lost`. Timers are those of the event loop: an idle connection costs one of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from aiohttp import HttpVersion10, StreamReader, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD
from loguru import logger

from hermes.adapters.http import problem
from hermes.adapters.http.parameter import CANCEL_HEADER
from hermes.adapters.http.peer_limit import RETRY_AFTER_S, TOO_MANY, ConnectionAdmission

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

KEEPALIVE_S = 75.0
_END_OF_HEAD = b"\r\n\r\n"  # also of a chunked body


class Connection(web.RequestHandler):
    __slots__ = (
        "_answers_after_eof",
        "_body",
        "_busy",
        "_done",
        "_door",
        "_half",
        "_half_closed",
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
        self._answers_after_eof = True
        self._half_closed = False
        self._done = 0  # answered requests
        self._half = False  # a part of the next head has arrived
        self._header_timeout_s = header_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast("asyncio.Transport", transport)
        self._name = self._door.admit(self._wire)
        if self._name is None:
            self._refuse()
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
        heads, taken = self._request_count, self._body.total_bytes
        super().data_received(data)
        if not self._busy and self._head_timer is None and self._request_count == heads:
            self._await_head()
        if not data:  # the base class processes data that it held back
            return
        if self._request_count > heads and self._messages:
            self._body, taken = self._messages[-1][1], 0
        end = len(data) - (self._body.total_bytes - taken)  # end of the data that is not the last body
        self._half = end > 0 and not data.endswith(_END_OF_HEAD, 0, end)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # asyncio uses the value, aiohttp returns none
        """Keep a connection open whose client has sent its whole request and closes its side only."""
        waits = self._request_count > self._done and self._body.is_eof()
        if not waits or not self._answers_after_eof:
            return None
        self._half_closed = True
        self.close()  # after this answer
        return True

    def is_known(self) -> None:
        """Note that a request on it had a valid key. Raises ProblemError if there are too many connections."""
        if self._name is not None and not self._door.set_known(self._name):
            raise too_many_connections()

    def follows(self) -> None:
        """Note that the request follows events. Raises ProblemError if there are too many followers."""
        if self._name is not None and not self._door.set_following(self._name):
            raise too_many_connections()

    @property
    def has_left(self) -> bool:
        """Whether the client has closed the connection, or its side of it."""
        return self._half_closed or self.lost.done()

    def streams(self) -> None:
        """Note that the answer is a stream: from now on a client that closes its side has left."""
        self._answers_after_eof = False

    def request_began(self, request: web.BaseRequest) -> None:
        """Take a place for a request. Raises ProblemError if there is none, or if its client has left."""
        self._busy = True
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if self._name is not None and not self._door.begin(self._name):
            raise too_many_connections()
        self._answers_after_eof = CANCEL_HEADER not in request.headers
        if self._half_closed and not self._answers_after_eof:
            self._drop("left, and wants its request to be stopped then")

    def request_ended(self) -> None:
        self._busy = False
        if self._name is not None:
            self._door.end(self._name)
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
        if isinstance(exc, LineTooLong):
            said = problem.Problem(status=431, code="header_too_large", message="A header is larger than 8 KiB.")
        elif status == 400:
            detail = (message or "").partition("\n")[0].rstrip(":")
            said = problem.Problem(
                status=400, code="invalid_http", message=f"The request is not valid HTTP: {detail}"
            )
        else:
            said = problem.of_error(exc if isinstance(exc, Exception) else RuntimeError("no exception given"))
        response = said.response()
        response.headers["Server"] = "hermes"
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Translate refusals of the framework, such as an unknown expectation."""
        if isinstance(resp, web.HTTPException):
            resp = problem.of_error(resp).response()
        resp.headers.setdefault("Server", "hermes")
        self._done += 1
        return await super().finish_response(request, resp, start_time)

    def _refuse(self) -> None:
        assert self._wire is not None
        if self._door.refusal:
            self._wire.write(self._door.refusal)
            self._wire.close()
        else:
            self._wire.abort()

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


def too_many_connections() -> problem.ProblemError:
    message = "Too many connections from this address or in all. Nothing was stored; try again later."
    return problem.ProblemError(
        problem.Problem(status=503, code=TOO_MANY, message=message, retry_after_s=RETRY_AFTER_S, close=True)
    )


@web.middleware
async def watch_heads(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Outermost middleware: the request head is complete when it runs."""
    connection = connection_of(request)
    try:
        connection.request_began(request)
        if request.version < HttpVersion10:
            raise problem.refusal(505, "http_version_not_supported", "Use HTTP/1.1.", close=True)
        return await handler(request)
    finally:
        connection.request_ended()

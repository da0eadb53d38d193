"""Services and middlewares that the handlers of both HTTP surfaces share.

The API and the admin socket mount the same handlers. Access control is in front of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web

from hermes.adapters.http import body, presentation, problem
from hermes.adapters.http.connection import connection_of, watch_heads
from hermes.adapters.http.event_stream import PIECES_A_ROUND, STREAM, TURNSTILE
from hermes.adapters.http.key_scope import KEY
from hermes.adapters.http.late_routes import LateRoutes
from hermes.adapters.http.listener import Lifetime
from hermes.adapters.http.pages import PROBLEM_PAGE
from hermes.adapters.http.parameter import (
    COMPLETED_HEADER,
    ERROR_HEADER,
    REPLAY_HEADER,
    SESSION_HEADER,
    SHOULD_RETRY_HEADER,
    TURN_HEADER,
)
from hermes.adapters.http.stream_token import StreamToken
from hermes.adapters.http.turnstile import Turnstile
from hermes.domain.access.role import Role
from hermes.domain.errors import BusyError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.process.process_record import ProcessView
from hermes.domain.read.views import SessionView
from hermes.domain.source import Source
from hermes.domain.turn.submission import Receipt
from hermes.domain.values import dataclass
from hermes.media.file_shelf import FileShelf
from hermes.media.input_part import InputParts
from hermes.ports.children import Subagents
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.job.jobs import Jobs
from hermes.ports.operations import Operations
from hermes.ports.outbox import OutboxControl
from hermes.ports.processes import ProcessList
from hermes.ports.provider_proxy import ProviderProxy
from hermes.ports.search import Search
from hermes.ports.sessions import Sessions
from hermes.services.events.event_services import EventServices
from hermes.services.side_completion import SideCompletion

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler, Middleware

    from hermes.services.commands.service import CommandService

T = TypeVar("T")
API_PLATFORM = "api"
TURNS_A_ROUND = 8  # turns that start in one round of the event loop: a flood of them must not slow running ones
RECEIPT = web.RequestKey("receipt", Receipt)
SESSION = web.RequestKey("session", str)

_SAFETY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    sessions: Sessions
    make_commands: Callable[[], CommandService]  # imports them with their first use
    hub: Hub
    operations: Operations
    processes: ProcessList
    new_turn_id: Callable[[], TurnId]
    clock: Clock
    lifetime: Lifetime = field(default_factory=Lifetime)
    intake: Turnstile = field(default_factory=lambda: Turnstile(TURNS_A_ROUND))
    platform: str = API_PLATFORM  # platform of sessions that start here
    model_name: str = "hermes"
    max_body_bytes: int = 8 * 2**20
    body_timeout_s: float = 30
    ping_s: float = 15
    allow_yolo: bool = True
    tools: tuple[str, ...] = ()  # toolsets and tools of this surface
    text_commands: str = "all"  # slash commands that act in the text of a message: none, safe or all
    search: Search | None = None
    outbox: OutboxControl | None = None
    jobs: Jobs | None = None
    agents: Subagents | None = None
    files: FileShelf | None = None
    inputs: InputParts | None = None
    side: SideCompletion | None = None  # answers requests that need no session
    provider: ProviderProxy | None = None
    events: EventServices | None = None  # webhooks, hooks and the channel directory
    sign_token: Callable[[StreamToken], str] | None = None  # None: the server has no keys

    @property
    def commands(self) -> CommandService:
        return self.make_commands()

    def source(self, request: web.Request, user: str = "") -> Source:
        """Return the source of a request's message: a named key, else the owner."""
        if (key := request.get(KEY)) is not None:
            return Source(platform=key.platform, user=key.name, role=key.role)
        return Source(platform=self.platform, user=user, role=Role.OWNER)

    async def read_body(self, request: web.Request) -> bytes:
        return await body.read_json_body(request, limit_bytes=self.max_body_bytes, timeout_s=self.body_timeout_s)

    async def read_json(self, request: web.Request) -> Any:
        return await body.parsed(await self.read_body(request))

    async def read_turn(self, request: web.Request, check: Callable[[Any], object]) -> Any:
        """Return the checked body of a turn. Its pictures and documents are stored, or replaced by notes.

        Under load it waits for its place, and refuses a request whose client has left by then: nothing is stored.
        """
        received = await self.read_body(request)
        if await self.intake() and connection_of(request).has_left:
            raise BusyError("The client had left when its turn came up. Nothing was stored; try again.")
        read = await body.parsed(received)
        check(read)
        return read if self.inputs is None else await self.inputs.resolve(read, self.owner(request))

    def owner(self, request: web.Request) -> str:
        """Return whose files a request may use: the platform of a named key, or the owner's."""
        key = request.get(KEY)
        return API_PLATFORM if key is None else key.platform

    async def read(self, request: web.Request, kind: type[T]) -> T:
        """Return the body as a value of this type."""
        return _decode(await self.read_json(request), kind)

    async def read_optional(self, request: web.Request, kind: type[T]) -> T:
        """Return the body as a value of this type. A request without a body has no fields."""
        return _decode(await self.read_json(request) if request.can_read_body else {}, kind)

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        """Return this conversation across compressions, but not a new one that followed it."""
        if not exact:
            session = (await self.sessions.conversation(session)).id
        return await self.sessions.view(session, exact=True)

    def shown_process(self, view: ProcessView) -> dict[str, Any]:
        blocks, explanation = self.processes.blocks(view), self.processes.explain(view)
        return presentation.process(view, now=self.clock(), blocks=blocks, explanation=explanation)

    def models(self) -> list[str]:
        """Return our own name, then the configured model's."""
        return list(dict.fromkeys(filter(None, (self.model_name, self.operations.model()))))


def _decode(value: Any, kind: type[T]) -> T:
    from hermes.adapters.http.schema import decode  # noqa: PLC0415 - imports msgspec, which an idle daemon does not need

    return decode(value, kind)


def json_response(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=presentation.encode(value), content_type="application/json")


def application(routes: list[web.RouteDef], *guards: Middleware, late: Iterable[LateRoutes] = ()) -> web.Application:
    app = web.Application(middlewares=[watch_heads, answer_problems, *guards])
    app[TURNSTILE] = Turnstile(PIECES_A_ROUND)
    app.add_routes(map(body.continued_later, routes))
    for each in late:
        app.router.register_resource(each)
    app.on_response_prepare.append(_add_headers)
    return app


@web.middleware
async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Exception as error:  # outermost handler: every error becomes an answer
        if isinstance(error, ConnectionError) and _is_gone(request):
            raise
        found = problem.of_error(error)
        if STREAM not in request:
            response = request[PROBLEM_PAGE](found) if PROBLEM_PAGE in request else found.response()
            if RECEIPT in request:
                response.headers.update({COMPLETED_HEADER: "false", ERROR_HEADER: found.code})
            return response
        await request[STREAM].fail(found)
        return request[STREAM].response


def _is_gone(request: web.Request) -> bool:
    """Return whether the client closed its connection. The transport knows it before `lost` does."""
    transport = request.transport
    return transport is None or transport.is_closing() or connection_of(request).lost.done()


def remember_session(request: web.Request, session: SessionId) -> SessionId:
    """Store the effective session id for the response header."""
    request[SESSION] = session
    return session


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "hermes"
    for name, value in _SAFETY_HEADERS.items():  # pages have their own
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    if session := request.get(SESSION):
        response.headers[SESSION_HEADER] = session
    if receipt := request.get(RECEIPT):
        response.headers[TURN_HEADER] = receipt.turn
        if receipt.duplicate:
            response.headers[REPLAY_HEADER] = "true"
        if response.status == 200 and isinstance(response, web.Response):
            response.headers.setdefault(COMPLETED_HEADER, "true")
        if response.status >= 400:  # the message is stored: client libraries must not retry
            response.headers[SHOULD_RETRY_HEADER] = "false"

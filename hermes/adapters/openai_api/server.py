"""OpenAI-compatible API on a TCP port: settings, start, stop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable
from dataclasses import field

from aiohttp import web

from hermes.adapters.http.guard import RequestGuard
from hermes.adapters.http.key_scope import KeyScope
from hermes.adapters.http.listener import Lifetime, Listener
from hermes.adapters.http.pages import Pages
from hermes.adapters.http.peer_limit import PeerLimit
from hermes.adapters.http.service import Service, application
from hermes.adapters.openai_api.about_api import AboutApi
from hermes.adapters.openai_api.chat import Chat
from hermes.adapters.openai_api.command_api import CommandApi
from hermes.adapters.openai_api.events.event_api import EventApi
from hermes.adapters.openai_api.events.token_api import TokenApi
from hermes.adapters.openai_api.file_api import FileApi
from hermes.adapters.openai_api.health_api import HealthApi
from hermes.adapters.openai_api.metrics_api import MetricsApi
from hermes.adapters.openai_api.model_api import ModelApi
from hermes.adapters.openai_api.own_sessions import OwnSessions
from hermes.adapters.openai_api.process_api import ProcessApi
from hermes.adapters.openai_api.provider_api import ProviderApi
from hermes.adapters.openai_api.responses.response_api import ResponseApi
from hermes.adapters.openai_api.runs.approval_api import ApprovalApi
from hermes.adapters.openai_api.runs.run_api import RunApi
from hermes.adapters.openai_api.session_api import SessionApi
from hermes.adapters.openai_api.session_wish_api import SessionWishes
from hermes.adapters.openai_api.sessions.search_api import SearchApi
from hermes.adapters.openai_api.sessions.session_chat_api import SessionChatApi
from hermes.adapters.openai_api.sessions.session_edit_api import SessionEditApi
from hermes.adapters.openai_api.text_completion import TextCompletions
from hermes.domain.errors import AlreadyRunningError, ConfigError
from hermes.domain.values import dataclass, replace
from hermes.services.keys import KeyService

_BACKLOG = 1024  # connections that wait in the kernel
ACCEPTS = 8  # connections accepted in one round of the event loop: a flood of them must not stop running turns


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    host: str
    port: int
    key: str = field(repr=False)
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    max_body_bytes: int = 8 * 2**20
    max_connections: int = 2048
    max_connections_per_peer: int = 0  # 0: the defaults of PeerLimit
    header_timeout_s: float = 10
    body_timeout_s: float = 30
    stall_timeout_s: float = 30
    ping_s: float = 15
    model_name: str = "hermes"
    allow_yolo: bool = False
    tools: tuple[str, ...] = ()  # toolsets and tools of the API
    text_commands: str = "safe"  # none, safe or all


def api_routes(service: Service) -> list[web.RouteDef]:
    parts = (
        Chat(service),
        ModelApi(service),
        ProcessApi(service),
        CommandApi(service),
        HealthApi(service),
        FileApi(service),
        AboutApi(service),
        ProviderApi(service),
        TextCompletions(service),
    )
    sessions = (SessionApi(service), SessionEditApi(service), SearchApi(service), SessionChatApi(service))
    return [route for part in (*parts, *sessions, *_turn_parts(service)) for route in part.routes()]


def _turn_parts(service: Service) -> tuple[SessionWishes, ResponseApi, RunApi, ApprovalApi, EventApi, TokenApi]:
    turns = SessionWishes(service), ResponseApi(service), RunApi(service)
    return *turns, ApprovalApi(service), EventApi(service), TokenApi(service)


class ApiServer:
    def __init__(self, settings: ApiSettings, service: Service, keys: KeyService, pages: Pages | None = None) -> None:
        self.address = ""  # known after the start
        self._settings = settings
        self._service = replace(
            service,
            sessions=OwnSessions(service.sessions),
            lifetime=Lifetime(),
            model_name=settings.model_name,
            max_body_bytes=settings.max_body_bytes,
            body_timeout_s=settings.body_timeout_s,
            ping_s=settings.ping_s,
            allow_yolo=settings.allow_yolo,
            tools=settings.tools,
            text_commands=settings.text_commands,
            sign_token=lambda token: token.sign(settings.key),
        )
        self._scope = KeyScope(keys)
        self._pages = pages
        self._guard = RequestGuard(
            key=settings.key,
            keys=keys,
            host=settings.host,
            allowed_hosts=settings.allowed_hosts,
            cors_origins=settings.cors_origins,
            clock=service.clock,
            pages=pages,
        )
        self._listener: Listener | None = None

    async def start(self) -> None:
        settings, service = self._settings, self._service
        door = PeerLimit(in_all=settings.max_connections, per_peer=settings.max_connections_per_peer)
        metrics = MetricsApi(service, connections=lambda: door.connections)
        welcome = [HealthApi(service).welcome_route()] if self._pages is None else self._pages.routes(service)
        routes = [*api_routes(service), metrics.route(), *welcome]
        app = application(routes, self._guard.check, self._scope.check)
        app.on_response_prepare.append(self._guard.add_cors_headers)
        self._listener = Listener(
            app,
            service.lifetime,
            door=door,
            header_timeout_s=settings.header_timeout_s,
            stall_timeout_s=settings.stall_timeout_s,
        )
        loop = asyncio.get_running_loop()
        try:
            server = await self._listener.open(
                lambda factory: loop.create_server(factory, settings.host, settings.port, backlog=ACCEPTS)
            )
        except OSError as error:
            raise _not_listening(settings, error) from error
        _extend_backlog(server)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.address = f"http://{host}:{server.sockets[0].getsockname()[1]}"

    def close_intake(self) -> None:
        """Refuse new turns with 503; running answers continue."""
        self._service.lifetime.close_intake()

    async def stop(self, grace_s: float) -> None:
        if self._listener:
            await self._listener.stop(grace_s)

    def set_cors_origins(self, origins: Iterable[str]) -> None:
        self._guard.cors_origins = frozenset(origins)


def _extend_backlog(server: asyncio.Server) -> None:
    """Let more connections wait than asyncio accepts in a round. It has one parameter for both."""
    for each in server.sockets:
        with each.dup() as listening:
            listening.listen(_BACKLOG)


def _not_listening(settings: ApiSettings, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return AlreadyRunningError(
            f"port {settings.port} on {settings.host} is in use by another program: stop it, or set api.port"
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return ConfigError(f"cannot listen on {settings.host} port {settings.port} (api.host, api.port): {reason}")

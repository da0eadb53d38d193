"""OpenAI-compatible API on a TCP port: settings, start, stop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from hermes.adapters.http.guard import RequestGuard
from hermes.adapters.http.key_scope import KeyScope
from hermes.adapters.http.late_routes import LateRoutes
from hermes.adapters.http.listener import Lifetime, Listener
from hermes.adapters.http.pages import Pages
from hermes.adapters.http.peer_limit import PeerLimit
from hermes.adapters.http.service import Service, application
from hermes.adapters.openai_api.health_api import HealthApi
from hermes.adapters.openai_api.metrics_api import MetricsApi
from hermes.adapters.openai_api.own_sessions import OwnSessions
from hermes.domain.errors import AlreadyRunningError, ConfigError
from hermes.domain.values import dataclass, replace
from hermes.services.keys import KeyService

if TYPE_CHECKING:
    from aiohttp import web

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


def late_api_routes(service: Service) -> LateRoutes:
    """Return the routes of the API, which are imported with the first request for one of them."""

    def load() -> Callable[[], list[web.RouteDef]]:
        from hermes.adapters.openai_api.routes import api_routes  # noqa: PLC0415

        return partial(api_routes, service)

    return LateRoutes(load)


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
        health = HealthApi(service)
        metrics = MetricsApi(service, connections=lambda: door.connections)
        welcome = [health.welcome_route()] if self._pages is None else []
        app = application(
            [*health.routes(), metrics.route(), *welcome],
            self._guard.check,
            self._scope.check,
            late=self._late_routes(),
        )
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

    def _late_routes(self) -> list[LateRoutes]:
        service, pages = self._service, self._pages
        own = late_api_routes(service)
        return [own] if pages is None else [LateRoutes(partial(pages.load, service), pages.owns), own]

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

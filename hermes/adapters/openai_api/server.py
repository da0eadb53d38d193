"""OpenAI-compatible API on a TCP port: settings, start, stop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import field

from aiohttp import web

from hermes.adapters.http.guard import RequestGuard
from hermes.adapters.http.key_scope import KeyScope
from hermes.adapters.http.listener import Lifetime, Listener
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
from hermes.domain.ids import TurnId
from hermes.domain.values import dataclass
from hermes.media.file_shelf import FileShelf
from hermes.media.input_part import InputParts
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.operations import Operations
from hermes.ports.processes import ProcessList
from hermes.ports.provider_proxy import ProviderProxy
from hermes.ports.search import Search
from hermes.ports.sessions import Sessions
from hermes.services.commands.service import CommandService
from hermes.services.keys import KeyService
from hermes.services.side_completion import SideCompletion

_BACKLOG = 512


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
    def __init__(
        self,
        settings: ApiSettings,
        *,
        sessions: Sessions,
        commands: CommandService,
        hub: Hub,
        operations: Operations,
        processes: ProcessList,
        new_turn_id: Callable[[], TurnId],
        clock: Clock,
        keys: KeyService,
        search: Search | None = None,
        files: FileShelf | None = None,
        inputs: InputParts | None = None,
        side: SideCompletion | None = None,
        provider: ProviderProxy | None = None,
    ) -> None:
        self.address = ""  # known after the start
        self._settings = settings
        self._sessions = OwnSessions(sessions)
        self._scope = KeyScope(keys)
        self._commands = commands
        self._hub = hub
        self._operations = operations
        self._processes = processes
        self._new_turn_id = new_turn_id
        self._clock = clock
        self._search = search
        self._files = files
        self._inputs = inputs
        self._side = side
        self._provider = provider
        self._guard = RequestGuard(
            key=settings.key,
            keys=keys,
            host=settings.host,
            allowed_hosts=settings.allowed_hosts,
            cors_origins=settings.cors_origins,
            clock=clock,
        )
        self._lifetime: Lifetime | None = None
        self._listener: Listener | None = None

    async def start(self) -> None:
        settings = self._settings
        self._lifetime = Lifetime()
        service = self._service(self._lifetime)
        door = PeerLimit(in_all=settings.max_connections, per_peer=settings.max_connections_per_peer)
        metrics = MetricsApi(service, connections=lambda: door.connections)
        routes = [*api_routes(service), HealthApi(service).welcome_route(), metrics.route()]
        app = application(routes, self._guard.check, self._scope.check)
        app.on_response_prepare.append(self._guard.add_cors_headers)
        self._listener = Listener(
            app,
            self._lifetime,
            door=door,
            header_timeout_s=settings.header_timeout_s,
            stall_timeout_s=settings.stall_timeout_s,
        )
        loop = asyncio.get_running_loop()
        try:
            server = await self._listener.open(
                lambda factory: loop.create_server(factory, settings.host, settings.port, backlog=_BACKLOG)
            )
        except OSError as error:
            raise _not_listening(settings, error) from error
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.address = f"http://{host}:{server.sockets[0].getsockname()[1]}"

    def close_intake(self) -> None:
        """Refuse new turns with 503; running answers continue."""
        if self._lifetime:
            self._lifetime.close_intake()

    async def stop(self, grace_s: float) -> None:
        if self._listener:
            await self._listener.stop(grace_s)

    def set_cors_origins(self, origins: Iterable[str]) -> None:
        self._guard.cors_origins = frozenset(origins)

    def _service(self, lifetime: Lifetime) -> Service:
        return Service(
            sessions=self._sessions,
            commands=self._commands,
            hub=self._hub,
            operations=self._operations,
            processes=self._processes,
            new_turn_id=self._new_turn_id,
            clock=self._clock,
            lifetime=lifetime,
            model_name=self._settings.model_name,
            max_body_bytes=self._settings.max_body_bytes,
            body_timeout_s=self._settings.body_timeout_s,
            ping_s=self._settings.ping_s,
            allow_yolo=self._settings.allow_yolo,
            tools=self._settings.tools,
            text_commands=self._settings.text_commands,
            search=self._search,
            files=self._files,
            inputs=self._inputs,
            side=self._side,
            provider=self._provider,
            sign_token=lambda token: token.sign(self._settings.key),
        )


def _not_listening(settings: ApiSettings, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return AlreadyRunningError(
            f"port {settings.port} on {settings.host} is in use by another program: stop it, or set api.port"
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return ConfigError(f"cannot listen on {settings.host} port {settings.port} (api.host, api.port): {reason}")

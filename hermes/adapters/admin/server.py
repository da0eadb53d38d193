"""Admin socket: HTTP over a Unix socket in Hermes' home, for its owner and root.

`owner_check.py` decides about access. An old socket is removed only if no daemon answers on it.
"""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from hermes.adapters.admin.owner_check import OwnerCheck
from hermes.adapters.chat.services import ChatServices
from hermes.adapters.http.late_routes import LateRoutes
from hermes.adapters.http.listener import Lifetime, Listener
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import Service, application
from hermes.config.admin_token import create_token, token_file
from hermes.config.log import redact
from hermes.config.trust import WorkingDirectories
from hermes.domain.errors import AlreadyRunningError, HomeError
from hermes.domain.values import replace
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.services.keys import KeyService
from hermes.services.learning.skill_service import SkillService
from hermes.services.memory.memory_service import MemoryService
from hermes.services.profile.profile_service import ProfileService

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_BACKLOG = 64
_HEADER_TIMEOUT_S = 10
_STALL_TIMEOUT_S = 30


@web.middleware
async def point_to_the_list(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound as error:
        raise refusal(404, "not_found", "There is no such route. GET / lists all routes.") from error


class AdminServer:
    def __init__(
        self,
        socket_path: Path,
        service: Service,
        keys: KeyService,
        *,
        chat_services: ChatServices | None = None,
        workdirs: WorkingDirectories | None = None,
        login_code: Callable[[], str] | None = None,
        skills: SkillService | None = None,
        memories: MemoryService | None = None,
        profile: ProfileService | None = None,
        mcp: McpServers | None = None,
    ) -> None:
        self._mcp = mcp
        self._path = socket_path
        self._service = replace(service, lifetime=Lifetime(), platform="cli")
        self._keys = keys
        self._chat_services = chat_services
        self._workdirs = workdirs
        self._login_code = login_code
        self._skills = skills
        self._memories = memories
        self._profile = profile
        self._listener: Listener | None = None

    async def start(self) -> None:
        await self._remove_old_socket()
        bound = await asyncio.to_thread(_bind, self._path)
        token = await asyncio.to_thread(
            create_token, token_file(self._path)
        )  # clients read it once they are connected
        redact(token)
        owner = OwnerCheck(token)
        self._listener = Listener(
            application([], owner.check, point_to_the_list, late=[LateRoutes(self._load_routes)]),
            self._service.lifetime,
            door=owner,
            header_timeout_s=_HEADER_TIMEOUT_S,
            stall_timeout_s=_STALL_TIMEOUT_S,
        )
        loop = asyncio.get_running_loop()
        await self._listener.open(lambda factory: loop.create_unix_server(factory, sock=bound, backlog=_BACKLOG))

    def _load_routes(self) -> Callable[[], list[web.RouteDef]]:
        from hermes.adapters.admin.routes import admin_routes  # noqa: PLC0415

        return partial(
            admin_routes,
            self._service,
            self._keys,
            chat_services=self._chat_services,
            workdirs=self._workdirs,
            login_code=self._login_code,
            skills=self._skills,
            memories=self._memories,
            profile=self._profile,
            mcp=self._mcp,
        )

    async def stop(self, grace_s: float) -> None:
        if self._listener:
            await self._listener.stop(grace_s)
            await asyncio.to_thread(self._path.unlink, missing_ok=True)
            self._listener = None

    async def _remove_old_socket(self) -> None:
        try:
            mode = (await asyncio.to_thread(self._path.lstat)).st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(mode):
            raise HomeError(f"cannot create the admin socket: {self._path} exists and is not a socket; move it away")
        try:
            _, writer = await asyncio.open_unix_connection(self._path)
        except ConnectionRefusedError:
            await asyncio.to_thread(self._path.unlink)
            return
        writer.close()
        await writer.wait_closed()
        raise AlreadyRunningError(f"another daemon answers on {self._path}")


def _bind(path: Path) -> socket.socket:
    """Bind the socket. Clients cannot connect before it listens, so the mode is set in time."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        bound.close()
        raise HomeError(f"cannot create the admin socket {path}: {error}") from error
    return bound

"""Admin socket: HTTP over a Unix socket in Hermes' home, for its owner and root.

`owner_check.py` decides about access. An old socket is removed only if no daemon answers on it.
"""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from hermes.adapters.admin.chat_api import ChatApi
from hermes.adapters.admin.key_api import KeyApi
from hermes.adapters.admin.operator_api import OperatorApi, point_to_the_list
from hermes.adapters.admin.owner_check import OwnerCheck
from hermes.adapters.chat.services import ChatServices
from hermes.adapters.http.listener import Lifetime, Listener
from hermes.adapters.http.service import Service, application
from hermes.adapters.openai_api.server import api_routes
from hermes.config.admin_token import create_token, token_file
from hermes.config.log import redact
from hermes.config.trust import WorkingDirectories
from hermes.domain.errors import AlreadyRunningError, HomeError
from hermes.domain.ids import TurnId
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

_BACKLOG = 64
_HEADER_TIMEOUT_S = 10
_STALL_TIMEOUT_S = 30


class AdminServer:
    def __init__(
        self,
        socket_path: Path,
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
        provider: ProviderProxy | None = None,
        chat_services: ChatServices | None = None,
        workdirs: WorkingDirectories | None = None,
    ) -> None:
        self._path = socket_path
        self._sessions = sessions
        self._commands = commands
        self._hub = hub
        self._operations = operations
        self._processes = processes
        self._new_turn_id = new_turn_id
        self._clock = clock
        self._search = search
        self._files = files
        self._inputs = inputs
        self._provider = provider
        self._keys = keys
        self._chat_services = chat_services
        self._workdirs = workdirs
        self._lifetime: Lifetime | None = None
        self._listener: Listener | None = None

    async def start(self) -> None:
        await self._remove_old_socket()
        bound = await asyncio.to_thread(_bind, self._path)
        token = await asyncio.to_thread(
            create_token, token_file(self._path)
        )  # clients read it once they are connected
        redact(token)
        owner = OwnerCheck(token)
        self._lifetime = Lifetime()
        service = Service(
            sessions=self._sessions,
            commands=self._commands,
            hub=self._hub,
            operations=self._operations,
            processes=self._processes,
            new_turn_id=self._new_turn_id,
            clock=self._clock,
            lifetime=self._lifetime,
            platform="cli",
            search=self._search,
            files=self._files,
            inputs=self._inputs,
            provider=self._provider,
        )
        chat = None if self._chat_services is None else ChatApi(service, self._chat_services, self._workdirs)
        routes = [*OperatorApi(service, KeyApi(service, self._keys), chat).routes(), *api_routes(service)]
        self._listener = Listener(
            application(routes, owner.check, point_to_the_list),
            self._lifetime,
            door=owner,
            header_timeout_s=_HEADER_TIMEOUT_S,
            stall_timeout_s=_STALL_TIMEOUT_S,
        )
        loop = asyncio.get_running_loop()
        await self._listener.open(lambda factory: loop.create_unix_server(factory, sock=bound, backlog=_BACKLOG))

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

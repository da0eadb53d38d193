"""HTTP servers of a daemon: the admin socket, and the API if it is enabled."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from hermes.app.factories.api_files import make_file_shelf, make_input_parts
from hermes.app.factories.dashboard import has_dashboard, make_dashboard
from hermes.app.host.os_process import connections_within
from hermes.config.trust import WorkingDirectories
from hermes.domain.values import replace
from hermes.services.keys import KeyService
from hermes.system.lean_aiohttp import import_aiohttp

if TYPE_CHECKING:
    from hermes.adapters.openai_api.server import ApiServer, ApiSettings
    from hermes.app.foundation import Foundation
    from hermes.app.parts import DaemonParts
    from hermes.config.settings import Config

_GRACE_S = 1.0


def import_servers() -> None:
    """Import the servers: aiohttp takes longer than everything else together. For a thread, while the store opens."""
    import_aiohttp()
    import hermes.adapters.admin.server  # noqa: PLC0415
    import hermes.adapters.openai_api.server  # noqa: PLC0415
    import hermes.web.dashboard  # noqa: F401, PLC0415


async def serve(stack: AsyncExitStack, base: Foundation, parts: DaemonParts) -> ApiServer | None:
    """Start the servers; `stack` stops them. Returns the API server, if there is one."""
    await base.import_of_servers
    from hermes.adapters.admin.server import AdminServer  # noqa: PLC0415 - slow, see `import_servers`
    from hermes.adapters.http.service import Service  # noqa: PLC0415
    from hermes.adapters.openai_api.server import ApiServer  # noqa: PLC0415
    from hermes.web.login_book import LoginBook  # noqa: PLC0415

    system = parts.system
    stack.push_async_callback(parts.agent.proxy.close)
    shelf = make_file_shelf(base.config, base.home)
    service = Service(
        sessions=system.sessions,
        make_commands=parts.commands,
        hub=system.ports.hub,
        operations=parts.operations,
        processes=system.processes,
        new_turn_id=system.ports.ids.turn,
        clock=system.ports.clock,
        search=parts.search,
        outbox=system.outbox,
        events=parts.events,
        jobs=system.jobs.service,
        agents=system.delegations,
        provider=parts.agent.proxy,
        files=shelf,
        inputs=make_input_parts(base.config, base.home, shelf, parts.sandbox),
    )
    keys = KeyService(system.sessions, system.ports.clock)
    own = (base.home.data_dir, base.home.config_file.parent)
    workdirs = WorkingDirectories(folder_of=parts.folders.path, own=own)
    logins = LoginBook(system.ports.clock) if has_dashboard(base) else None
    admin = AdminServer(
        base.home.socket,
        service,
        keys,
        chat_services=system.chat,
        workdirs=workdirs,
        skills=parts.skills,
        memories=parts.agent.memories,
        profile=parts.profile,
        mcp=parts.agent.mcp,
        login_code=None if logins is None else logins.create_code,
    )
    await admin.start()
    stack.push_async_callback(admin.stop, _GRACE_S)
    if base.stop.embedded or not base.config.api.enabled:
        return None
    side = parts.agent.side
    pages = None if logins is None else make_dashboard(base, parts, keys, logins)
    api = ApiServer(_api_settings(base.config, base.api_key.reveal()), replace(service, side=side), keys, pages)
    await api.start()
    stack.push_async_callback(api.stop, _GRACE_S)
    base.facts["address"] = api.address
    return api


def _api_settings(config: Config, key: str) -> ApiSettings:
    from hermes.adapters.openai_api.server import ApiSettings  # noqa: PLC0415 - slow, see `import_servers`

    return ApiSettings(
        host=config.api.host,
        port=config.api.port,
        key=key,
        cors_origins=config.api.cors_origins,
        allowed_hosts=config.api.allowed_hosts,
        max_body_bytes=config.api.max_body_bytes,
        max_connections=connections_within(config.api.max_connections),
        max_connections_per_peer=config.api.max_connections_per_peer,
        tools=config.tools.api,
        allow_yolo=config.api.allow_yolo,
        text_commands=config.api.commands,
    )

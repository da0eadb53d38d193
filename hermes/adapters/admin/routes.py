"""All routes of the admin socket. Imported with the first request for one of them."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from hermes.adapters.admin.chat_api import ChatApi
from hermes.adapters.admin.dashboard_api import DashboardApi
from hermes.adapters.admin.key_api import KeyApi
from hermes.adapters.admin.mcp_api import McpApi
from hermes.adapters.admin.memory_api import MemoryApi
from hermes.adapters.admin.operator_api import OperatorApi
from hermes.adapters.admin.profile_api import ProfileApi
from hermes.adapters.admin.skill_api import SkillApi
from hermes.adapters.chat.services import ChatServices
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.routes import api_routes
from hermes.config.trust import WorkingDirectories
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.services.keys import KeyService
from hermes.services.learning.skill_service import SkillService
from hermes.services.memory.memory_service import MemoryService
from hermes.services.profile.profile_service import ProfileService


def admin_routes(
    service: Service,
    keys: KeyService,
    *,
    chat_services: ChatServices | None,
    workdirs: WorkingDirectories | None,
    login_code: Callable[[], str] | None,
    skills: SkillService | None,
    memories: MemoryService | None,
    profile: ProfileService | None = None,
    mcp: McpServers | None,
) -> list[web.RouteDef]:
    chat = None if chat_services is None else ChatApi(service, chat_services, workdirs)
    own = OperatorApi(
        service,
        KeyApi(service, keys),
        chat,
        DashboardApi(service, login_code),
        skills=None if skills is None else SkillApi(service, skills),
        memory=None if memories is None else MemoryApi(service, memories),
        profile=None if profile is None else ProfileApi(service, profile),
        mcp=None if mcp is None else McpApi(service, mcp),
    )
    return [*own.routes(), *api_routes(service)]

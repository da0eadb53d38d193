"""All routes that the API and the admin socket have in common. Imported with the first request for one of them."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.about_api import AboutApi
from hermes.adapters.openai_api.chat import Chat
from hermes.adapters.openai_api.command_api import CommandApi
from hermes.adapters.openai_api.events.event_api import EventApi
from hermes.adapters.openai_api.events.token_api import TokenApi
from hermes.adapters.openai_api.events.webhook_api import WebhookApi
from hermes.adapters.openai_api.file_api import FileApi
from hermes.adapters.openai_api.health_api import HealthApi
from hermes.adapters.openai_api.jobs.job_api import JobApi
from hermes.adapters.openai_api.mcp.mcp_server_api import McpServerApi
from hermes.adapters.openai_api.model_api import ModelApi
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


def api_routes(service: Service) -> list[web.RouteDef]:
    parts = (
        Chat(service),
        ModelApi(service),
        ProcessApi(service),
        JobApi(service),
        CommandApi(service),
        HealthApi(service),
        FileApi(service),
        AboutApi(service),
        ProviderApi(service),
        TextCompletions(service),
        WebhookApi(service),
        McpServerApi(service),
    )
    sessions = (SessionApi(service), SessionEditApi(service), SearchApi(service), SessionChatApi(service))
    return [route for part in (*parts, *sessions, *_turn_parts(service)) for route in part.routes()]


def _turn_parts(service: Service) -> tuple[SessionWishes, ResponseApi, RunApi, ApprovalApi, EventApi, TokenApi]:
    turns = SessionWishes(service), ResponseApi(service), RunApi(service)
    return *turns, ApprovalApi(service), EventApi(service), TokenApi(service)

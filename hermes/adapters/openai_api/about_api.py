"""Routes about the server itself: its state, capabilities and tools."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.openai_api.openapi.lazy import operations
from hermes.config.toolset import TOOLSETS

_FEATURES = {
    "chat_completions": True,
    "chat_completions_streaming": True,
    "completions": True,
    "responses_api": True,
    "responses_streaming": True,
    "run_submission": True,
    "run_status": True,
    "run_list": True,
    "run_events_sse": True,
    "run_events_resume": True,
    "run_stop": True,
    "run_approval": True,
    "approval_list": True,
    "events_of_all_sessions": True,
    "stream_tokens": True,
    "session_resources": True,
    "session_chat": True,
    "session_fork": True,
    "session_search": True,
    "session_continuity_header": "X-Hermes-Session-Id",
    "session_key_header": "X-Hermes-Session-Key",
    "idempotency_keys": True,
    "files": True,
    "pictures": True,
}


class AboutApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/health", self.alive),
            web.get("/health/detailed", self.detailed),
            web.get("/v1/capabilities", self.capabilities),
            web.get("/v1/toolsets", self.toolsets),
        ]

    async def alive(self, _request: web.Request) -> web.Response:
        return json_response(
            {"status": "ok", "platform": "hermes-agent", "version": self._service.operations.version()}
        )

    async def detailed(self, _request: web.Request) -> web.Response:
        """Return the state of the daemon and its platforms, for the owner."""
        info = self._service.operations.info()
        names = ("version", "pid", "uptime_s", "ready", "reason", "restarting", "turns", "platforms", "model_health")
        shown = {name: info[name] for name in names if name in info}
        state = "running" if self._service.lifetime.intake_open else "draining"
        return json_response({"status": "ok", "platform": "hermes-agent", "gateway_state": state, **shown})

    async def capabilities(self, _request: web.Request) -> web.Response:
        provider = self._service.provider
        passes_on = provider is not None and provider.offered
        endpoints = {each.id: {"method": each.route.split()[0], "path": each.path} for each in await operations()}
        return json_response(
            {
                "object": "hermes.api_server.capabilities",
                "platform": "hermes-agent",
                "version": self._service.operations.version(),
                "model": self._service.model_name,
                "auth": {"type": "bearer", "required": True},
                "features": {**_FEATURES, "embeddings": passes_on, "audio": passes_on, "images": passes_on},
                "endpoints": endpoints,
            }
        )

    async def toolsets(self, _request: web.Request) -> web.Response:
        return json_response({"object": "list", "data": [self._toolset(name) for name in TOOLSETS]})

    def _toolset(self, name: str) -> JsonObject:
        chosen, tools = self._service.tools, TOOLSETS[name]
        enabled = [tool for tool in tools if name in chosen or tool in chosen]
        return {"name": name, "enabled": bool(enabled), "tools": list(tools)}

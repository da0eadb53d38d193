"""Routes without a key: health, readiness, the OpenAPI document, and a page for browsers."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http.guard import WELCOME_PATH
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.openai_api.openapi.lazy import document
from hermes.adapters.openai_api.welcome_page import welcome_page


class HealthApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/health", self.alive),
            web.get("/health/ready", self.ready),
            web.get("/openapi.json", self.openapi),
        ]

    def welcome_route(self) -> web.RouteDef:
        """Return the route of the page, which only the TCP server has: `/` of the admin socket lists its routes."""
        return web.get(WELCOME_PATH, self.welcome)

    async def welcome(self, _request: web.Request) -> web.Response:
        return web.Response(text=welcome_page(self._service.operations.version()), content_type="text/html")

    async def alive(self, _request: web.Request) -> web.Response:
        return json_response({"status": "ok", "version": self._service.operations.version()})

    async def ready(self, _request: web.Request) -> web.Response:
        """Return whether the daemon takes work. Strangers can ask, so it names no endpoint, path or error."""
        is_open = self._service.lifetime.intake_open
        if is_open and not self._service.operations.ready():
            return json_response({"status": "ready"})
        reason = "unavailable" if is_open else "stopping"
        response = json_response({"status": "not ready", "reason": reason}, status=503)
        response.headers["Retry-After"] = "5"
        return response

    async def openapi(self, _request: web.Request) -> web.Response:
        return json_response(await document(self._service.operations.version()))

"""Admin API for MCP servers: what `hermes mcp` shows and does."""

from __future__ import annotations

from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.schema import Fields, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.mcp.mcp_question import McpQuestion
from hermes.ports.mcp_servers.mcp_control import McpServers


class McpAnswerBody(Fields):
    answer: Annotated[Text, Meta(max_length=20_000)] | None = None


class McpApi:
    def __init__(self, service: Service, servers: McpServers) -> None:
        self._service = service
        self._servers = servers

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [
            (web.get("/mcp/servers", self.listed), "State of the MCP servers; starts none"),
            (web.get("/mcp/servers/{name}", self.shown), "An MCP server and its tools"),
            (web.post("/mcp/servers/{name}/test", self.tested), "Start an MCP server and list its tools"),
            (web.post("/mcp/servers/{name}/approve", self.approve), "Accept the descriptions of its tools"),
            (web.post("/mcp/servers/{name}/stop", self.stop), "Stop it and forget its failures"),
            (web.get("/mcp/questions", self.questions), "Open questions of MCP servers"),
            (web.post("/mcp/questions/{id}", self.answer), 'Answer a question; {"answer": null} declines'),
        ]

    async def listed(self, _request: web.Request) -> web.Response:
        return json_response({"servers": await self._servers.listed()})

    async def shown(self, request: web.Request) -> web.Response:
        return json_response(await self._servers.shown(request.match_info["name"]))

    async def tested(self, request: web.Request) -> web.Response:
        return json_response(await self._servers.tested(request.match_info["name"]))

    async def approve(self, request: web.Request) -> web.Response:
        return json_response(await self._servers.approve(request.match_info["name"]))

    async def stop(self, request: web.Request) -> web.Response:
        return json_response(await self._servers.stop(request.match_info["name"]))

    async def questions(self, _request: web.Request) -> web.Response:
        return json_response({"questions": [_shown(each) for each in await self._servers.open_questions()]})

    async def answer(self, request: web.Request) -> web.Response:
        body = await self._service.read_optional(request, McpAnswerBody)
        question, waited = await self._servers.answer(request.match_info["id"], body.answer)
        return json_response({**_shown(question), "call_waited": waited})


def _shown(question: McpQuestion) -> dict[str, Any]:
    return {
        "id": question.id,
        "server": question.server,
        "session_id": question.session,
        "message": question.message,
        "schema": question.schema,
        "url": question.url,
        "state": question.state.value,
        "asked_at": question.asked_at,
    }

"""POST /mcp: the Model Context Protocol over streamable HTTP, without sessions. `hermes mcp serve` uses it, too.

Each request is answered in one JSON document, so that nothing is lost when the daemon restarts. A client that leaves
cancels its request; a turn that it has started goes on.
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from hermes import __version__
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.listener import until
from hermes.adapters.http.presentation import encode
from hermes.adapters.http.problem import ProblemError, of_error
from hermes.adapters.http.schema import decode, inline_schema
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.openai_api.mcp.json_rpc import (
    VERSIONS,
    RpcCode,
    RpcError,
    RpcRequest,
    failure,
    id_of,
    initialized,
    read_request,
    result,
    shown_name,
)
from hermes.adapters.openai_api.mcp.tool_set import ServedTool, ServedTools
from hermes.domain.errors import HermesError, StoppingError

VERSION_HEADER = "MCP-Protocol-Version"
_INSTRUCTIONS = (
    "Hermes keeps long-lived conversations with an AI agent. Send messages with messages_send, find earlier ones "
    "with conversations_list, messages_read and messages_search, and follow what happens with events_wait."
)


class McpServerApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._tools = ServedTools(service)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/mcp", self.take)]

    async def take(self, request: web.Request) -> web.Response:
        """Answer one message."""
        asked_version = request.headers.get(VERSION_HEADER)
        if asked_version is not None and asked_version not in VERSIONS:
            text = f"the protocol version is not supported; supported are {', '.join(VERSIONS)}"
            return json_response(failure(None, RpcError(RpcCode.INVALID_REQUEST, text)), status=400)
        value = await self._service.read_json(request)
        try:
            asked = read_request(value)
            if asked.id is None:
                return web.Response(status=202)
            return json_response(result(asked.id, await self._result(request, asked)))
        except RpcError as error:
            status = 400 if error.code is RpcCode.INVALID_REQUEST else 200
            return json_response(failure(id_of(value), error), status=status)

    async def _result(self, request: web.Request, asked: RpcRequest) -> dict[str, Any]:
        match asked.method:
            case "initialize":
                return initialized(asked.params, version=__version__, instructions=_INSTRUCTIONS)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [_listed(each) for each in self._tools.offered().values()]}
            case "tools/call":
                return await self._called(request, asked.params)
            case _:
                raise RpcError(RpcCode.NO_METHOD, f"there is no method {shown_name(asked.method)}")

    async def _called(self, request: web.Request, params: dict[str, Any]) -> dict[str, Any]:
        """Run a tool. Its errors are results, so that the model of the client can read them."""
        name = params.get("name")
        tool = self._tools.offered().get(name) if isinstance(name, str) else None
        if tool is None:
            raise RpcError(RpcCode.INVALID_PARAMS, f"there is no tool {shown_name(name)}")
        try:
            given = decode(params.get("arguments") or {}, tool.input)
            lost, over = connection_of(request).lost, self._service.lifetime.over
            found = await until(tool.run(request, given), lost, over)
            if found is None:
                raise StoppingError("the daemon is stopping; what was stored continues after the next start")
        except (HermesError, ProblemError) as error:
            return _text(of_error(error).message, is_error=True)
        return {**_text(encode(found).decode(), is_error=False), "structuredContent": json.loads(encode(found))}


def _listed(tool: ServedTool) -> dict[str, Any]:
    schema = inline_schema(tool.input)
    return {
        "name": tool.name,
        "description": tool.about,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": tool.reads, "destructiveHint": False, "openWorldHint": not tool.reads},
    }


def _text(text: str, *, is_error: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}

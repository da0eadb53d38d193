"""Tools of the agent that call MCP servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from hermes.domain.mcp.catalogue import McpTool, ToolKind
from hermes.domain.mcp.server_spec import McpServerSpec, McpTrust
from hermes.domain.mcp.tool_name import TOOLSET, toolset_of
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.mcp.server import McpServer
from hermes.tools.tool import Tool, ToolContext, ToolResult
from hermes.tools.tool_schema import ArgumentError

_READS = frozenset({ToolKind.LIST_RESOURCES, ToolKind.LIST_PROMPTS, ToolKind.GET_PROMPT})


def agent_tools(server: McpServer) -> list[Tool]:
    """Return the accepted tools of a server. A server that was not listed yet has none."""
    if not server.spec.enabled or server.catalogue is None or not server.is_learned:
        return []
    return [_agent_tool(server, each) for each in server.catalogue.offered]


def _agent_tool(server: McpServer, listed: McpTool) -> Tool:
    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        return await server.call(listed, arguments, context)

    schema = json.loads(listed.schema)
    return Tool(
        name=listed.name,
        toolset=TOOLSET,
        description=listed.description or f"Tool {listed.remote} of the MCP server {server.name}.",
        parameters=schema,
        run=run,
        parallel=server.spec.parallel,
        effect=Effect.EFFECT,  # whatever the server says of itself
        available=lambda: "",
        decide=partial(_gate, server.spec, listed),
        check=partial(_checked, schema),
        also_in=(toolset_of(server.name),),
        least=server.spec.role,
    )


def asks(spec: McpServerSpec, tool: McpTool) -> bool:
    """Return whether a call needs approval, unless it is granted."""
    match spec.trust:
        case McpTrust.FULL:
            return False
        case McpTrust.READ_ONLY:
            return not tool.read_only
        case McpTrust.ASK:
            return tool.kind not in _READS


def _gate(spec: McpServerSpec, tool: McpTool, _arguments: Mapping[str, Any], _context: ToolContext) -> Gate:
    if not asks(spec, tool):
        return Gate()
    what = "may change or delete things" if tool.destructive else "acts outside the sandbox"
    return Gate(
        verdict=Verdict.ASK,
        reason=f"the tool {tool.remote} of the MCP server {spec.name} {what}",
        rules=(f"{tool.name}",),
    )


def _checked(schema: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """Check what every server expects; the server checks the rest itself."""
    if not isinstance(arguments, dict):
        raise ArgumentError("the arguments must be a JSON object")
    properties = schema.get("properties") or {}
    listed = schema.get("required")
    required = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    if missing := [name for name in required if name not in arguments]:
        raise ArgumentError(f"the argument {missing[0]!r} is missing")
    if schema.get("additionalProperties") is False and (unknown := sorted(set(arguments) - set(properties))):
        raise ArgumentError(f"unknown argument {unknown[0]!r}; known are {', '.join(properties) or 'none'}")
    return dict(arguments)

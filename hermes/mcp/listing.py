"""Catalogue entries of what a server lists: its tools, and tools of ours for its resources and prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hermes.domain.mcp.catalogue import MAX_TOOLS, McpTool, ToolKind, bounded_description, bounded_schema
from hermes.domain.mcp.server_spec import McpServerSpec
from hermes.domain.mcp.tool_name import is_selected, public_names

if TYPE_CHECKING:
    from hermes.mcp.connection import Listing

_TEXT: Final = {"type": "string"}
_CURSOR: Final = {"cursor": {**_TEXT, "description": "from the page before"}}
_ABOUT: Final = {
    ToolKind.LIST_RESOURCES: "List the resources of the MCP server {}, with their URIs.",
    ToolKind.READ_RESOURCE: "Read a resource of the MCP server {}.",
    ToolKind.LIST_PROMPTS: "List the prompt templates of the MCP server {}, with their arguments.",
    ToolKind.GET_PROMPT: "Get a prompt template of the MCP server {}, filled with arguments.",
}
_PROPERTIES: Final[dict[ToolKind, tuple[dict[str, Any], list[str]]]] = {
    ToolKind.LIST_RESOURCES: (_CURSOR, []),
    ToolKind.READ_RESOURCE: ({"uri": _TEXT}, ["uri"]),
    ToolKind.LIST_PROMPTS: (_CURSOR, []),
    ToolKind.GET_PROMPT: (
        {"name": _TEXT, "arguments": {"type": "object", "additionalProperties": {"type": "string"}}},
        ["name"],
    ),
}


def tools_of(spec: McpServerSpec, listing: Listing) -> tuple[McpTool, ...]:
    """Return the selected tools in the order of their names, so that the model's prefix cache holds."""
    selected = [each for each in listing.tools if is_selected(each.name, include=spec.include, exclude=spec.exclude)][
        :MAX_TOOLS
    ]
    added = [
        kind
        for kind, is_offered in (
            (ToolKind.LIST_RESOURCES, listing.resources and spec.resources),
            (ToolKind.READ_RESOURCE, listing.resources and spec.resources),
            (ToolKind.LIST_PROMPTS, listing.prompts and spec.prompts),
            (ToolKind.GET_PROMPT, listing.prompts and spec.prompts),
        )
        if is_offered and not any(each.name == kind.value for each in selected)
    ]
    names = public_names(spec.name, [*(each.name for each in selected), *added])
    tools = _once([_tool(names[each.name], each) for each in selected if each.name in names])
    ours = [_own_tool(names[kind], kind, spec.name) for kind in added if kind in names]
    return tuple(sorted((*tools, *ours), key=lambda each: each.name))


def _once(tools: Sequence[McpTool]) -> list[McpTool]:
    """Leave out tools that a server lists twice."""
    return list({each.name: each for each in reversed(tools)}.values())


def _tool(name: str, listed: Any) -> McpTool:
    hints = listed.annotations
    return McpTool(
        name=name,
        remote=listed.name,
        description=bounded_description(listed.description or listed.title or ""),
        schema=bounded_schema(listed.input_schema),
        read_only=bool(hints is not None and hints.read_only_hint),
        destructive=bool(hints is not None and hints.destructive_hint),
    )


def _own_tool(name: str, kind: ToolKind, server: str) -> McpTool:
    properties, required = _PROPERTIES[kind]
    return McpTool(
        name=name,
        remote=kind.value,
        kind=kind,
        description=_ABOUT[kind].format(server),
        schema=json.dumps({"type": "object", "properties": properties, "required": required}),
        read_only=True,
    )

"""MCP port: the configured servers, as people see and control them."""

from __future__ import annotations

from typing import Any, Protocol

from hermes.domain.mcp.mcp_question import McpQuestion


class McpServers(Protocol):
    """All methods with a name raise BadInputError if there is no such server or question."""

    async def listed(self) -> list[dict[str, Any]]:
        """Return the state of all servers. Starts none."""

    async def shown(self, name: str) -> dict[str, Any]:
        """Return the state of a server and its tools."""

    async def tested(self, name: str) -> dict[str, Any]:
        """Start a server, list its tools and return what `shown` does. Raises BadInputError if that fails."""

    async def approve(self, name: str) -> dict[str, Any]:
        """Accept the descriptions of all tools as they are now."""

    async def stop(self, name: str) -> dict[str, Any]:
        """Stop a server and forget its failures. It starts again when it is used."""

    async def open_questions(self) -> list[McpQuestion]: ...
    async def question(self, name: str) -> McpQuestion: ...
    async def answer(self, name: str, text: str | None) -> tuple[McpQuestion, bool]:
        """Store an answer; None declines. The second value: a tool call waited for it."""

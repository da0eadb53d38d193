"""Port of hooks on tool calls: they are asked before a call, and told after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hermes.domain.turn.tool_call import Gate
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call, as hooks see it."""

    session: str
    turn: str
    call: str
    tool: str
    arguments: Mapping[str, Any]
    platform: str
    cwd: str = ""

    def facts(self) -> dict[str, Any]:
        return {
            "tool_name": self.tool,
            "tool_input": dict(self.arguments),
            "tool_use_id": self.call,
            "turn_id": self.turn,
            "platform": self.platform,
            "cwd": self.cwd,
        }


class ToolHooks(Protocol):
    """Hooks of tool calls. They never raise: a hook that fails decides as it is configured."""

    def concern(self, event: str, tool: str) -> bool:
        """Return whether a hook takes this event of this tool."""

    async def before(self, use: ToolUse, gate: Gate) -> Gate:
        """Return the gate of a call, which hooks can only make stricter."""

    async def after(self, use: ToolUse, result: str, *, ok: bool) -> str:
        """Return what hooks add to the result of a call, for the model."""

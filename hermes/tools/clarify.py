"""Clarify tool: ask the person a question. The session waits for the answer instead of running this tool."""

from __future__ import annotations

from typing import Annotated

from hermes.domain.turn.tool_call import Effect
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

CLARIFY = "clarify"


def clarify_tool() -> Tool:
    @tool("clarify", effect=Effect.PURE)
    async def clarify(
        context: ToolContext,  # noqa: ARG001 - as every tool's
        *,
        question: Annotated[str, "the question"],  # noqa: ARG001
        choices: Annotated[list[str] | None, "answers to choose from, best first"] = None,  # noqa: ARG001
    ) -> str:
        """Ask the person a question and wait for the answer. Use it only if you cannot find it out yourself."""
        raise ToolError("The question was not asked.")  # unreachable: the session asks instead of running this

    return clarify

"""A question to the person. It is no work: the session itself waits for the answer, for as long as it takes."""

from __future__ import annotations

from typing import Annotated

from hermes.domain.types import Effect
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

CLARIFY = "clarify"


def clarify_tool() -> Tool:
    @tool("clarify", effect=Effect.PURE)
    async def clarify(
        context: ToolContext,  # noqa: ARG001 - as every tool's
        *,
        question: Annotated[str, "what you need to know"],  # noqa: ARG001
        choices: Annotated[list[str] | None, "answers to choose from, the best one first"] = None,  # noqa: ARG001
    ) -> str:
        """Ask the person a question and wait for the answer. Only when you cannot find out or decide yourself."""
        raise ToolError("nobody was asked")  # the session asks instead of running this

    return clarify

"""Delegate tool: subagents do tasks in sessions of their own, and only their results come back.

The session starts the subagents together with the call. The tool waits for them. A call that runs again after a
restart waits for the same ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from hermes.domain.access.role import Role
from hermes.domain.child.delegation import MAX_RESULT_CHARS
from hermes.domain.child.task import tasks_of
from hermes.domain.errors import BadInputError
from hermes.domain.turn.tool_call import Effect, Gate
from hermes.domain.turn.usage import Usage
from hermes.ports.children import ChildResult, Delegations
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

_MIN_CHARS: Final = 400  # of one result, however many there are
_TASKS_TEXT = (
    "several tasks at the same time instead of one goal, each with goal and optionally context, toolsets "
    "(comma-separated), role and model"
)


def delegate_tool(delegations: Delegations, offered: Callable[[str, Role], frozenset[str]]) -> Tool:
    """`offered`: returns the tools and toolsets on a platform, for a role."""

    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        try:
            tasks = tasks_of(arguments)
        except BadInputError as error:
            raise ToolError(str(error)) from None
        known = offered(context.platform, context.role)
        if unknown := sorted({name for task in tasks for name in task.toolsets} - known):
            raise ToolError(f"there is no toolset or tool {unknown[0]!r} here; no subagent was started")
        return Gate()

    @tool("delegation", effect=Effect.DURABLE, decide=decide)
    async def delegate_task(
        call: ToolContext,
        *,
        goal: Annotated[str | None, "what the subagent has to achieve; it knows nothing of this conversation"] = None,
        context: Annotated[str | None, "all that it needs to know: paths, facts, constraints, findings"] = None,
        tasks: Annotated[list[dict[str, str]] | None, _TASKS_TEXT] = None,
        toolsets: Annotated[list[str] | None, "limit its tools to these toolsets or tools"] = None,
        role: Annotated[Literal["leaf", "orchestrator"], "an orchestrator may delegate itself"] = "leaf",
        model: Annotated[str | None, "another model, as [PROVIDER:]MODEL"] = None,
    ) -> ToolResult:
        """Let subagents work on separate tasks and return their summaries.

        Each subagent has its own context and tools. It cannot ask you or the person. Use it for work that would fill
        your context, or for independent tasks at the same time. State the goal and the context completely. The
        results are what the subagents claim: check what matters.
        """
        results = await delegations.results(call.session, call.turn, call.children, call.progress)
        given = (goal, context, tasks, toolsets, role, model)
        goals = [task.goal for task in tasks_of(dict(zip(_NAMES, given, strict=True)))]
        return await asyncio.to_thread(_report, results, goals)

    return replace(delegate_task, delegates=lambda arguments: len(tasks_of(arguments)))


_NAMES: Final = ("goal", "context", "tasks", "toolsets", "role", "model")


def _report(results: Sequence[ChildResult], goals: Sequence[str]) -> ToolResult:
    """Return all results within the limit. What was cut is in the subagents' sessions."""
    share = max(_MIN_CHARS, MAX_RESULT_CHARS // max(1, len(results)))
    parts = [_part(result, goals[result.number], share, alone=len(results) == 1) for result in results]
    spent = Usage()
    for each in results:
        spent += each.usage
    return ToolResult(text="\n\n".join(parts), ok=any(not each.problem for each in results), spent=spent)


def _part(result: ChildResult, goal: str, share: int, *, alone: bool) -> str:
    text = f"It gave no answer: {result.problem}" if result.problem else result.text
    if len(text) > share:
        left = len(text) - share
        text = f"{text[:share]}… [{left:,} more characters in session {result.child}]"
    if alone:
        return f"{text}\n(subagent {result.child}, {result.tokens:,} tokens)"
    title = " ".join(goal.split())[:80]
    return f"## Task {result.number + 1}: {title}\n{text}\n(subagent {result.child}, {result.tokens:,} tokens)"

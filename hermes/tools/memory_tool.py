"""Memory tool: notes that later conversations start with.

The prompt holds the notes as they were when the conversation began. The result of a call shows them as they are now.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from hermes.domain.change import ChangeAuthor
from hermes.domain.child.child import Purpose
from hermes.domain.errors import HermesError
from hermes.domain.memory.edit import MemoryEdit, numbered, read_edit
from hermes.domain.memory.scope import MemoryTarget
from hermes.domain.turn.tool_call import Effect
from hermes.ports.memory import ChangeOrigin, Memories, MemoryOutcome
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

_TARGETS = "memory: your notes about work, environment and conventions; user: who the person is and what they prefer"


def memory_tool(memories: Memories) -> Tool:
    @tool("memory", effect=Effect.PURE)  # its id makes a repeated call one change
    async def memory(
        context: ToolContext,
        *,
        action: Annotated[Literal["add", "replace", "remove"] | None, "omit it with operations"] = None,
        target: Annotated[Literal["memory", "user"], _TARGETS] = "memory",
        content: Annotated[str, "text of the entry, for add and replace"] = "",
        old_text: Annotated[str, "part of the entry to replace or remove; no other entry may contain it"] = "",
        operations: Annotated[
            list[dict[str, str]] | None,
            "several edits, all or nothing: objects with action, content and old_text; only the final size counts",
        ] = None,
    ) -> str:
        """Keep notes that later conversations start with: facts, preferences, corrections, lessons.

        Save what stays true, in short entries of its own. Do not save progress of the current task, secrets, or what
        can be looked up. If there is no room, replace or remove entries in the same call with operations.
        """
        scope = memories.scope(context.scope)
        if scope is None:
            raise ToolError("This conversation has no memory: nothing was stored.")
        given: dict[str, Any] = {"action": action, "content": content, "old_text": old_text}
        if operations and any(given.values()):
            raise ToolError("Give either action or operations. Nothing was stored.")
        origin = ChangeOrigin(
            author=ChangeAuthor.REVIEW if context.purpose is Purpose.REVIEW else ChangeAuthor.AGENT,
            operation=f"{context.turn}:{context.call}",
            by=context.by,
            session=context.session,
            turn=context.turn,
        )
        try:
            edits: list[MemoryEdit] = [read_edit(each) for each in (operations or [given])]
            return _told(await memories.change(scope, MemoryTarget(target), edits, origin))
        except HermesError as error:
            raise ToolError(f"{target}: {error}") from error

    return memory


def _told(outcome: MemoryOutcome) -> str:
    notes = outcome.notes
    if outcome.proposal:
        done = f"Waits for the person's approval as number {outcome.proposal}; it is not in effect yet."
    elif outcome.repeated:
        done = f"Stored before, as change {outcome.change}."
    else:
        done = f"Stored as change {outcome.change}."
    head = f"{done} {notes.target} has {notes.size:,} of {notes.limit:,} characters:"
    return "\n".join([head, numbered(notes.entries) or "no entries"])

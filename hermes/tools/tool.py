"""Tool: an async function with a typed signature, and what the agent needs to run it.

    @tool("file", parallel=True, effect=Effect.PURE)
    async def read_file(context: ToolContext, *, path: Annotated[str, "the file to read"]) -> ToolResult:
        \"\"\"Read a text file with line numbers.\"\"\"

The docstring is the tool's description for the model; the signature becomes the JSON schema. A tool raises ToolError
for failures that the model can react to. A cancelled tool stops everything it started.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.child.child import Purpose
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.memory.scope import MemoryScope
from hermes.domain.turn.tool_call import Effect, Gate
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass
from hermes.tools.tool_schema import parameters_of


class ToolError(HermesError):
    """The call failed; the text is the call's result for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    session: SessionId
    turn: TurnId
    call: str  # id of this call, unique in its turn
    platform: str
    folder: Path  # private to this conversation: shell state, long outputs, todo list
    media: Path | None = None  # files received in this conversation; None: it is not in a chat
    skills: Path | None = None  # directory of the skills; None: this person has none
    role: Role = Role.OWNER  # of the person whose turn this is
    permitted: frozenset[str] = frozenset()  # approved rules, for this call or as standing grants
    by: str = ""  # that person as platform and user; empty: several people
    only: tuple[str, ...] | None = None  # names of the only tools of a child session; None: no such limit
    purpose: Purpose | None = None  # of a child session
    scope: MemoryScope | None = None  # whose memory the turn uses; None: no one's
    call_id: str = ""  # the same call, as the session names it
    children: tuple[SessionId, ...] = ()  # child sessions that were started with the call
    progress: Callable[[str], None] = lambda _: None  # shows progress to the person; call it on the event loop only

    @property
    def received(self) -> tuple[str, ...]:
        """Return the directories of received files and of skills, which a sandbox shows and nobody writes."""
        return tuple(str(each) for each in (self.media, self.skills) if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    text: str
    ok: bool = True
    excerpt: bool = False  # the text is only part of the output and has a note about the rest
    spent: Usage = Usage()  # by child sessions that worked for the call
    output: str = ""  # of a command: its output alone
    code: int | None = None  # of a command that ended by itself: its exit code


Run: TypeAlias = Callable[..., Awaitable[ToolResult | str]]
Decide: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Gate]  # may read the disk: call it in a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    toolset: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema of an object
    run: Run  # takes the context, and the checked arguments by name
    parallel: bool  # may run beside others of its kind
    effect: Effect
    available: Callable[[], str]  # returns the empty string, or why this machine cannot run it
    decide: Decide | None  # judges whether a call needs approval
    # Pairs of a parameter and a tool: users and guests may set the parameter only if they have that tool.
    requires: tuple[tuple[str, str], ...] = ()
    delegates: Callable[[Mapping[str, Any]], int] = lambda _: 0  # number of child sessions to start with a call
    check: Callable[[Any], dict[str, Any]] | None = None  # of the arguments, for a schema that is not ours
    also_in: tuple[str, ...] = ()  # further toolsets
    least: Role = Role.GUEST  # minimum role of the person


def tool(
    toolset: str,
    *,
    parallel: bool = False,
    effect: Effect = Effect.EFFECT,
    available: Callable[[], str] = lambda: "",
    decide: Decide | None = None,
) -> Callable[[Run], Tool]:
    def made(run: Run) -> Tool:
        return Tool(
            name=run.__name__,
            toolset=toolset,
            description=inspect.cleandoc(run.__doc__ or ""),
            parameters=parameters_of(run),
            run=run,
            parallel=parallel,
            effect=effect,
            available=available,
            decide=decide,
        )

    return made

"""What a tool is: an async function with a typed signature, and what the agent must know to run it well.

    @tool("file", parallel=True, effect=Effect.PURE)
    async def read_file(context: ToolContext, *, path: Annotated[str, "the file to read"]) -> ToolResult:
        \"\"\"Read a text file with line numbers.\"\"\"

The docstring is what the model is told; the signature becomes the JSON schema. A tool raises ToolError for what went
wrong in a way that the model can do something about; when it is cancelled it ends whatever it started.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.errors import HermesError
from hermes.domain.types import Effect, Gate, SessionId, TurnId
from hermes.domain.values import dataclass
from hermes.tools.schema import parameters_of


class ToolError(HermesError):
    """The call failed; its text goes to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    session: SessionId
    turn: TurnId
    call: str  # the model's id of this call, unique in its turn
    platform: str  # where the conversation takes place
    folder: Path  # this conversation's own, private: shell state, spilled output, todo list
    media: Path | None = None  # the files that people sent to this conversation; None: it is in no chat
    role: Role = Role.OWNER  # of the person whose turn this is
    permitted: frozenset[str] = frozenset()  # rules that a person has allowed, for this call or for longer
    by: str = ""  # the same person: platform and user; empty: several people have a say in it
    progress: Callable[[str], None] = lambda _: None  # shows the person what is going on; on the event loop only

    @property
    def received(self) -> tuple[str, ...]:
        """The directory of the files that people sent, for a sandbox."""
        return () if self.media is None else (str(self.media),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    text: str
    ok: bool = True
    excerpt: bool = False  # the tool has left something out already, and the text says what


Run: TypeAlias = Callable[..., Awaitable[ToolResult | str]]
Decide: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Gate]  # pure and quick: it runs on the event loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    toolset: str
    description: str
    parameters: Mapping[str, Any]  # JSON schema of an object
    run: Run  # takes the context, and the checked arguments by name
    parallel: bool  # may run beside others of its kind
    effect: Effect
    available: Callable[[], str]  # empty, or why it cannot be used on this machine
    decide: Decide | None  # whether a call needs leave
    # Pairs of a parameter and a tool: users and guests may set it only where they have that tool.
    requires: tuple[tuple[str, str], ...] = ()


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

"""Memory port: notes that last over conversations, by scope, with their change log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from hermes.domain.change import Change, ChangeAuthor
from hermes.domain.memory.edit import MemoryEdit
from hermes.domain.memory.note_file import Withheld
from hermes.domain.memory.proposal import MemoryProposal
from hermes.domain.memory.scope import MemoryScope, MemoryTarget
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOrigin:
    """Who changes memory, and where from."""

    author: ChangeAuthor
    operation: str  # id that makes the change idempotent: that of the tool call or command
    by: str = ""  # platform and user
    session: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNotes:
    """Live state of one file of memory."""

    target: MemoryTarget
    entries: tuple[str, ...]
    size: int  # characters that count against the limit
    limit: int
    change: int  # number of the last change; 0: there is none
    withheld: tuple[Withheld, ...] = ()  # entries that stay out of prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOutcome:
    """What a request to change memory did."""

    notes: MemoryNotes  # afterwards
    change: int = 0  # number of the change that was stored; 0: it waits for an approval
    proposal: int = 0  # number of the proposal that waits
    repeated: bool = False  # the same request was done before
    state_of: int | None = None  # number of the change whose notes a revert brought back; 0: those before the first


class Memories(Protocol):
    """Raises BadInputError for an edit that is refused, and StorageError if nothing could be stored."""

    def scope(self, scope: MemoryScope | None) -> MemoryScope | None:
        """Return the scope to use; None: no memory, or it is off."""

    async def read(self, scope: MemoryScope) -> tuple[MemoryNotes, ...]:
        """Return the notes of each target that is on. Edited files are recorded first."""

    async def change(
        self, scope: MemoryScope, target: MemoryTarget, edits: Sequence[MemoryEdit], origin: ChangeOrigin
    ) -> MemoryOutcome: ...
    async def revert(
        self, scope: MemoryScope, target: MemoryTarget, number: int | None, origin: ChangeOrigin
    ) -> MemoryOutcome:
        """Restore the text after that change; None: undo the last change."""

    async def log(self, scope: MemoryScope, target: MemoryTarget) -> list[Change]:
        """Return all changes, oldest first."""

    async def proposals(self, scope: MemoryScope) -> tuple[MemoryProposal, ...]: ...
    async def approve(self, scope: MemoryScope, number: int, origin: ChangeOrigin) -> MemoryOutcome: ...
    async def reject(self, scope: MemoryScope, number: int, origin: ChangeOrigin) -> MemoryProposal: ...
    async def scopes(self) -> list[MemoryScope]:
        """Return the scopes that have changes."""

    def path(self, scope: MemoryScope, target: MemoryTarget) -> Path: ...

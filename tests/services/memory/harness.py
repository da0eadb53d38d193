"""Memory service on a journal without threads, with real files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hermes.domain.change import ChangeAuthor
from hermes.domain.memory.edit import read_edit
from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, MemoryTarget
from hermes.domain.values import dataclass
from hermes.ports.memory import ChangeOrigin, MemoryOutcome
from hermes.services.memory.memory_service import MemoryService, MemorySettings
from hermes.services.memory.note_files import NoteFiles
from tests.support.journals import LoopJournal

MEMORY, USER = MemoryTarget.MEMORY, MemoryTarget.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    directory: Path
    journal: LoopJournal
    clock: list[float]

    def service(self, files: NoteFiles | None = None, **settings: Any) -> MemoryService:
        """Return the service of a new daemon on the same store and files."""
        return MemoryService(
            journal=self.journal,
            directory=self.directory,
            clock=lambda: self.clock[0],
            settings=MemorySettings(**settings),
            files=files,
        )

    def file(self, scope: MemoryScope = OWNER_SCOPE, target: MemoryTarget = MEMORY) -> Path:
        return self.directory / scope.folder / target.file_name

    def edit_file(self, text: str, scope: MemoryScope = OWNER_SCOPE, target: MemoryTarget = MEMORY) -> None:
        """Save the file as a person does, after everything else."""
        file = self.file(scope, target)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.clock[0] += 10
        os.utime(file, (self.clock[0], self.clock[0]))
        self.clock[0] += 10


def origin(operation: str = "call", author: ChangeAuthor = ChangeAuthor.AGENT, by: str = "cli") -> ChangeOrigin:
    return ChangeOrigin(author=author, operation=operation, by=by, session="s", turn="t")


async def add(
    service: MemoryService,
    text: str,
    operation: str = "",
    *,
    scope: MemoryScope = OWNER_SCOPE,
    target: MemoryTarget = MEMORY,
    author: ChangeAuthor = ChangeAuthor.AGENT,
) -> MemoryOutcome:
    edits = [read_edit({"action": "add", "content": text})]
    return await service.change(scope, target, edits, origin(operation or f"add {text}", author))


async def entries(service: MemoryService, scope: MemoryScope = OWNER_SCOPE) -> tuple[str, ...]:
    return (await service.read(scope))[0].entries

"""Log of memory: the changes of notes in the change log of the store, and the texts after them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from hermes.domain.change import Change
from hermes.domain.child.review_summary import EntryCount, count_entries
from hermes.domain.errors import HermesError, StorageError
from hermes.domain.memory.note_file import entries_of
from hermes.domain.memory.reconcile import StoredText, scope_text, state_before_last, stored_text, text_after
from hermes.domain.memory.scope import PREFIX, MemoryScope, parse_scope
from hermes.domain.operations import AppendChange
from hermes.domain.read.reader import Reader
from hermes.ports.storage import Journal

_RECENT: Final = 100  # changes that are looked at for those of one session


class MemoryLog:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def store(self, *changes: AppendChange) -> None:
        """Store changes in one transaction. Raises what the journal refuses."""
        stored: asyncio.Future[HermesError | None] = asyncio.get_running_loop().create_future()

        def then(error: HermesError | None) -> None:
            if not stored.done():
                stored.set_result(error)

        self._journal.commit(changes, then)
        if error := await stored:
            raise error

    async def last(self, subject: str) -> StoredText:
        """Return the state after the last change."""
        return stored_text(await self._journal.fetch(partial(_last_changes, subject, 2)))

    async def text_after(self, subject: str, number: int) -> str:
        """Return the text after a change; 0: before the first one."""
        if number == 0:
            return ""
        [change] = await self._journal.fetch(lambda reader: reader.changes(subject, number - 1, 1))
        text = text_after(change)
        if text is None:
            raise StorageError(f"change {number} is damaged")
        return text

    async def state_before_last(self, subject: str) -> int | None:
        """Return the number of the change that an undo goes back to; None if none is left to undo."""
        return state_before_last(await self._journal.fetch(lambda reader: reader.changes(subject)))

    async def written_by(self, subject: str, session: str) -> list[EntryCount]:
        """Return what each change by a session did, of the last changes."""
        changes = await self._journal.fetch(partial(_last_changes, subject, _RECENT))
        before = "" if changes and changes[0].number == 1 else None  # None: not known
        counts = []
        for change in changes:
            after = text_after(change) or ""
            if change.session == session and before is not None:
                counts.append(count_entries(entries_of(before), entries_of(after)))
            before = after
        return counts

    async def scopes(self) -> list[MemoryScope]:
        """Return the scopes that have changes."""

        def found(reader: Reader) -> list[str]:
            last = (reader.last_change(subject) for subject in reader.change_subjects(PREFIX))
            return sorted({scope_text(change) for change in last if change is not None} - {""})

        return [parse_scope(text) for text in await self._journal.fetch(found)]


def _last_changes(subject: str, most: int, reader: Reader) -> list[Change]:
    last = reader.last_change(subject)
    return [] if last is None else reader.changes(subject, max(last.number - most, 0))

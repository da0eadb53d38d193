"""Memory service: edits notes, and keeps each file and its change log equal.

A change is stored first, then the file is replaced. Before each read and write the file is compared with the log: a
file that a crash left behind is written again, and an edit by a person becomes a change of its own. A person's edit
is never overwritten: if it comes at the same moment, the change is applied to the person's text.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.child.review_summary import EntryCount
from hermes.domain.errors import BadInputError, ChangeKnownError, SequenceConflictError, StorageError
from hermes.domain.memory.edit import MemoryEdit, MemoryProblem, action_of, apply_edits, memory_refusal
from hermes.domain.memory.note_file import admitted, entries_of, size_of, text_of
from hermes.domain.memory.proposal import MAX_OPEN, MemoryProposal, open_after, payload_with
from hermes.domain.memory.reconcile import (
    FileState,
    StoredText,
    payload_of,
    reconcile,
)
from hermes.domain.memory.scope import MemoryScope, MemoryTarget, resolved
from hermes.domain.operations import AppendChange
from hermes.domain.values import dataclass, replace
from hermes.ports.given import Clock
from hermes.ports.memory import ChangeOrigin, Memories, MemoryNotes, MemoryOutcome
from hermes.ports.storage import Journal
from hermes.services.memory.memory_log import MemoryLog
from hermes.services.memory.note_files import NoteFiles
from hermes.system.crash_point import reach

_TRIES: Final = 5  # against a person who saves the file again and again
_NEEDS_APPROVAL: Final = (ChangeAuthor.AGENT, ChangeAuthor.REVIEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    memory_enabled: bool = True
    user_profile_enabled: bool = True
    memory_char_limit: int = 2200
    user_char_limit: int = 1375
    write_approval: bool = False
    owner_accounts: tuple[str, ...] = ()

    def has(self, target: MemoryTarget) -> bool:
        return self.memory_enabled if target is MemoryTarget.MEMORY else self.user_profile_enabled

    def limit(self, target: MemoryTarget) -> int:
        return self.memory_char_limit if target is MemoryTarget.MEMORY else self.user_char_limit


class MemoryService(Memories):
    def __init__(
        self,
        *,
        journal: Journal,
        directory: Path,
        clock: Clock,
        settings: MemorySettings | None = None,
        files: NoteFiles | None = None,
    ) -> None:
        self.settings = settings or MemorySettings()
        self.counts: Counter[str] = Counter()  # changes by author, and refusals
        self._journal = journal
        self._log = MemoryLog(journal)
        self._directory = directory
        self._clock = clock
        self._files = files or NoteFiles()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    # ------------------------------------------------------------ reading

    def scope(self, scope: MemoryScope | None) -> MemoryScope | None:
        found = resolved(scope, self.settings.owner_accounts)
        return found if found is not None and self._targets(found) else None

    async def read(self, scope: MemoryScope) -> tuple[MemoryNotes, ...]:
        async with self._locks[scope.folder]:
            return tuple([await self._notes(scope, target) for target in self._targets(scope)])

    async def log(self, scope: MemoryScope, target: MemoryTarget) -> list[Change]:
        self._require(scope, target)
        async with self._locks[scope.folder]:
            await self._reconciled(scope, target)
        return await self._journal.fetch(lambda reader: reader.changes(scope.subject(target)))

    async def proposals(self, scope: MemoryScope) -> tuple[MemoryProposal, ...]:
        return open_after(await self._journal.fetch(lambda reader: reader.last_change(scope.proposals)))

    async def written_by(self, scope: MemoryScope, session: str) -> list[EntryCount]:
        """Return what each change by a session did, of the last changes."""
        subjects = [scope.subject(target) for target in self._targets(scope)]
        return [count for subject in subjects for count in await self._log.written_by(subject, session)]

    async def scopes(self) -> list[MemoryScope]:
        return await self._log.scopes()

    def path(self, scope: MemoryScope, target: MemoryTarget) -> Path:
        return self._directory / scope.folder / target.file_name

    # ------------------------------------------------------------ writing

    async def change(
        self, scope: MemoryScope, target: MemoryTarget, edits: Sequence[MemoryEdit], origin: ChangeOrigin
    ) -> MemoryOutcome:
        self._require(scope, target)
        waits = self.settings.write_approval and origin.author in _NEEDS_APPROVAL
        async with self._locks[scope.folder]:
            try:
                if waits:
                    return await self._propose(scope, target, edits, origin)
                return await self._edit(scope, target, edits, origin)
            except BadInputError:
                self.counts["refused"] += 1
                raise

    async def revert(
        self, scope: MemoryScope, target: MemoryTarget, number: int | None, origin: ChangeOrigin
    ) -> MemoryOutcome:
        self._require(scope, target)
        async with self._locks[scope.folder]:
            if known := await self._known(scope, target, origin.operation):
                return known
            stored = await self._reconciled(scope, target)
            wanted = await self._log.state_before_last(scope.subject(target)) if number is None else number
            if wanted is None:
                raise memory_refusal(MemoryProblem.INVALID, f"no change of {target} is left to undo")
            if not 0 <= wanted < max(stored.number, 1):
                raise memory_refusal(
                    MemoryProblem.INVALID,
                    f"there is no change {wanted} of {target} to go back to: its last change is {stored.number}",
                )
            text = await self._log.text_after(scope.subject(target), wanted)

            def earlier(_: StoredText) -> str:
                return text

            done = await self._write(scope, target, earlier, origin, ChangeAction.REVERT, reverts=wanted)
            return replace(done, state_of=wanted)

    async def approve(self, scope: MemoryScope, number: int, origin: ChangeOrigin) -> MemoryOutcome:
        async with self._locks[scope.folder]:
            chosen, rest, log_number = await self._chosen(scope, number)
            self._require(scope, chosen.target)
            decided = self._decision(scope, log_number, ChangeAction.APPROVE, rest, origin)
            meant = ChangeOrigin(
                author=chosen.author,
                operation=f"proposal:{number}",
                by=origin.by,
                session=chosen.session,
                turn=chosen.turn,
            )
            return await self._edit(scope, chosen.target, chosen.edits, meant, also=decided, proposal=number)

    async def reject(self, scope: MemoryScope, number: int, origin: ChangeOrigin) -> MemoryProposal:
        async with self._locks[scope.folder]:
            chosen, rest, log_number = await self._chosen(scope, number)
            await self._log.store(self._decision(scope, log_number, ChangeAction.REJECT, rest, origin))
        return chosen

    # ------------------------------------------------------------ one change

    async def _edit(
        self,
        scope: MemoryScope,
        target: MemoryTarget,
        edits: Sequence[MemoryEdit],
        origin: ChangeOrigin,
        *,
        also: AppendChange | None = None,
        proposal: int = 0,
    ) -> MemoryOutcome:
        if known := await self._known(scope, target, origin.operation):
            return known

        def edited(stored: StoredText) -> str:
            return text_of(apply_edits(entries_of(stored.text), edits, limit=self.settings.limit(target)))

        return await self._write(scope, target, edited, origin, action_of(edits), also=also, proposal=proposal)

    async def _write(
        self,
        scope: MemoryScope,
        target: MemoryTarget,
        decide: Callable[[StoredText], str],
        origin: ChangeOrigin,
        action: ChangeAction,
        *,
        also: AppendChange | None = None,
        reverts: int = 0,
        proposal: int = 0,
    ) -> MemoryOutcome:
        """Store a change, then replace the file. `also` is stored with it, once."""
        operation = origin.operation
        for attempt in range(_TRIES):
            stored = await self._reconciled(scope, target)
            text = decide(stored)
            payload = payload_of(scope.text, text, reverts=reverts, proposal=proposal)
            named = replace(origin, operation=f"{operation}#{attempt + 1}" if attempt else operation)
            change = self._change(
                scope.subject(target), stored.number + 1, action, payload, named, file_at=stored.file_at
            )
            try:
                await self._log.store(change, *((also,) if also is not None else ()))
            except SequenceConflictError:  # another daemon wrote first
                continue
            also = None
            self.counts[origin.author] += 1
            if await self._project(scope, target, text, expected=stored.text if stored.exists else None):
                notes = self._as_notes(target, replace(stored, number=stored.number + 1, text=text))
                return MemoryOutcome(notes=notes, change=notes.change)
            logger.info("memory: {} was edited by a person at the same moment; applying again", scope.subject(target))
        raise StorageError(f"{self.path(scope, target)} changes all the time; nothing more was written")

    async def _reconciled(self, scope: MemoryScope, target: MemoryTarget) -> StoredText:
        """Make file and log equal, and return what they say."""
        subject, path = scope.subject(target), self.path(scope, target)
        for _ in range(_TRIES):
            stored = await self._log.last(subject)
            found = await asyncio.to_thread(self._files.find, path)
            match reconcile(stored, found):
                case FileState.CURRENT:
                    return replace(stored, exists=found.text is not None, file_at=found.modified_at)
                case FileState.BEHIND:
                    logger.info("memory: {} is behind change {}; writing it", path, stored.number)
                    await self._project(scope, target, stored.text, expected=found.text)
                case FileState.EDITED:
                    await self._adopt(scope, target, stored, found.text or "")
        raise StorageError(f"{path} changes all the time; try again")

    async def _adopt(self, scope: MemoryScope, target: MemoryTarget, stored: StoredText, text: str) -> None:
        """Record a person's edit of the file."""
        number = stored.number + 1
        digest = blake2b(text.encode(), digest_size=8).hexdigest()
        origin = ChangeOrigin(author=ChangeAuthor.FILE, operation=f"file:{number}:{digest}")
        payload = payload_of(scope.text, text)
        try:
            await self._log.store(self._change(scope.subject(target), number, ChangeAction.EDIT, payload, origin))
        except (SequenceConflictError, ChangeKnownError):
            return  # another daemon recorded it
        self.counts[ChangeAuthor.FILE] += 1
        logger.info("memory: {} was edited; recorded as change {}", self.path(scope, target), number)

    async def _project(self, scope: MemoryScope, target: MemoryTarget, text: str, *, expected: str | None) -> bool:
        path = self.path(scope, target)
        reach("memory: about to replace the file")
        try:
            done = await asyncio.to_thread(self._files.replace, path, text, expected=expected)
        except OSError as error:
            raise StorageError(
                f"the change is stored, but {path} could not be written ({error.strerror}); it is written later"
            ) from error
        reach("memory: the file is replaced")
        return done

    # ------------------------------------------------------------ proposals

    async def _propose(
        self, scope: MemoryScope, target: MemoryTarget, edits: Sequence[MemoryEdit], origin: ChangeOrigin
    ) -> MemoryOutcome:
        stored = await self._reconciled(scope, target)
        apply_edits(entries_of(stored.text), edits, limit=self.settings.limit(target))
        last = await self._journal.fetch(lambda reader: reader.last_change(scope.proposals))
        waiting, notes = open_after(last), self._as_notes(target, stored)
        if known := await self._journal.fetch(lambda reader: reader.change_of(scope.proposals, origin.operation)):
            return MemoryOutcome(notes=notes, proposal=known.number, repeated=True)
        if same := next((each for each in waiting if (each.target, each.edits) == (target, tuple(edits))), None):
            return MemoryOutcome(notes=notes, proposal=same.number, repeated=True)
        if len(waiting) >= MAX_OPEN:
            raise memory_refusal(MemoryProblem.FULL, f"{MAX_OPEN} changes wait for the person's approval already")
        proposal = MemoryProposal(
            number=1 if last is None else last.number + 1,
            target=target,
            edits=tuple(edits),
            at=self._clock(),
            author=origin.author,
            by=origin.by,
            session=origin.session,
            turn=origin.turn,
        )
        payload = payload_with((*waiting, proposal))
        await self._log.store(self._change(scope.proposals, proposal.number, ChangeAction.PROPOSE, payload, origin))
        return MemoryOutcome(notes=notes, proposal=proposal.number)

    async def _chosen(
        self, scope: MemoryScope, number: int
    ) -> tuple[MemoryProposal, tuple[MemoryProposal, ...], int]:
        """Return the proposal with that number, the others, and the last number of their log."""
        last = await self._journal.fetch(lambda reader: reader.last_change(scope.proposals))
        waiting = open_after(last)
        chosen = next((each for each in waiting if each.number == number), None)
        if chosen is None or last is None:
            raise memory_refusal(MemoryProblem.NO_MATCH, f"no change with the number {number} waits for an approval")
        return chosen, tuple(each for each in waiting if each is not chosen), last.number

    def _decision(
        self,
        scope: MemoryScope,
        last: int,
        action: ChangeAction,
        rest: Sequence[MemoryProposal],
        origin: ChangeOrigin,
    ) -> AppendChange:
        return self._change(scope.proposals, last + 1, action, payload_with(rest), origin)

    # ------------------------------------------------------------ small steps

    def _targets(self, scope: MemoryScope) -> tuple[MemoryTarget, ...]:
        return tuple(target for target in scope.targets if self.settings.has(target))

    def _require(self, scope: MemoryScope, target: MemoryTarget) -> None:
        if target in self._targets(scope):
            return
        if target in scope.targets:
            raise memory_refusal(MemoryProblem.INVALID, f"the notes {target.value!r} are off in the configuration")
        raise memory_refusal(
            MemoryProblem.INVALID, "several people share this conversation: there are no notes about one person here"
        )

    async def _notes(self, scope: MemoryScope, target: MemoryTarget) -> MemoryNotes:
        return self._as_notes(target, await self._reconciled(scope, target))

    def _as_notes(self, target: MemoryTarget, stored: StoredText) -> MemoryNotes:
        entries = entries_of(stored.text)
        return MemoryNotes(
            target=target,
            entries=entries,
            size=size_of(entries),
            limit=self.settings.limit(target),
            change=stored.number,
            withheld=admitted(entries).withheld,
        )

    async def _known(self, scope: MemoryScope, target: MemoryTarget, operation: str) -> MemoryOutcome | None:
        """Return the outcome of an operation that was done before."""
        change = await self._journal.fetch(lambda reader: reader.change_of(scope.subject(target), operation))
        if change is None:
            return None
        return MemoryOutcome(notes=await self._notes(scope, target), change=change.number, repeated=True)

    def _change(
        self,
        subject: str,
        number: int,
        action: ChangeAction,
        payload: bytes,
        origin: ChangeOrigin,
        *,
        file_at: float = 0.0,
    ) -> AppendChange:
        """Return a change. It is not older than the file, also if the clock was set back: see `reconcile`."""
        change = Change(
            subject=subject,
            number=number,
            at=max(self._clock(), file_at),
            author=origin.author,
            action=action,
            operation=origin.operation,
            payload=payload,
            by=origin.by,
            session=origin.session,
            turn=origin.turn,
        )
        return AppendChange(change=change)

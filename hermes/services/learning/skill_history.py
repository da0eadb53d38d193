"""History of skills: every change is staged, recorded in the change log, then swapped in.

An edit by hand is recorded as a version before the next change. What a crash left is completed if the log has it, and
dropped if not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from loguru import logger

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.errors import HermesError
from hermes.domain.operations import AppendChange
from hermes.domain.read.reader import Reader
from hermes.domain.skill.skill import SkillError
from hermes.domain.skill.skill_version import (
    PREFIX,
    SkillOrigin,
    SkillVersion,
    current,
    encoded,
    subject_of,
    version_in,
)
from hermes.domain.values import replace
from hermes.ports.given import Clock
from hermes.ports.storage import Journal
from hermes.system.crash_point import reach

if TYPE_CHECKING:
    from hermes.skills.skill_store import SkillStore, StagedSkill
    from hermes.skills.skill_tree import SkillTree

T = TypeVar("T")


class SkillHistory:
    def __init__(self, store: Callable[[], SkillStore], journal: Journal, clock: Clock) -> None:
        """`store` makes the store when it is first used, in a thread."""
        self._make_store = store
        self._journal = journal
        self._clock = clock
        self._writing = asyncio.Lock()

    # ------------------------------------------------------------ reading

    async def changes(self, name: str) -> list[Change]:
        return await self._journal.fetch(lambda reader: reader.changes(subject_of(name)))

    async def names(self) -> list[str]:
        """Return the names of all skills that ever had a version."""
        subjects = await self._journal.fetch(lambda reader: reader.change_subjects(PREFIX))
        return [subject.removeprefix(PREFIX) for subject in subjects]

    async def version(self, name: str, number: int) -> SkillVersion:
        """Return the version that a change made. Raises SkillError."""
        found = [each for each in await self.changes(name) if each.number == number]
        version = version_in(found[0]) if found else None
        if version is None:
            raise SkillError(f"{name} has no version {number}")
        return version

    async def tree(self, version: SkillVersion) -> SkillTree:
        return await self._in_thread(lambda store: store.tree_of(version))

    # ------------------------------------------------------------ writing

    async def write(
        self,
        name: str,
        action: ChangeAction,
        tree: SkillTree,
        origin: SkillOrigin,
        *,
        place: str = "",
        note: str = "",
        settles: int = 0,
        expects: str | None = None,
    ) -> Change:
        """Make this tree the skill; an empty one removes it. Raises SkillError and what the journal refuses.

        `expects` is the digest of the version that the change was made from. A repeated operation changes nothing.
        """
        async with self._writing:
            changes = await self._with_edits(name)
            if known := next((each for each in changes if each.operation == origin.operation), None):
                return known
            before = current(changes)
            found = before.digest if before is not None else ""
            if expects is not None and expects != found:
                raise SkillError(f"{name} was changed meanwhile: load it again")
            previous = before.place if before is not None and before.is_there else ""
            version = await self._kept(tree, place or previous or name, note)
            version = replace(version, settles=settles)
            staged = await self._in_thread(lambda store: store.stage(name, origin.operation, version, tree, previous))
            change = await self._append(name, changes, action, origin, version)
            reach("skill: recorded")
            await self._in_thread(lambda store: store.apply(staged))
            return change

    async def propose(
        self, name: str, action: ChangeAction, tree: SkillTree, origin: SkillOrigin, *, place: str, note: str
    ) -> Change:
        """Record a change that waits for a person."""
        async with self._writing:
            changes = await self._with_edits(name)
            if known := next((each for each in changes if each.operation == origin.operation), None):
                return known
            version = replace(await self._kept(tree, place, note), wish=action.value)
            return await self._append(name, changes, ChangeAction.PROPOSE, origin, version)

    async def reject(self, name: str, number: int, origin: SkillOrigin) -> Change:
        async with self._writing:
            changes = await self.changes(name)
            version = replace(await self.version(name, number), settles=number)
            return await self._append(name, changes, ChangeAction.REJECT, origin, version)

    async def revert(self, name: str, number: int, origin: SkillOrigin, note: str = "") -> Change:
        """Make the version of this change the current one again, as a new version."""
        version = await self.version(name, number)
        tree = await self.tree(version)
        return await self.write(name, ChangeAction.REVERT, tree, origin, place=version.place, note=note)

    async def recover(self) -> None:
        """Complete or drop what a crash left."""
        async with self._writing:
            await self._recover()

    async def take_up_edits(self, names: Sequence[str]) -> None:
        """Record edits by hand as versions."""
        for name in names:
            async with self._writing:
                await self._with_edits(name)

    # ------------------------------------------------------------ steps

    async def _recover(self) -> None:
        for staged in await self._in_thread(lambda store: store.staged()):
            subject, operation = subject_of(staged.name), staged.operation
            known = await self._journal.fetch(partial(_change_of, subject, operation))
            logger.info("skills: {} an interrupted change of {}", "completing" if known else "dropping", staged.name)
            await self._in_thread(partial(_settle, staged, is_recorded=known is not None))

    async def _with_edits(self, name: str) -> list[Change]:
        """Return the changes, after what differs between the log and the disk was completed or recorded."""
        await self._recover()
        changes = await self.changes(name)
        before = current(changes)
        place, tree, digest = await self._in_thread(lambda store: _found(store, name, before))
        known = before.digest if before is not None else ""
        if digest == known and (not digest or before is None or place == before.place):
            return changes
        version = await self._kept(tree, place or (before.place if before is not None else name), "edited by hand")
        action = ChangeAction.ADD if not known else ChangeAction.EDIT if digest else ChangeAction.DELETE
        number = changes[-1].number + 1 if changes else 1
        origin = SkillOrigin(author=ChangeAuthor.FILE, operation=f"file:{number}:{digest[:16]}")
        return [*changes, await self._append(name, changes, action, origin, version)]

    async def _kept(self, tree: SkillTree, place: str, note: str) -> SkillVersion:
        from hermes.skills.skill_tree import tree_digest  # noqa: PLC0415 - no start needs it

        files = await self._in_thread(lambda store: store.keep(tree)) if tree else {}
        return SkillVersion(place=place, digest=tree_digest(tree) if tree else "", files=files, note=note)

    async def _append(
        self, name: str, changes: Sequence[Change], action: ChangeAction, origin: SkillOrigin, version: SkillVersion
    ) -> Change:
        change = Change(
            subject=subject_of(name),
            number=changes[-1].number + 1 if changes else 1,
            at=self._clock(),
            author=origin.author,
            action=action,
            operation=origin.operation,
            payload=encoded(version),
            by=origin.by,
            session=origin.session,
            turn=origin.turn,
        )
        await commit(self._journal, change)
        return change

    async def _in_thread(self, work: Callable[[SkillStore], T]) -> T:
        def run() -> T:
            try:
                return work(self._make_store())
            except OSError as error:
                raise SkillError(f"the skills directory: {error.strerror or error}") from error

        return await asyncio.to_thread(run)


def _change_of(subject: str, operation: str, reader: Reader) -> Change | None:
    return reader.change_of(subject, operation)


def _settle(staged: StagedSkill, store: SkillStore, *, is_recorded: bool) -> None:
    if is_recorded:
        store.apply(staged)
    else:
        store.drop(staged)


def _found(store: SkillStore, name: str, before: SkillVersion | None) -> tuple[str, SkillTree, str]:
    """Return place, files and digest of a skill on disk; empty if it is not there or cannot be read."""
    from hermes.skills.catalog import SkillCatalog  # noqa: PLC0415
    from hermes.skills.skill_tree import tree_digest  # noqa: PLC0415

    places = [] if before is None else [before.place]
    tree = store.live(places[0]) if places else None
    if not tree:
        places = [each.place for each in SkillCatalog(store.root).all() if each.name == name]
        tree = store.live(places[0]) if places else None
    return (places[0], tree, tree_digest(tree)) if tree else ("", {}, "")


async def commit(journal: Journal, change: Change) -> None:
    """Append a change durably. Raises what the journal refuses."""
    done: asyncio.Future[HermesError | None] = asyncio.get_running_loop().create_future()
    journal.commit((AppendChange(change=change),), lambda error: None if done.cancelled() else done.set_result(error))
    if (error := await done) is not None:
        raise error

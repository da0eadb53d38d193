"""Built-in person model: one profile for each scope, in the change log.

Each change holds the whole profile after it. A belief that is forgotten leaves no copy: the earlier changes are
erased in the transaction that stores the profile without it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from hermes.domain.change import Change, ChangeAction
from hermes.domain.errors import BadInputError, ChangeKnownError, HermesError
from hermes.domain.memory.scope import MemoryScope
from hermes.domain.operations import AppendChange, EraseChanges, Operation
from hermes.domain.profile.belief import PREFIX, Belief, Profile, encoded, profile_after, scope_after
from hermes.domain.profile.conclusion import Conclusion, Spoken, concluded
from hermes.domain.read.reader import Reader
from hermes.domain.values import replace
from hermes.ports.given import Clock
from hermes.ports.memory import ChangeOrigin
from hermes.ports.profile import PersonModel
from hermes.ports.storage import Journal
from hermes.system.crash_point import reach

MAX_CHANGES: Final = 100  # of one profile; then its log begins again with the profile as it is

Conclude: TypeAlias = Callable[[Profile, Sequence[Spoken], ChangeOrigin], Awaitable[Sequence[Conclusion]]]


class BuiltInPersonModel(PersonModel):
    def __init__(self, *, journal: Journal, clock: Clock, conclude: Conclude) -> None:
        self._journal = journal
        self._clock = clock
        self._conclude = conclude
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._forgets: Counter[str] = Counter()

    async def learn(self, scope: MemoryScope, said: Sequence[Spoken], origin: ChangeOrigin) -> int:
        subject = subject_of(scope)
        if await self._journal.fetch(lambda reader: reader.change_of(subject, origin.operation)):
            return 0
        forgets = self._forgets[subject]
        conclusions = await self._conclude(await self._profile(scope), said, origin)
        async with self._locks[subject]:
            if self._forgets[subject] != forgets:  # the conclusions may rest on what was forgotten meanwhile
                return 0
            last = await self._last(scope)
            before = profile_after(last)
            after = concluded(before, conclusions, said)
            if after == before:
                return 0
            changes = self._changes(scope, last, after, ChangeAction.EDIT, origin)
            reach("profile: about to store")
            try:
                await self._store(*changes)
            except ChangeKnownError:
                return 0
        reach("profile: stored")
        return len(set(after.beliefs) - set(before.beliefs))

    async def beliefs(self, scope: MemoryScope) -> tuple[Belief, ...]:
        profile = await self._profile(scope)
        past = sorted((each for each in profile.beliefs if not each.is_held), key=lambda each: -each.at)
        return (*profile.held, *past)

    async def people(self) -> tuple[str, ...]:
        def found(reader: Reader) -> set[str]:
            last = [reader.last_change(subject) for subject in reader.change_subjects(PREFIX)]
            return {scope_after(each) for each in last if each is not None and profile_after(each).beliefs}

        return tuple(sorted(await self._journal.fetch(found) - {""}))

    async def forget(self, scope: MemoryScope, belief: str | None, origin: ChangeOrigin) -> tuple[Belief, ...]:
        subject = subject_of(scope)
        async with self._locks[subject]:
            last = await self._last(scope)
            before = profile_after(last)
            if belief is not None and before.find(belief) is None:
                raise BadInputError(f"there is no belief {belief[:20]!r}", code="unknown_belief")
            empty = replace(before, beliefs=())
            after = empty if belief is None else before.without(belief)
            if last is not None:
                await self._store(*self._fresh_log(scope, after, ChangeAction.REMOVE, origin))
            self._forgets[subject] += 1
        return tuple(each for each in before.beliefs if each not in after.beliefs)

    # ------------------------------------------------------------ the log

    async def _profile(self, scope: MemoryScope) -> Profile:
        return profile_after(await self._last(scope))

    async def _last(self, scope: MemoryScope) -> Change | None:
        return await self._journal.fetch(lambda reader: reader.last_change(subject_of(scope)))

    def _changes(
        self, scope: MemoryScope, last: Change | None, profile: Profile, action: ChangeAction, origin: ChangeOrigin
    ) -> tuple[Operation, ...]:
        if last is not None and last.number >= MAX_CHANGES:
            return self._fresh_log(scope, profile, action, origin)
        number = 1 if last is None else last.number + 1
        return (self._change(scope, number, profile, action, origin),)

    def _fresh_log(
        self, scope: MemoryScope, profile: Profile, action: ChangeAction, origin: ChangeOrigin
    ) -> tuple[Operation, ...]:
        return (
            EraseChanges(subject=subject_of(scope)),
            self._change(scope, 1, profile, action, origin),
        )

    def _change(
        self, scope: MemoryScope, number: int, profile: Profile, action: ChangeAction, origin: ChangeOrigin
    ) -> AppendChange:
        return AppendChange(
            change=Change(
                subject=subject_of(scope),
                number=number,
                at=self._clock(),
                author=origin.author,
                action=action,
                operation=origin.operation,
                payload=encoded(profile, scope.text),
                by=origin.by,
                session=origin.session,
                turn=origin.turn,
            )
        )

    async def _store(self, *operations: Operation) -> None:
        stored: asyncio.Future[HermesError | None] = asyncio.get_running_loop().create_future()

        def then(error: HermesError | None) -> None:
            if not stored.done():
                stored.set_result(error)

        self._journal.commit(operations, then)
        if error := await stored:
            raise error


def subject_of(scope: MemoryScope) -> str:
    return f"{PREFIX}{scope.folder or 'owner'}"

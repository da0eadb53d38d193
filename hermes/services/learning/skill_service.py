"""Skill service: the skills of this home with their history. Its library is made by the first use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loguru import logger

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.domain.skill.curation import (
    DAY_S,
    CurationTerms,
    age_of,
    is_archived_now,
    is_by_agent,
    is_stale,
    overlaps,
)
from hermes.domain.skill.skill import SkillError, UnknownSkillError
from hermes.domain.skill.skill_effect import effect_of, is_worse
from hermes.domain.skill.skill_version import SkillOrigin, before, current, version_in
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.storage import Journal
from hermes.services.learning.skill_editor import SkillEditor
from hermes.services.learning.skill_history import SkillHistory
from hermes.services.learning.skill_operations import SkillOperations
from hermes.services.learning.skill_runs import EndedRun, SkillRuns

if TYPE_CHECKING:
    from hermes.skills.library import ListedSkill, LoadedSkill, SkillLibrary
    from hermes.skills.skill_state import SkillState
    from hermes.skills.skill_store import SkillStore

_CURATE_EVERY_S: Final = DAY_S
_MAX_PAIRS: Final = 5  # of overlapping skills in one consolidation


Consolidator = Callable[[str, Sequence[str], float], Awaitable[str]]  # key, names of skills, time; the child's id


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    index_max_chars: int = 8000
    write_approval: bool = False
    trusted_sources: tuple[str, ...] = ()
    rollback: bool = True
    curation: CurationTerms | None = CurationTerms()  # None: the curator is off
    consolidate: bool = False  # the curator also lets a model merge skills that overlap


class SkillService:
    def __init__(
        self,
        root: Path,
        *,
        journal: Journal,
        clock: Clock,
        environment: Collection[str] = (),
        settings: SkillSettings = SkillSettings(),  # noqa: B008 - a value
        tell: Callable[[SessionId, str, str], Awaitable[None]] | None = None,
    ) -> None:
        self.root = root
        self.settings = settings
        self._clock = clock
        self._environment = environment
        self._making = threading.Lock()
        self._library: SkillLibrary | None = None
        self.history = SkillHistory(self._store, journal, clock)
        self.runs = SkillRuns(journal, clock)
        self.editor = SkillEditor(
            self.history, self.runs, state=self._state, approval=lambda: self.settings.write_approval
        )
        self.operations = SkillOperations(self.library, self.history, self.editor, self.runs)
        self.rollbacks = 0
        self._tell = tell
        self.consolidator: Consolidator | None = None  # starts a child session; None: nothing here can

    def library(self) -> SkillLibrary:
        """Return the library. Imports it: call this in a thread."""
        with self._making:
            if self._library is None:
                from hermes.skills.library import SkillLibrary  # noqa: PLC0415 - no start needs it

                self._library = SkillLibrary(
                    self.root, environment=self._environment, index_max_chars=self.settings.index_max_chars
                )
            return self._library

    def _store(self) -> SkillStore:
        from hermes.skills.skill_store import SkillStore  # noqa: PLC0415

        return SkillStore(self.root)

    def _state(self) -> SkillState:
        return self.library().state.load()

    # ------------------------------------------------------------ for conversations

    async def has(self, name: str) -> bool:
        def found() -> bool:
            try:
                return self.library().catalog.get(name).name == name
            except UnknownSkillError:
                return False

        return await asyncio.to_thread(found)

    async def listed(self) -> Sequence[ListedSkill]:
        return await asyncio.to_thread(lambda: self.library().listed())

    async def load(self, name: str) -> LoadedSkill:
        """Return a skill with its instructions. Raises SkillError."""
        return await asyncio.to_thread(lambda: self.library().load(name))

    async def written_by(self, session: str) -> list[tuple[str, Change]]:
        """Return the changes that a session made or proposed, by name."""
        found = []
        for name in await self.history.names():
            found += [(name, each) for each in await self.history.changes(name) if each.session == session]
        return found

    # ------------------------------------------------------------ upkeep

    async def run(self) -> None:
        """Complete what a crash left, follow the runs of skills, and curate once a day. Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.runs.follow(self._judge))
            group.create_task(self._upkeep())

    async def recover(self) -> None:
        """Complete or drop what a crash left."""
        await self.history.recover()
        await self.operations.settle()

    async def _take_up_edits(self) -> None:
        """Record edits by hand. A skill that cannot be read is left alone, and keeps no other one from it."""
        for each in await self.listed():
            try:
                await self.history.take_up_edits([each.stored.name])
            except SkillError as error:
                logger.warning("skills: edits of {} were not recorded: {}", each.stored.name, error)

    async def _upkeep(self) -> None:
        while True:
            try:
                if await asyncio.to_thread(self.root.is_dir):
                    await self.recover()
                    await self._take_up_edits()
                    await self.curate()
                    if self.settings.consolidate and self.settings.curation is not None:
                        await self.consolidate()
            except HermesError as error:
                logger.warning("skills: upkeep failed: {}", error)
            await asyncio.sleep(_CURATE_EVERY_S)

    async def curate(self) -> list[str]:
        """Archive skills of the agent that nobody used for long. Return their names."""
        terms = self.settings.curation
        if terms is None:
            return []
        state = await asyncio.to_thread(self._state)
        archived = []
        for name in await self.history.names():
            changes = await self.history.changes(name)
            exempt = name in state.pinned or name in state.installed
            runs = await self.runs.runs(name)
            if is_archived_now(changes, runs, terms, self._clock(), exempt=exempt):
                days = round(age_of(changes, runs, self._clock()) / 86_400)
                origin = SkillOrigin(author=ChangeAuthor.SYSTEM, operation=f"archive:{changes[-1].number}")
                await self.history.write(name, ChangeAction.ARCHIVE, {}, origin, note=f"not used for {days} days")
                logger.info("skills: archived {}, not used for {} days", name, days)
                archived.append(name)
        return archived

    async def report(self) -> dict[str, Any]:
        """Return stale skills of the agent, and pairs of skills that overlap."""
        terms, now = self.settings.curation or CurationTerms(), self._clock()
        state = await asyncio.to_thread(self._state)
        stale = []
        for name in await self.history.names():
            changes, runs = await self.history.changes(name), await self.runs.runs(name)
            if is_stale(changes, runs, terms, now, exempt=name in state.pinned or name in state.installed):
                stale.append({"name": name, "days": round(age_of(changes, runs, now) / DAY_S)})
        skills = {each.stored.name: each.stored.skill for each in await self.listed()}
        texts = {name: skill.description for name, skill in skills.items() if skill is not None}
        return {"stale": stale, "overlaps": overlaps(texts)}

    async def consolidate(self) -> dict[str, Any]:
        """Let a child session merge skills of the agent that overlap, once for each state of them."""
        if self.consolidator is None:
            raise SkillError("a model has to do this: start the daemon, and see auxiliary.review")
        state = await asyncio.to_thread(self._state)
        texts, versions, last = {}, {}, 0.0
        for each in await self.listed():
            name, skill = each.stored.name, each.stored.skill
            changes = await self.history.changes(name)
            version = current(changes)
            if skill is None or version is None or not is_by_agent(changes):
                continue
            if name not in state.pinned and name not in state.installed and name not in state.disabled:
                texts[name], versions[name] = skill.description, version.digest
                last = max(last, changes[-1].at)
        names = sorted({name for one, other, _ in overlaps(texts)[:_MAX_PAIRS] for name in (one, other)})
        if not names:
            return {"skills": [], "session": ""}
        key = blake2b("\0".join(f"{name}:{versions[name]}" for name in names).encode(), digest_size=8).hexdigest()
        return {"skills": names, "session": await self.consolidator(key, names, last)}

    async def _judge(self, name: str, run: EndedRun) -> None:
        """Take back a version of the agent that is clearly worse than the one before."""
        if not self.settings.rollback:
            return
        changes = await self.history.changes(name)
        version = current(changes)
        if version is None or version.digest != run.skills.get(name):
            return
        made = next(each for each in reversed(changes) if _made(each, version.digest))
        earlier = before(changes, version.digest)
        if earlier is None or made.author not in (ChangeAuthor.AGENT, ChangeAuthor.REVIEW):
            return
        old = version_in(earlier)
        runs = await self.runs.runs(name)
        if old is None or not is_worse(effect_of(runs, version.digest), effect_of(runs, old.digest)):
            return
        note = f"version {made.number} did worse than {earlier.number}"
        origin = SkillOrigin(author=ChangeAuthor.SYSTEM, operation=f"rollback:{made.number}", session=run.session)
        await self.history.revert(name, earlier.number, origin, note=note)
        self.rollbacks += 1
        logger.info("skills: rolled {} back: {}", name, note)
        text = f"The skill {name} was rolled back: {note}. `hermes skills stats {name}` has the figures."
        if self._tell is not None:
            await self._tell(SessionId(run.session), f"skill-rollback:{name}:{made.number}", text)


def _made(change: Change, digest: str) -> bool:
    version = version_in(change)
    waits = change.action in (ChangeAction.PROPOSE, ChangeAction.REJECT)
    return version is not None and version.digest == digest and not waits

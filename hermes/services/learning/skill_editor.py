"""Editor of skills for the agent: scans every change, and lets a person decide where the rules say so."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.skill.skill import SkillError
from hermes.domain.skill.skill_policy import Permission, may_write
from hermes.domain.skill.skill_scan import ScanReport, ScanVerdict, scan
from hermes.domain.skill.skill_version import SkillOrigin, current, version_in, waiting
from hermes.ports.skills import SkillWish, SkillWriter, SkillWritten
from hermes.services.learning.skill_history import SkillHistory
from hermes.services.learning.skill_runs import SkillRuns

if TYPE_CHECKING:
    from hermes.skills.skill_state import SkillState
    from hermes.skills.skill_tree import SkillTree


class SkillEditor(SkillWriter):
    def __init__(
        self, history: SkillHistory, runs: SkillRuns, *, state: Callable[[], SkillState], approval: Callable[[], bool]
    ) -> None:
        """`approval` tells whether every change by the agent needs a person's approval."""
        self._history = history
        self._runs = runs
        self._state = state
        self._approval = approval
        self.counts: Counter[str] = Counter()  # changes by author, proposals and refusals

    async def write(self, wish: SkillWish, origin: SkillOrigin, expects: str) -> SkillWritten:
        await self._history.take_up_edits([wish.name])
        changes = await self._history.changes(wish.name)
        if known := next((each for each in changes if each.operation == origin.operation), None):
            return _written(known, waits=known.action is ChangeAction.PROPOSE)
        version = current(changes)
        there = version is not None and version.is_there
        if there != (wish.action is not ChangeAction.CREATE):
            raise SkillError(f"there is {'already a' if there else 'no'} skill {wish.name}")
        if wish.action is ChangeAction.DELETE:
            await self._check_deletable(wish.name)
        if there and version is not None and version.digest != expects:
            raise SkillError(f"{wish.name} was changed meanwhile: load it again")
        before = await self._history.tree(version) if there and version is not None else {}
        tree, reports = await asyncio.to_thread(_changed, before, wish)
        category = f"{wish.category}/" if wish.category else ""
        place = version.place if there and version is not None else f"{category}{wish.name}"
        match may_write(reports[1], reports[0], origin.author, approval=self._approval()):
            case Permission.REFUSED:
                self.counts["refused"] += 1
                raise SkillError(f"the change was refused: {'; '.join(_reasons(reports[1], ScanVerdict.DANGEROUS))}")
            case Permission.ASK:
                self.counts["proposed"] += 1
                change = await self._history.propose(
                    wish.name, wish.action, tree, origin, place=place, note=wish.note
                )
                return _written(change, waits=True, reasons=_reasons(reports[1]))
        change = await self._history.write(
            wish.name, wish.action, tree, origin, place=place, note=wish.note, expects=expects
        )
        self.counts[origin.author] += 1
        return _written(change)

    async def note_loaded(self, name: str, digest: str, origin: SkillOrigin) -> None:
        await self._runs.loaded(name, digest, origin)

    # ------------------------------------------------------------ proposals

    async def proposals(self) -> list[tuple[str, Change]]:
        """Return the changes that wait for a person, by name."""
        found = []
        for name in await self._history.names():
            found += [(name, change) for change in waiting(await self._history.changes(name))]
        return found

    async def approve(self, name: str, number: int, origin: SkillOrigin) -> Change:
        """Make a proposal the skill. Raises SkillError if the skill has changed since."""
        changes = await self._history.changes(name)
        proposal = self._proposal(name, number, changes)
        version = version_in(proposal)
        assert version is not None
        earlier = current([each for each in changes if each.number < number])
        expects = earlier.digest if earlier is not None else ""
        tree = await self._history.tree(version)
        self.counts[ChangeAuthor.PERSON] += 1
        return await self._history.write(
            name,
            ChangeAction.APPROVE,
            tree,
            origin,
            place=version.place,
            note=version.note,
            settles=number,
            expects=expects,
        )

    async def reject(self, name: str, number: int, origin: SkillOrigin) -> Change:
        self._proposal(name, number, await self._history.changes(name))
        return await self._history.reject(name, number, origin)

    def _proposal(self, name: str, number: int, changes: list[Change]) -> Change:
        found = next((each for each in waiting(changes) if each.number == number), None)
        if found is None:
            raise SkillError(f"change {number} of {name} does not wait for approval")
        return found

    async def _check_deletable(self, name: str) -> None:
        state = await asyncio.to_thread(self._state)
        if name in state.installed or name in state.pinned:
            raise SkillError(f"{name} was installed or pinned by a person: only `hermes skills remove` removes it")


def _changed(before: SkillTree, wish: SkillWish) -> tuple[SkillTree, tuple[ScanReport, ScanReport]]:
    from hermes.skills.skill_edit import edited  # noqa: PLC0415 - no start needs it

    tree = edited(before, wish)
    return tree, (scan(_data(before)), scan(_data(tree)))


def _data(tree: SkillTree) -> dict[str, bytes]:
    return {path: file.data for path, file in tree.items()}


def _reasons(report: ScanReport, least: ScanVerdict = ScanVerdict.CAUTION) -> tuple[str, ...]:
    return tuple(
        f"{each.path}{f':{each.line}' if each.line else ''} {each.reason}"
        for each in report.findings
        if each.verdict is least or least is ScanVerdict.CAUTION
    )[:5]


def _written(change: Change, *, waits: bool = False, reasons: tuple[str, ...] = ()) -> SkillWritten:
    version = version_in(change)
    digest = version.digest if version is not None else ""
    return SkillWritten(number=change.number, digest=digest, waits=waits, reasons=reasons)

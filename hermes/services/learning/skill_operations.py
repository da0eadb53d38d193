"""Operations of a person on skills: list, install, remove, audit, history, switches. For commands and operators."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.skill.skill import SkillError, UnknownSkillError
from hermes.domain.skill.skill_effect import effect_of
from hermes.domain.skill.skill_policy import Permission, TrustTier, may_install
from hermes.domain.skill.skill_scan import ScanReport, scan
from hermes.domain.skill.skill_version import SkillOrigin, current, version_in
from hermes.domain.values import dataclass, replace
from hermes.services.learning.skill_editor import SkillEditor
from hermes.services.learning.skill_history import SkillHistory
from hermes.services.learning.skill_runs import SkillRuns
from hermes.system.crash_point import reach

if TYPE_CHECKING:
    from hermes.skills.catalog import StoredSkill
    from hermes.skills.library import ListedSkill, SkillLibrary
    from hermes.skills.skill_tree import SkillTree

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallWish:
    """A skill in a folder of this machine that is to be installed."""

    folder: Path
    source: Mapping[str, str]  # kind, address and path, for an update
    tier: TrustTier
    category: str = ""
    agreed: bool = False  # the person has seen the findings that need a yes
    forced: bool = False  # the person insists in spite of dangerous findings
    update: bool = False  # the skill may be there already
    at: float


class SkillOperations:
    def __init__(
        self, library: Callable[[], SkillLibrary], history: SkillHistory, editor: SkillEditor, runs: SkillRuns
    ) -> None:
        """`library` is called in threads only."""
        self._library = library
        self._history = history
        self._editor = editor
        self._runs = runs
        self._installing = asyncio.Lock()

    # ------------------------------------------------------------ reading

    async def listed(self) -> dict[str, Any]:
        library, found, state = await asyncio.to_thread(self._listed)
        rows = [_row(each, state.installed.get(each.stored.name), state) for each in found]
        there = {row["name"] for row in rows}
        gone = [name for name in await self._history.names() if name not in there]
        proposals = [
            {"name": name, "number": change.number, **_change_row(change)}
            for name, change in await self._editor.proposals()
        ]
        return {"skills": rows, "archived": gone, "waiting": proposals, "directory": str(library.root)}

    async def show(self, name: str) -> dict[str, Any]:
        loaded, listed = await self._in_library(partial(_shown, name=name))
        state = await self._in_library(lambda library: library.state.load())
        row = _row(listed, state.installed.get(listed.stored.name), state)
        return {**row, "body": loaded[0], "files": loaded[1], "folder": str(listed.stored.folder)}

    async def log(self, name: str) -> dict[str, Any]:
        await self._history.take_up_edits([name])
        changes = await self._history.changes(name)
        if not changes:
            raise UnknownSkillError(f"there is no skill {name[:80]!r}")
        return {"name": name, "changes": [_change_row(change) for change in reversed(changes)]}

    async def diff(self, name: str, number: int = 0) -> dict[str, Any]:
        """Return what a change did to the files; 0: the last one."""
        await self._history.take_up_edits([name])
        changes = await self._history.changes(name)
        made = [each for each in changes if number in (0, each.number)]
        if not made:
            raise SkillError(f"{name} has no change {number or ''}".rstrip())
        change = made[-1]
        after = version_in(change)
        before = current([each for each in changes if each.number < change.number])
        trees = [await self._history.tree(each) if each is not None else {} for each in (before, after)]
        return {"name": name, "number": change.number, "diff": _unified(*trees)}

    async def stats(self, name: str = "") -> dict[str, Any]:
        names = [name] if name else await self._history.names()
        return {"skills": [found for each in names if (found := await self._effects(each)) is not None]}

    async def audit(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """Scan skills again, and compare installed ones with the lock file."""
        found = await self._in_library(partial(_audited, names=names))
        return {"skills": found}

    async def files(self, name: str) -> dict[str, Any]:
        """Return the folder of a skill for an archive of it. Raises SkillError unless it is valid."""
        found = await self._in_library(partial(_publishable, name=name))
        return {"name": name, "folder": found}

    # ------------------------------------------------------------ changing

    async def install(self, wish: InstallWish, origin: SkillOrigin) -> dict[str, Any]:
        """Scan a skill and install it, or say what keeps it from being installed. Raises SkillError."""
        skill_name, tree, report = await asyncio.to_thread(_read_source, wish.folder)
        answer = {"name": skill_name, "tier": wish.tier.value, **_report(report), "installed": False}
        version = current(await self._history.changes(skill_name))
        there = version is not None and version.is_there
        if there and not wish.update:
            raise SkillError(f"{skill_name} is installed already: `hermes skills update {skill_name}` updates it")
        if wish.forced or (wish.agreed and may_install(report, wish.tier) is Permission.ASK):
            permission = Permission.ALLOWED
        else:
            permission = may_install(report, wish.tier)
        answer["permission"] = permission.value
        if permission is not Permission.ALLOWED:
            return answer
        category = f"{wish.category}/" if wish.category else ""
        place = version.place if there and version is not None else f"{category}{skill_name}"
        async with self._installing:
            await self._in_library(lambda library: _begin_installation(library, skill_name, tree, wish, report))
            reach("skill: about to install")
            change = await self._history.write(
                skill_name,
                ChangeAction.UPDATE if there else ChangeAction.INSTALL,
                tree,
                origin,
                place=place,
                note=wish.source.get("address", ""),
            )
            reach("skill: installed")
            await self._settle_all()
        return {**answer, "installed": True, "place": place, "number": change.number}

    async def settle(self) -> None:
        """Note which installations are done. One that a crash cut off before its record is not."""
        async with self._installing:
            await self._settle_all()

    async def _settle_all(self) -> None:
        for name in (await self._in_library(lambda library: library.state.load())).installing:
            version = current(await self._history.changes(name))
            digest = version.digest if version is not None else ""
            await self._in_library(partial(_settle, name, digest))

    async def remove(self, name: str, origin: SkillOrigin, action: ChangeAction = ChangeAction.DELETE) -> Change:
        """Remove a skill from the disk. Its versions stay, and `revert` brings it back."""
        await self._history.take_up_edits([name])
        version = current(await self._history.changes(name))
        if version is None or not version.is_there:
            raise UnknownSkillError(f"there is no skill {name[:80]!r}")
        change = await self._history.write(name, action, {}, origin, place=version.place)
        await self._in_library(lambda library: library.state.forget(name))
        return change

    async def revert(self, name: str, number: int, origin: SkillOrigin) -> Change:
        """Make an earlier version the current one; 0: the one before the last change."""
        await self._history.take_up_edits([name])
        changes = await self._history.changes(name)
        if not number:
            last = current(changes)
            older = [
                each
                for each in changes
                if (version := version_in(each)) is not None
                and each.action not in (ChangeAction.PROPOSE, ChangeAction.REJECT)
                and version.is_there
                and (last is None or version.digest != last.digest)
            ]
            if not older:
                raise SkillError(f"{name} has no earlier version")
            number = older[-1].number
        return await self._history.revert(name, number, origin, note=f"back to {number}")

    async def switch(self, name: str, *, enabled: bool | None = None, pinned: bool | None = None) -> None:
        def switch(library: SkillLibrary) -> None:
            stored = library.catalog.get(name)
            state = library.state.load()
            if enabled is not None:
                disabled = state.disabled - {stored.name} if enabled else state.disabled | {stored.name}
                state = replace(state, disabled=disabled)
            if pinned is not None:
                state = replace(
                    state, pinned=state.pinned | {stored.name} if pinned else state.pinned - {stored.name}
                )
            library.state.save(state)

        await self._in_library(switch)

    # ------------------------------------------------------------ steps

    async def _effects(self, name: str) -> dict[str, Any] | None:
        runs = await self._runs.runs(name)
        changes = await self._history.changes(name)
        if not changes and not runs:
            raise UnknownSkillError(f"there is no skill {name[:80]!r}")
        digests = dict.fromkeys(run.digest for run in runs)
        numbers = {version.digest: each.number for each in reversed(changes) if (version := version_in(each))}
        effects = [effect_of(runs, digest) for digest in digests]
        return {
            "name": name,
            "versions": [
                {
                    "version": numbers.get(each.digest, 0),
                    "digest": each.digest,
                    "runs": sum(each.outcomes.values()),
                    "success": round(each.success, 3),
                    "calls": each.calls,
                    "tokens": each.tokens,
                    "outcomes": each.outcomes,
                    "last_at": each.last_at,
                }
                for each in effects
            ],
        }

    async def _in_library(self, work: Callable[[SkillLibrary], T]) -> T:
        def run() -> T:
            try:
                return work(self._library())
            except OSError as error:
                raise SkillError(f"{error.filename or 'the skills directory'}: {error.strerror or error}") from error

        return await asyncio.to_thread(run)

    def _listed(self) -> tuple[SkillLibrary, Sequence[ListedSkill], Any]:
        library = self._library()
        return library, library.listed(), library.state.load()


def _shown(library: SkillLibrary, name: str) -> tuple[tuple[str, list[str]], ListedSkill]:
    from hermes.skills.skill_tree import main_text, read_tree  # noqa: PLC0415 - no start needs it

    stored = library.catalog.get(name)
    listed = next(each for each in library.listed() if each.stored.name == stored.name)
    if stored.problem:  # its files may not be readable at all
        return ("", []), listed
    return (main_text(stored.folder), sorted(read_tree(stored.folder))), listed


def _audited(library: SkillLibrary, names: Sequence[str]) -> list[dict[str, Any]]:
    installed = library.state.load().installed
    chosen = [library.catalog.get(name) for name in names] or library.catalog.all()
    return [_audit(stored, installed.get(stored.name)) for stored in chosen]


def _audit(stored: StoredSkill, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a scan finds. A skill that cannot be read keeps no other one from being scanned."""
    from hermes.skills.skill_tree import read_tree, tree_digest  # noqa: PLC0415

    tree: SkillTree = {}
    problem = stored.problem
    try:
        tree = read_tree(stored.folder)
    except (SkillError, OSError) as error:
        problem = f"it cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    return {
        "name": stored.name,
        "tier": entry.get("tier", "") if entry else "",
        "changed": None if entry is None else entry.get("digest") != tree_digest(tree),
        "problem": problem,
        **_report(scan({path: file.data for path, file in tree.items()})),
    }


def _publishable(library: SkillLibrary, name: str) -> str:
    from hermes.skills.skill_tree import check_tree, read_tree  # noqa: PLC0415

    stored = library.catalog.get(name)
    tree = read_tree(stored.folder, strict=True)
    check_tree(tree, stored.folder.name)
    return str(stored.folder)


def _read_source(folder: Path) -> tuple[str, SkillTree, ScanReport]:
    from hermes.skills.skill_tree import check_tree, read_tree  # noqa: PLC0415

    try:
        tree = read_tree(folder, strict=True)
    except OSError as error:
        raise SkillError(f"{folder}: {error.strerror or error}") from error
    skill = check_tree(tree)
    return skill.name, tree, scan({path: file.data for path, file in tree.items()})


def _begin_installation(
    library: SkillLibrary, name: str, tree: SkillTree, wish: InstallWish, report: ScanReport
) -> None:
    """Note source and hashes, and that a person accepted what the scan found."""
    import hashlib  # noqa: PLC0415

    from hermes.skills.frontmatter import decoded  # noqa: PLC0415
    from hermes.skills.skill_tree import tree_digest  # noqa: PLC0415

    accepted = hashlib.sha256(decoded(tree["SKILL.md"].data).encode()).hexdigest() if wish.forced else ""
    entry = {
        "source": dict(wish.source),
        "tier": wish.tier.value,
        "verdict": report.verdict.value,
        "digest": tree_digest(tree),
        "files": {path: tree[path].digest for path in sorted(tree)},
        "at": wish.at,
        "accepted": accepted,
    }
    library.state.begin(name, entry)


def _settle(name: str, digest: str, library: SkillLibrary) -> None:
    library.state.settle(name, digest)


def _row(listed: ListedSkill, entry: Mapping[str, Any] | None, state: Any) -> dict[str, Any]:
    stored, skill = listed.stored, listed.stored.skill
    return {
        "name": stored.name,
        "category": stored.category,
        "description": skill.description if skill else "",
        "problem": listed.problem,
        "enabled": stored.name not in state.disabled,
        "pinned": stored.name in state.pinned,
        "tier": str(entry["tier"]) if entry else "",
        "source": str(entry["source"].get("address", "")) if entry else "",
        "origin": dict(entry["source"]) if entry else {},
        "changed_at": stored.changed_at,
    }


def _change_row(change: Change) -> dict[str, Any]:
    version = version_in(change)
    return {
        "number": change.number,
        "at": change.at,
        "author": change.author.value,
        "action": change.action.value,
        "wish": version.wish if version else "",
        "note": version.note if version else "",
        "digest": version.digest if version else "",
        "by": change.by,
        "session": change.session,
        "turn": change.turn,
    }


def _report(report: ScanReport) -> dict[str, Any]:
    findings = [
        {
            "rule": each.rule.value,
            "verdict": each.verdict.value,
            "path": each.path,
            "line": each.line,
            "reason": each.reason,
        }
        for each in report.findings
    ]
    return {"verdict": report.verdict.value, "findings": findings}


def _unified(before: SkillTree, after: SkillTree) -> str:
    import difflib  # noqa: PLC0415 - only for someone who reads a change

    lines: list[str] = []
    for path in sorted({*before, *after}):
        old, new = (tree[path].data if path in tree else b"" for tree in (before, after))
        if old == new:
            continue
        one, other = (each.decode(errors="replace").splitlines() for each in (old, new))
        lines += difflib.unified_diff(one, other, f"before/{path}", f"after/{path}", lineterm="")
    return "\n".join(lines)


def person(operation: str, by: str = "") -> SkillOrigin:
    """Return the origin of a change by a command."""
    return SkillOrigin(author=ChangeAuthor.PERSON, operation=f"{operation}:{time.time_ns()}", by=by)

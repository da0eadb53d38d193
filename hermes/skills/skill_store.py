"""Store of skill versions: files by their hash, staged trees, and the swap of a whole skill. All functions block.

A version is staged and synced, then recorded in the change log, then swapped in with one rename. `staged` lists what
a crash left between these steps; the change log decides whether it is completed or dropped.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.domain.skill.skill import SkillError, check_path
from hermes.domain.skill.skill_version import SkillVersion
from hermes.domain.values import dataclass
from hermes.skills.skill_tree import SkillTree, TreeFile, read_tree, tree_digest, write_tree
from hermes.system.crash_point import reach
from hermes.system.durable_file import replace_file, sync_directory

_STAGING: Final = ".staging"
_OBJECTS: Final = ".versions"
_PLAN: Final = "change.json"
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSkill:
    """A prepared change of one skill."""

    folder: Path
    name: str
    operation: str
    place: str
    previous_place: str  # empty: there is no skill yet
    digest: str  # of the new version; empty: the skill goes away


class SkillStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    # ------------------------------------------------------------ versions

    def keep(self, tree: SkillTree) -> Mapping[str, tuple[str, bool]]:
        """Store the files durably by their hash. Return the manifest."""
        self._make(_OBJECTS)
        folders = set()
        for file in tree.values():
            place = self._object(file.digest)
            if not place.exists():
                place.parent.mkdir(mode=0o700, exist_ok=True)
                _write_object(place, file.data)
                folders.add(place.parent)
        for folder in folders:
            sync_directory(folder)
        if folders:
            sync_directory(self.root / _OBJECTS)
        return {path: (file.digest, file.executable) for path, file in tree.items()}

    def tree_of(self, version: SkillVersion) -> SkillTree:
        """Return the files of a version. Raises SkillError if one is missing or damaged."""
        tree = {}
        for path, (digest, executable) in version.files.items():
            try:
                data = self._object(digest).read_bytes()
            except OSError as error:
                raise SkillError(f"the version has lost {path}: {error.strerror}") from None
            if hashlib.sha256(data).hexdigest() != digest:
                raise SkillError(f"{path} of the version is damaged")
            tree[path] = TreeFile(data=data, executable=executable)
        return tree

    def live(self, place: str) -> SkillTree | None:
        """Return the files of a skill as they are; None if it is not there."""
        try:
            return read_tree(self.root / place)
        except (FileNotFoundError, NotADirectoryError):
            return None

    # ------------------------------------------------------------ changes

    def stage(self, name: str, operation: str, version: SkillVersion, tree: SkillTree, previous: str) -> StagedSkill:
        """Write the new version beside the skills, durably."""
        for place in filter(None, (version.place, previous)):
            self._check_place(place)
        folder = self._make(_STAGING) / hashlib.sha256(f"{name}\0{operation}".encode()).hexdigest()[:32]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        staged = StagedSkill(
            folder=folder,
            name=name,
            operation=operation,
            place=version.place,
            previous_place=previous,
            digest=version.digest,
        )
        if version.is_there:
            write_tree(folder / "new", tree)
        fields = {each: getattr(staged, each) for each in ("name", "operation", "place", "previous_place", "digest")}
        replace_file(folder / _PLAN, json.dumps(fields))
        sync_directory(folder)
        sync_directory(folder.parent)
        reach("skill: staged")
        return staged

    def staged(self) -> tuple[StagedSkill, ...]:
        """Return the changes that were not completed. Removes those that were not fully staged."""
        found = []
        with suppress(FileNotFoundError):
            for folder in sorted((self.root / _STAGING).iterdir()):
                try:
                    fields = json.loads((folder / _PLAN).read_bytes())
                    found.append(StagedSkill(folder=folder, **fields))
                except (OSError, ValueError, TypeError):
                    _remove(folder)
        return tuple(found)

    def apply(self, staged: StagedSkill) -> None:
        """Swap the version in, and remove the staging folder. May be repeated."""
        target = self.root / staged.place
        if staged.digest and self._digest(staged.place) != staged.digest:
            target.parent.mkdir(mode=0o755, exist_ok=True)
            _put(staged.folder / "new", target, aside=staged.folder / "old")
            sync_directory(target.parent)
        gone = staged.previous_place if staged.previous_place != staged.place or not staged.digest else ""
        if gone and (self.root / gone).is_dir():
            shutil.rmtree(staged.folder / "old", ignore_errors=True)
            (self.root / gone).rename(staged.folder / "old")
            sync_directory((self.root / gone).parent)
        reach("skill: swapped")
        self.drop(staged)

    def drop(self, staged: StagedSkill) -> None:
        _remove(staged.folder)
        sync_directory(self.root / _STAGING)

    # ------------------------------------------------------------ paths

    def _digest(self, place: str) -> str:
        try:
            tree = self.live(place)
        except SkillError:  # too large, or a name that is not allowed
            return ""
        return "" if tree is None else tree_digest(tree)

    def _object(self, digest: str) -> Path:
        return self.root / _OBJECTS / digest[:2] / digest

    def _make(self, name: str) -> Path:
        self.root.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder = self.root / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _check_place(self, place: str) -> None:
        parts = check_path(place)
        if len(parts) > 2:
            raise SkillError(f"{place!r} is not NAME or CATEGORY/NAME")
        for count in (1, 2):
            if self.root.joinpath(*parts[:count]).is_symlink():
                raise SkillError(f"{place!r} is a symbolic link: remove it first")


def _write_object(place: Path, data: bytes) -> None:
    draft = place.with_name(f".{place.name[:16]}.{os.urandom(4).hex()}")
    with draft.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place)


def _put(new: Path, target: Path, *, aside: Path) -> None:
    """Rename the new folder to its place; an existing one goes aside, in one step where the system can do that."""
    if not target.exists():
        new.rename(target)
    elif not _exchanged(new, target):
        target.rename(aside)
        new.rename(target)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names atomically. False if the kernel or the file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    done = libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if done != 0 and (number := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
        raise OSError(number, os.strerror(number), str(other))
    return bool(done == 0)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

"""Catalogue of the skills in the home: `skills/[category/]NAME/SKILL.md`.

Every look lists the directories again and parses only files that changed, so a new or edited skill is there without
a restart. All functions read the disk: call them in a thread.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hermes.domain.skill.skill import (
    MAX_FILE_BYTES,
    MAX_FILES,
    SKILL_FILE,
    Skill,
    SkillError,
    UnknownSkillError,
    check_fields,
    check_path,
    normalised,
)
from hermes.domain.values import dataclass
from hermes.skills.frontmatter import decoded, parse

_NAMES: Final = (SKILL_FILE, "skill.md")
MAX_SKILLS: Final = 2000
_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSkill:
    """A skill on disk. If it cannot be used, `problem` says why and `skill` is None."""

    name: str
    category: str
    folder: Path
    skill: Skill | None
    problem: str = ""
    changed_at: float = 0.0

    @property
    def place(self) -> str:
        return f"{self.category}/{self.name}" if self.category else self.name


class SkillCatalog:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[_Stamp, StoredSkill]] = {}
        self._lock = threading.Lock()

    def all(self) -> tuple[StoredSkill, ...]:
        """Return all skills, by name. Of two with the same name, the first place in order counts."""
        with self._lock:
            found: dict[str, StoredSkill] = {}
            known: dict[str, tuple[_Stamp, StoredSkill]] = {}
            for file, category in _files(self.root):
                stamped = self._read(file, category)
                if stamped is not None:
                    known[file] = stamped
                    found.setdefault(stamped[1].name, stamped[1])
                if len(known) >= MAX_SKILLS:
                    break
            self._known = known
        return tuple(found[name] for name in sorted(found))

    def get(self, name: str) -> StoredSkill:
        """Return a skill by its name or place. Raises UnknownSkillError."""
        wanted = normalised(name.rpartition("/")[2]).lower()
        for each in self.all():
            if each.name == wanted and ("/" not in name or each.place == name):
                return each
        raise UnknownSkillError(f"there is no skill {name[:80]!r}")

    def _read(self, file: str, category: str) -> tuple[_Stamp, StoredSkill] | None:
        try:
            status = os.lstat(file)
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if (before := self._known.get(file)) is not None and before[0] == stamp:
            return before
        folder = Path(file).parent
        skill, problem = None, ""
        try:
            skill = check_fields(parse(read_text(file)).fields, folder.name)
        except (SkillError, OSError) as error:
            problem = f"it cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
        name = normalised(folder.name).lower()
        stored = StoredSkill(
            name=name, category=category, folder=folder, skill=skill, problem=problem, changed_at=status.st_mtime
        )
        return stamp, stored


def read_text(file: str | Path) -> str:
    """Return the text of SKILL.md. Raises SkillError and OSError."""
    return decoded(read_bytes(file))


def read_bytes(file: str | Path) -> bytes:
    """Return the content of a regular file of a skill. Raises SkillError and OSError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SkillError("it is a symbolic link") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # before `open`, which refuses a directory
        os.close(descriptor)
        raise SkillError("it is not a regular file")
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor has no path
        data = opened.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise SkillError(f"it is larger than {MAX_FILE_BYTES} bytes")
    return data


def skill_file(folder: Path) -> Path:
    """Return the path of the main file of a skill."""
    return next((folder / name for name in _NAMES if (folder / name).is_file()), folder / SKILL_FILE)


def inner_file(folder: Path, path: str) -> Path:
    """Return the path of a file inside a skill, none of whose parts is a link. Raises SkillError."""
    place = folder
    for part in check_path(path):
        place = place / part
        if place.is_symlink():
            raise SkillError(f"{path[:100]!r} is a symbolic link")
    return place


def inner_files(folder: Path) -> tuple[str, ...]:
    """Return the paths of the regular files of a skill in order, without hidden ones and links."""
    return tuple(sorted(_inner(folder, "")))[:MAX_FILES]


def _inner(folder: Path, prefix: str) -> Iterator[str]:
    for entry in _entries(str(folder)):
        if entry.is_dir(follow_symlinks=False):
            if prefix.count("/") < 6:
                yield from _inner(folder / entry.name, f"{prefix}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield f"{prefix}{entry.name}"


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the main file of each skill, and its category."""
    for entry in _entries(str(root)):
        if not entry.is_dir(follow_symlinks=False):
            continue
        if main := _main(entry.path):
            yield main, ""
            continue
        for inner in _entries(entry.path):
            if inner.is_dir(follow_symlinks=False) and (main := _main(inner.path)):
                yield main, entry.name


def _main(folder: str) -> str:
    return next((path for name in _NAMES if os.path.lexists(path := f"{folder}/{name}")), "")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)

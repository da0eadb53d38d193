"""Tree of a skill: its regular files in memory, bounded in number and size. All functions block."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from hermes.domain.skill.skill import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    SKILL_FILE,
    Skill,
    SkillError,
    check_fields,
    check_path,
)
from hermes.domain.values import dataclass
from hermes.skills.catalog import read_bytes, skill_file
from hermes.skills.frontmatter import decoded, parse
from hermes.system.durable_file import sync_directory
from hermes.system.tool_readable import create_readable_file

_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})
_MAX_DEPTH: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    data: bytes
    executable: bool = False

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


SkillTree: TypeAlias = Mapping[str, TreeFile]  # by path


def read_tree(folder: Path, *, strict: bool = False) -> SkillTree:
    """Return the files of a skill. Hidden files and caches are left out. Raises SkillError and OSError.

    Links and special files are left out, or refused if `strict`.
    """
    tree: dict[str, TreeFile] = {}
    total = 0
    for path in _paths(folder, "", strict=strict):
        if len(tree) >= MAX_FILES:
            raise SkillError(f"the skill has more than {MAX_FILES} files")
        file = folder / path
        try:
            data = read_bytes(file)
        except SkillError as error:
            raise SkillError(f"{path}: {error}") from None
        total += len(data)
        if total > MAX_TOTAL_BYTES:
            raise SkillError(f"the skill is larger than {MAX_TOTAL_BYTES >> 20} MB")
        is_main = path == "skill.md"
        executable = bool(file.stat().st_mode & stat.S_IXUSR)
        tree[SKILL_FILE if is_main else path] = TreeFile(data=data, executable=executable)
    return tree


def _paths(folder: Path, prefix: str, *, strict: bool) -> Iterator[str]:
    with os.scandir(folder / prefix) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.name.startswith(".") or entry.name in _LEFT_OUT:
            continue
        if entry.is_dir(follow_symlinks=False):
            if prefix.count("/") >= _MAX_DEPTH:
                raise SkillError(f"{path[:100]!r} is nested too deeply")
            yield from _paths(folder, f"{path}/", strict=strict)
        elif entry.is_file(follow_symlinks=False):
            check_path(path)
            yield path
        elif strict:
            raise SkillError(f"{path[:100]!r} is a link or a special file")


def tree_digest(tree: SkillTree) -> str:
    """Return the digest of a version: equal trees have equal digests."""
    whole = hashlib.sha256()
    for path in sorted(tree):
        whole.update(f"{path}\0{int(tree[path].executable)}\0{tree[path].digest}\n".encode())
    return whole.hexdigest()


def check_tree(tree: SkillTree, folder: str = "") -> Skill:
    """Return the skill that the tree is. Raises SkillError."""
    if SKILL_FILE not in tree:
        raise SkillError(f"there is no {SKILL_FILE}")
    if len(tree) > MAX_FILES or sum(len(file.data) for file in tree.values()) > MAX_TOTAL_BYTES:
        raise SkillError(f"a skill has at most {MAX_FILES} files and {MAX_TOTAL_BYTES >> 20} MB")
    directories: set[str] = set()
    for path, file in tree.items():
        check_path(path)
        if len(file.data) > MAX_FILE_BYTES:
            raise SkillError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        directories.update("/".join(path.split("/")[:end]) for end in range(1, path.count("/") + 1))
    if both := directories & set(tree):
        raise SkillError(f"{min(both)} is a file and a directory")
    return check_fields(parse(decoded(tree[SKILL_FILE].data)).fields, folder)


def write_tree(folder: Path, tree: SkillTree) -> None:
    """Write the tree into a new folder that tools may read, and sync it to disk."""
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    directories = [folder]
    for path in sorted(tree):
        place = folder
        for part in check_path(path)[:-1]:
            place = place / part
            if place not in directories:
                place.mkdir(mode=0o755)
                place.chmod(0o755)
                directories.append(place)
        with open(create_readable_file(folder / path), "wb") as file:  # noqa: PTH123 - a descriptor has no path
            if tree[path].executable:
                os.fchmod(file.fileno(), 0o755)
            file.write(tree[path].data)
            file.flush()
            os.fsync(file.fileno())
    for directory in reversed(directories):
        sync_directory(directory)


def main_text(folder: Path) -> str:
    """Return the text of SKILL.md in a folder. Raises SkillError and OSError."""
    return decoded(read_bytes(skill_file(folder)))

"""Snapshot of a directory as git trees, and its return. Every file is opened without following links.

Blocking: call it in a thread.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from hermes.domain.errors import BadInputError
from hermes.domain.values import dataclass
from hermes.tools.checkpoint.git_store import FILE, LINK, PROGRAM, TREE, GitStore, TreeEntry, opened_below

SKIPPED: Final = frozenset({b".git", b"node_modules", b"__pycache__", b".venv", b"venv", b".mypy_cache", b".cache"})
Known = dict[bytes, tuple[int, int, int, str]]  # path: size, time of change, inode and id of a stored file
Files = Mapping[bytes, tuple[str, str]]  # path: mode and id


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    files: int = 20_000
    file_bytes: int = 10 << 20  # larger files are left out
    total_bytes: int = 200 << 20


class TooLargeError(BadInputError):
    """The directory is too large for a checkpoint."""


class Snapshot:
    """Walk of one directory."""

    def __init__(
        self, store: GitStore, limits: SnapshotLimits, known: dict[bytes, tuple[int, int, int, str]]
    ) -> None:
        self._store = store
        self._limits = limits
        self._known = known
        self._files = 0
        self._bytes = 0

    def take(self, directory: str) -> str:
        """Store the directory and return the id of its tree. Raises OSError or TooLargeError."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return self._tree(descriptor, b"")
        finally:
            os.close(descriptor)

    def _tree(self, directory: int, path: bytes) -> str:
        names = [name for name in map(os.fsencode, os.listdir(directory)) if name not in SKIPPED]
        entries = [self._entry(directory, name, path + name) for name in names]
        return self._store.put_tree(each for each in entries if each is not None)

    def _entry(self, directory: int, name: bytes, path: bytes) -> TreeEntry | None:
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                below = opened_below(directory, name)
                try:
                    return TreeEntry(mode=TREE, name=name, id=self._tree(below, path + b"/"))
                finally:
                    os.close(below)
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(name, dir_fd=directory)
                return TreeEntry(mode=LINK, name=name, id=self._store.put("blob", os.fsencode(target)))
            if stat.S_ISREG(status.st_mode) and status.st_size <= self._limits.file_bytes:
                return self._file(directory, name, path, status)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # it changed meanwhile, or cannot be read
        except OSError as error:
            if error.errno != errno.ELOOP:  # it became a link meanwhile
                raise
        return None

    def _file(self, directory: int, name: bytes, path: bytes, status: os.stat_result) -> TreeEntry:
        self._files += 1
        self._bytes += status.st_size
        if self._files > self._limits.files or self._bytes > self._limits.total_bytes:
            raise TooLargeError("the working directory is too large for a checkpoint", code="checkpoint_too_large")
        mode = PROGRAM if status.st_mode & stat.S_IXUSR else FILE
        seen = (status.st_size, status.st_mtime_ns, status.st_ino)
        if (known := self._known.get(path)) is not None and known[:3] == seen:
            return TreeEntry(mode=mode, name=name, id=known[3])
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        with os.fdopen(descriptor, "rb") as file:
            stored = self._store.put("blob", file.read(self._limits.file_bytes + 1))
        self._known[path] = (*seen, stored)
        return TreeEntry(mode=mode, name=name, id=stored)


def files_of(store: GitStore, tree: str, below: bytes = b"") -> dict[bytes, tuple[str, str]]:
    """Return all files of a tree."""
    found: dict[bytes, tuple[str, str]] = {}
    for each in store.tree(tree):
        if each.mode == TREE:
            found |= files_of(store, each.id, below + each.name + b"/")
        else:
            found[below + each.name] = (each.mode, each.id)
    return found


def put_back(store: GitStore, directory: str, now: Files, wanted: Files) -> None:
    """Change the directory from one state to another. Files that are equal in both are not touched."""
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for path in sorted(set(now) - set(wanted)):
            _remove(root, path)
        for path, (mode, name) in wanted.items():
            if now.get(path) != (mode, name):
                _write(root, path, mode, store.get(name))
    finally:
        os.close(root)


def _parent(root: int, path: bytes, *, make: bool) -> tuple[int, bytes]:
    """Open the directory of a path below the root. The caller closes it."""
    *names, last = path.split(b"/")
    directory = os.dup(root)
    for name in names:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=directory)
                owner = os.fstat(directory)
                os.chown(name, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)
        try:
            below = opened_below(directory, name)
        finally:
            os.close(directory)
        directory = below
    return directory, last


def _remove(root: int, path: bytes) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        directory, name = _parent(root, path, make=False)
        try:
            os.unlink(name, dir_fd=directory)
        finally:
            os.close(directory)


def _remove_empty(directory: int, name: bytes) -> None:
    """Remove a directory whose files were removed, with the empty ones in it. Others stay."""
    try:
        below = opened_below(directory, name)
    except OSError:  # not a directory
        return
    try:
        for each in map(os.fsencode, os.listdir(below)):  # noqa: PTH208 - a descriptor
            _remove_empty(below, each)
    finally:
        os.close(below)
    with suppress(OSError):
        os.rmdir(name, dir_fd=directory)


def _write(root: int, path: bytes, mode: str, data: bytes) -> None:
    """Write a file beside its place, then move it there."""
    directory, name = _parent(root, path, make=True)
    try:
        fresh = name[:200] + b".hermes-rollback"
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=directory)
        if mode == LINK:
            os.symlink(data, fresh, dir_fd=directory)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(fresh, flags, mode=0o755 if mode == PROGRAM else 0o644, dir_fd=directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        owner = os.fstat(directory)
        os.chown(fresh, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)
        _remove_empty(directory, name)
        os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        os.close(directory)

"""Copy of directory trees that other programs may change at the same moment.

Each entry is opened relative to its directory's descriptor and without following symlinks. Its type is read from the
open descriptor, so it cannot be exchanged between the check and the copy. An entry that cannot be read is left out
with a reason. An error of the target, such as a full disk, is raised.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hermes.upkeep.backup_manifest import ArchiveEntry, EntryKind, LeftOut, LeftOutReason, points_inside

MAX_DEPTH: Final = 200  # of directories: each level holds a descriptor
MAX_PATH_BYTES: Final = 3800  # PATH_MAX is 4096, and the path of a home has at most 107
_CHUNK: Final = 1 << 20
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe would block
_REASONS: Final = {
    errno.EACCES: LeftOutReason.NO_PERMISSION,
    errno.EPERM: LeftOutReason.NO_PERMISSION,
    errno.ENOENT: LeftOutReason.VANISHED,
    errno.ENAMETOOLONG: LeftOutReason.PATH_TOO_LONG,
    errno.ENXIO: LeftOutReason.SPECIAL_FILE,  # a socket
}


class _SourceError(Exception):
    """One entry cannot be copied."""

    def __init__(self, reason: LeftOutReason) -> None:
        super().__init__(reason)
        self.reason = reason


class TreeCopy:
    """Copies into one directory; collects the copied entries and those left out."""

    def __init__(self, into: Path, *, owner: int) -> None:
        self.items: list[ArchiveEntry] = []
        self.left_out: list[LeftOut] = []
        self._into = into
        self._owner = owner  # files of other users keep their numeric owner

    def add(self, source: Path, name: str) -> None:
        """Copy a file or a directory as `name`. One that does not exist is ignored."""
        try:
            parent = os.open(source.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            self._add(parent, source, name, 0)
        finally:
            os.close(parent)

    def _add(self, parent: int, source: Path, path: str, depth: int) -> None:
        try:
            self._copy(parent, source, path, depth)
        except _SourceError as error:
            if depth or error.reason is not LeftOutReason.VANISHED:  # not every home has all top-level entries
                self.left_out.append(LeftOut(path=path, reason=error.reason))

    def _copy(self, parent: int, source: Path, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _SourceError(LeftOutReason.TOO_DEEP)
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise _SourceError(LeftOutReason.PATH_TOO_LONG)
        try:
            descriptor = os.open(source.name, _OPEN, dir_fd=parent)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise _SourceError(_reason(error)) from error
            self._copy_link(parent, source, path)
            return
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                self._copy_directory(descriptor, status, source, path, depth)
            elif stat.S_ISREG(status.st_mode):
                self._copy_file(descriptor, status, path, private=depth == 0)
            else:
                raise _SourceError(LeftOutReason.SPECIAL_FILE)
        finally:
            os.close(descriptor)

    def _copy_directory(self, descriptor: int, status: os.stat_result, source: Path, path: str, depth: int) -> None:
        with _reading():
            entries = sorted(_entries(descriptor))
        (self._into / path).mkdir(mode=0o700)
        self._note(path, EntryKind.DIRECTORY, status, mode=status.st_mode & 0o755 | 0o700)
        for name, is_special in entries:
            if is_special:  # opening a pipe would affect its writer
                self.left_out.append(LeftOut(path=f"{path}/{name}", reason=LeftOutReason.SPECIAL_FILE))
            else:
                self._add(descriptor, source / name, f"{path}/{name}", depth + 1)

    def _copy_file(self, descriptor: int, status: os.stat_result, path: str, *, private: bool) -> None:
        target = self._into / path
        remaining = status.st_size  # without data appended meanwhile
        try:
            with target.open("xb") as file:
                while remaining > 0 and (chunk := _read(descriptor, min(_CHUNK, remaining))):
                    file.write(chunk)
                    remaining -= len(chunk)
        except _SourceError:
            target.unlink()
            raise
        self._note(path, EntryKind.FILE, status, mode=0o600 if private else status.st_mode & 0o755 | 0o600)

    def _copy_link(self, parent: int, source: Path, path: str) -> None:
        with _reading():
            target = os.readlink(source.name, dir_fd=parent)
            status = os.stat(source.name, dir_fd=parent, follow_symlinks=False)
        home = str(source)[: -len(path)]
        if target.startswith(home):  # an absolute path would not work in another home
            target = os.path.relpath(target, source.parent)
        tree = os.path.realpath(home + path.partition("/")[0])
        reached = os.path.realpath(source.parent / target)
        if not points_inside(path, target) or not Path(reached).is_relative_to(tree):
            raise _SourceError(LeftOutReason.LINK_OUTSIDE)
        self._note(path, EntryKind.SYMLINK, status, target=target)

    def _note(
        self, path: str, kind: EntryKind, status: os.stat_result, *, mode: int = 0o777, target: str = ""
    ) -> None:
        foreign = status.st_uid != self._owner
        self.items.append(
            ArchiveEntry(
                path=path,
                kind=kind,
                mode=mode,
                target=target,
                uid=status.st_uid if foreign else None,
                gid=status.st_gid if foreign else None,
            )
        )


def _entries(descriptor: int) -> Iterator[tuple[str, bool]]:
    """Yield each name, and whether it is a pipe, socket or device."""
    with os.scandir(descriptor) as found:
        for entry in found:
            usual = entry.is_symlink() or entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
            yield entry.name, not usual


def _read(descriptor: int, size_bytes: int) -> bytes:
    with _reading():
        return os.read(descriptor, size_bytes)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _SourceError(_reason(error)) from error


def _reason(error: OSError) -> LeftOutReason:
    return _REASONS.get(error.errno or 0, LeftOutReason.READ_ERROR)

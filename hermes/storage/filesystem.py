"""File system checks of a store, and creation of its files.

A memory-mapped store needs one kernel that sees all its writes, so network file systems are refused. Chat history is
private: directories are 0700 and files 0600, regardless of the umask.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.domain.errors import StorageError
from hermes.system.durable_file import sync_file

_MOUNTS: Final = Path("/proc/self/mountinfo")
_REMOTE: Final = re.compile(
    r"9p|afs|beegfs|ceph|cifs|coda|davfs|glusterfs|gpfs|lustre|ncpfs|nfs4?|orangefs|pvfs2|smb3|smbfs"
    r"|fuse\.(afp|ceph-fuse|curlftpfs|davfs2|gcsfuse|glusterfs|goofys|juicefs|moosefs|rclone|s3fs|sshfs)"
)


def remote_kind(path: Path, mounts: str) -> str | None:
    """Return the type of the network file system of an absolute path, by a table like /proc/self/mountinfo."""
    found = kind = ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4])  # a space is \040
        if path.is_relative_to(point) and len(point) >= len(found):  # the last of equal mount points hides the others
            found, kind = point, after.split()[0]
    return kind if _REMOTE.fullmatch(kind) else None


def prepare(directory: Path) -> None:
    """Create a private directory. Refuses network file systems."""
    kind = remote_kind(directory.resolve(), _MOUNTS.read_text(errors="replace")) if _MOUNTS.exists() else None
    if kind:
        raise StorageError(f"{directory} is on a network file system ({kind}), which can damage a store; move it")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{directory} cannot be used: {error.strerror}") from error


def make_private(directory: Path) -> None:
    """Restrict a store to its owner. Called after the check that it is a Hermes store."""
    directory.chmod(0o700)
    for file in directory.glob("*.mdb"):
        file.chmod(0o600)


class Reserve:
    """File that is released when the disk is full, because LMDB needs new pages even to delete."""

    SIZE: Final = 4 * 2**20

    def __init__(self, directory: Path) -> None:
        self._file = directory / "reserve"
        self._held = self._is_whole()

    def _is_whole(self) -> bool:
        """Return whether the file has its full size. A power failure can truncate it."""
        try:
            return self._file.stat().st_size == self.SIZE
        except FileNotFoundError:
            return False

    def fill(self) -> None:
        if self._held:
            return
        disk = os.statvfs(self._file.parent)
        if disk.f_bavail * disk.f_frsize < 8 * self.SIZE:
            return
        try:
            self._file.touch(mode=0o600)
            self._file.write_bytes(bytes(self.SIZE))
            sync_file(self._file)
            self._held = True
        except OSError:  # another program took the space
            self.release()

    def release(self) -> bool:
        """Delete the file. Return whether it existed."""
        held, self._held = self._held, False
        self._file.unlink(missing_ok=True)
        return held


class Headroom:
    """Zeros at the end of the data file, written ahead of use.

    A commit that extends the file also waits for the journal of the file system; a commit into existing blocks does
    not. Only the writer uses this, between two commits.
    """

    STEP: Final = 2**20

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY)
        self._size = os.fstat(self._descriptor).st_size

    def keep(self, used_bytes: int) -> None:
        self._size = max(self._size, used_bytes)
        if self._size - used_bytes > self.STEP // 8:
            return
        with suppress(OSError):  # a full disk: continue without headroom
            self._size += os.pwrite(self._descriptor, bytes(self.STEP), self._size)

    def close(self) -> None:
        os.close(self._descriptor)

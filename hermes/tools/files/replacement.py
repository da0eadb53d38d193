"""Atomic replacement of a file's content, also across a power failure.

The new content is written to a draft beside the file, synced, and renamed over it. The file keeps its mode and owner;
a new file gets the default or the given mode. Blocking: call it in a thread.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_MAX_NAME = 200  # bytes of the file's name used in the draft's name; the maximum for names is 255

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SET_ID = stat.S_ISUID | stat.S_ISGID


class Draft:
    """New content for one file, on disk under another name until `publish`."""

    def __init__(self, path: Path, data: bytes, *, mode: int | None = None) -> None:
        self.path = path
        name = os.fsdecode(os.fsencode(path.name)[:_MAX_NAME])
        self._draft = path.with_name(f".{name}.{secrets.token_hex(4)}.new")
        try:
            descriptor = os.open(self._draft, _NEW, 0o666 if mode is None else mode)
        except OSError as error:  # report the file's path, not the draft's
            raise OSError(error.errno, error.strerror, str(path)) from error
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
                file.write(data)
                file.flush()
                if not _keep_mode_and_owner(path, descriptor) and mode is not None:
                    os.fchmod(descriptor, mode)
                os.fsync(descriptor)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        self._draft.replace(self.path)

    def discard(self) -> None:
        self._draft.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    draft = Draft(path, data, mode=mode)
    try:
        draft.publish()
    except BaseException:
        draft.discard()
        raise


def _keep_mode_and_owner(path: Path, descriptor: int) -> bool:
    """Copy mode and owner from the existing file. Return False if there is none."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return False
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # only root may change the owner
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & ~_SET_ID)  # the kernel also clears these on a write
    return True

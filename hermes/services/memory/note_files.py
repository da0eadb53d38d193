"""Files of memory, which people may edit at any moment. Blocking: call it in a thread.

A new text is written beside the file and exchanged with it in one system call. What was in the file is then looked
at: if a person saved it a moment before, their text is put back. So no edit is lost, not even between check and
replacement.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
from pathlib import Path
from typing import Final

from hermes.domain.errors import BadInputError
from hermes.domain.memory.reconcile import FoundFile
from hermes.system.durable_file import sync_directory

MAX_BYTES: Final = 256 << 10
UNREADABLE: Final = "memory_unreadable"  # error code
_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2(2)
_NOT_SUPPORTED: Final = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


class NoteFiles:
    def find(self, path: Path) -> FoundFile:
        """Return the text of a file. Raises BadInputError if it is not a text of reasonable size."""
        try:
            with path.open("rb") as file:
                raw, modified_at = file.read(MAX_BYTES + 1), os.fstat(file.fileno()).st_mtime
            if len(raw) > MAX_BYTES:
                raise BadInputError(f"{path} has more than {MAX_BYTES >> 10} KB; shorten it", code=UNREADABLE)
            return FoundFile(text=raw.decode(), modified_at=modified_at)
        except FileNotFoundError:
            return FoundFile(text=None)
        except UnicodeDecodeError:
            raise BadInputError(f"{path} is not UTF-8 text; convert it", code=UNREADABLE) from None
        except OSError as error:
            raise BadInputError(f"{path} cannot be read: {error.strerror}", code=UNREADABLE) from error

    def replace(self, path: Path, text: str, *, expected: str | None) -> bool:
        """Replace a file that has the expected text; None: no file. Return False, and change nothing, if it has not.

        Raises OSError.
        """
        target = Path(os.path.realpath(path))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in target.parent.glob(f".{target.name}.*.new"):  # by a daemon that was killed
            left.unlink(missing_ok=True)
        draft = _written(target, text)
        try:
            if expected is None:
                if not _linked(draft, target):
                    return False
            elif not self._exchanged(draft, target, text, expected):
                return False
        finally:
            draft.unlink(missing_ok=True)
        sync_directory(target.parent)
        return True

    def _exchanged(self, draft: Path, target: Path, text: str, expected: str) -> bool:
        if _text(target) != expected:
            return False
        target_mode = target.stat().st_mode & 0o777
        draft.chmod(target_mode)
        if not _exchange(draft, target):
            draft.replace(target)
            return True
        if _text(draft) == expected:
            return True
        _exchange(draft, target)  # a person saved it a moment before: their text goes back
        if _text(draft) != text:
            _exchange(draft, target)  # and once more in between: the newest text stays
        return False


def _written(target: Path, text: str) -> Path:
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    return draft


def _linked(draft: Path, target: Path) -> bool:
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    return True


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return None


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files atomically. Return False if the file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))

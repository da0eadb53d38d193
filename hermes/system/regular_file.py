"""Read of a small regular file. A pipe, directory or device in its place raises instead of blocking."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular_file(path: Path, *, max_bytes: int) -> bytes:
    """Return at most `max_bytes` + 1 bytes. Raises FileNotFoundError, or an OSError with the reason in `strerror`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe would block
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link to a missing file", str(path)) from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes + 1)
    finally:
        os.close(descriptor)

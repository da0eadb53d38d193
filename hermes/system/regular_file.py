"""Reading a small file that a person may have put there: anything else in its place is told, not waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular_file(path: Path, *, max_bytes: int) -> bytes:
    """Up to one byte more than that. Raises FileNotFoundError, or an OSError whose `strerror` says what it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for its writer
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link to a file that is not there", str(path)) from None
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

"""Files that the daemon writes and that tools may read, also when they run as another user.

Modes do not depend on the umask. A directory above these must be private.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_DIRECTORY: Final = 0o755
_FILE: Final = 0o644


def make_readable_directory(path: Path) -> None:
    path.mkdir(mode=_DIRECTORY, parents=True, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) != _DIRECTORY:
        path.chmod(_DIRECTORY)


def create_readable_file(path: Path) -> int:
    """Return a descriptor of the new file. Raises FileExistsError and other OSErrors."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE)
    os.fchmod(descriptor, _FILE)
    return descriptor

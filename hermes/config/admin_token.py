"""Admin token: the secret that every client of the admin socket has to present.

The daemon writes a new token at each start, before the socket listens. The file is readable by its owner only, and
tools cannot read it: it is in the data directory, which the sandbox and the path rules hide from them.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from hermes.config.secret import Secret
from hermes.domain.errors import HomeError

_MAX_BYTES = 1024


def token_file(socket_path: Path) -> Path:
    return socket_path.with_name("admin.token")


def create_token(path: Path) -> Secret:
    """Replace the token by a new one. On a full disk the one of the last start stays. Raises HomeError."""
    token = secrets.token_urlsafe(32)
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
            file.write(f"{token}\n".encode())
        draft.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and (present := read_token(path)):
            return Secret(present)
        raise HomeError(f"cannot write the admin token {path}: {error.strerror}") from error
    return Secret(token)


def read_token(path: Path) -> str:
    """Return the token; an empty text if it cannot be read, then the daemon refuses with a remedy."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(_MAX_BYTES).decode("ascii").strip()
    return ""

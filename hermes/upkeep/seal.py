"""Seal of a backup: an HMAC of its manifest, which lists every file with its checksum.

The key is `backup.key` in the data directory. The first backup creates it, and no backup contains it, so that an
archive cannot be changed and sealed again. To trust backups of another home, copy its key file.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from hermes.config.secret import ensure_secret_file, read_secret_file

if TYPE_CHECKING:
    from hermes.config.home import Home

KEY_FILE: Final = "backup.key"
MEMBER: Final = "manifest.hmac"  # the second file of an archive
MAX_BYTES: Final = 256


class Seal(StrEnum):
    VALID = "valid"
    MISSING = "missing"
    NO_KEY = "no_key"  # this home has no key to check it with
    WRONG = "wrong"


def make_key(home: Home) -> str:
    """Return the key of the home, which is created if it is missing."""
    return ensure_secret_file(home.data_dir / KEY_FILE).reveal()


def find_key(home: Home) -> str | None:
    path = home.data_dir / KEY_FILE
    return read_secret_file(path, KEY_FILE).reveal() if path.is_file() else None


def sealed(manifest: bytes, key: str) -> bytes:
    return hmac.new(key.encode(), manifest, hashlib.sha256).hexdigest().encode()


def check(manifest: bytes, seal: bytes | None, key: str | None) -> Seal:
    if seal is None:
        return Seal.MISSING
    if key is None:
        return Seal.NO_KEY
    return Seal.VALID if hmac.compare_digest(seal.strip(), sealed(manifest, key)) else Seal.WRONG

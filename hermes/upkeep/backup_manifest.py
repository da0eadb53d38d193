"""Manifest of a backup: every entry with size and checksum, and everything left out with the reason."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

FORMAT: Final = 2  # 1 had neither directories, symlinks, owners nor reasons
_KNOWN_FORMATS: Final = (1, FORMAT)


class BackupError(HermesError):
    """The backup could not be made or cannot be used. Nothing was changed."""


class EntryKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


class LeftOutReason(StrEnum):
    """Reason why something is not in a backup."""

    SECRET = "secret"  # noqa: S105 - a reason, not a password
    TRUST = "trust"  # what the owner trusts on this machine
    LOG = "log"
    REBUILT = "rebuilt"  # the search index
    RUNTIME = "runtime"  # made again by the next start
    EARLIER = "earlier"  # the state before a restore or a migration
    UNKNOWN_NAME = "unknown_name"  # not a file of Hermes
    LINK_OUTSIDE = "link_outside"  # a symlink to something that is not in the backup
    SPECIAL_FILE = "special_file"  # a pipe, socket or device
    NO_PERMISSION = "no_permission"
    VANISHED = "vanished"  # removed while the backup was made
    PATH_TOO_LONG = "path_too_long"
    TOO_DEEP = "too_deep"
    READ_ERROR = "read_error"
    NOT_RECORDED = "not_recorded"  # the backup was made by an older version


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    path: str  # relative to the home
    reason: LeftOutReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    path: str  # in the archive, with slashes
    size_bytes: int = 0
    sha256: str = ""
    mode: int = 0o600
    kind: EntryKind = EntryKind.FILE
    target: str = ""  # of a symlink
    uid: int | None = None  # None: the owner of the home
    gid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    version: str  # of the Hermes that made it
    made_at: float
    home: str
    hot: bool  # a daemon was running
    files: tuple[ArchiveEntry, ...]  # with directories and symlinks
    problems: tuple[str, ...] = ()  # of the store, which is kept as it is
    left_out: tuple[LeftOut, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in self.files)

    @property
    def file_count(self) -> int:
        return sum(item.kind is EntryKind.FILE for item in self.files)

    def encode(self) -> bytes:
        values = {"hermes_backup": FORMAT, **asdict(self), "files": [_encoded(item) for item in self.files]}
        return json.dumps(values, indent=1).encode()

    @staticmethod
    def decode(raw: bytes) -> Manifest:
        """Decode a manifest. Raises BackupError."""
        try:
            values = json.loads(raw)
            number = values.pop("hermes_backup")
            if number not in _KNOWN_FORMATS:
                version = values.get("version")
                raise BackupError(
                    f"it has format {number}, but this Hermes supports {FORMAT}: it is from version {version}"
                )
            values["files"] = tuple(_item(item) for item in values["files"])
            values["problems"] = tuple(values["problems"])
            values["left_out"] = tuple(_left_out(each) for each in values["left_out"])
            return Manifest(**values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupError("its manifest is damaged, or it is not a backup of Hermes") from error


def points_inside(path: str, target: str) -> bool:
    """Return whether a symlink's target stays inside the top directory of its path, by the names alone."""
    top = path.partition("/")[0]
    if top == path or os.path.isabs(target):  # noqa: PTH117 - a name in an archive
        return False
    reached = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120 - as above
    return reached == top or reached.startswith(f"{top}/")


def _encoded(item: ArchiveEntry) -> dict[str, Any]:
    """Omit empty fields: a manifest may have 250,000 entries."""
    return {name: value for name, value in asdict(item).items() if value is not None and value != ""}


def _item(values: dict[str, Any]) -> ArchiveEntry:
    item = ArchiveEntry(**{**values, "kind": EntryKind(values.get("kind", EntryKind.FILE))})
    for number in (item.size_bytes, item.mode, item.uid or 0, item.gid or 0):
        if not isinstance(number, int):
            raise TypeError("not a number")
    for owner in (item.uid, item.gid):
        if owner is not None and not 0 <= owner < 2**32 - 1:  # the last one means "no change" to the kernel
            raise ValueError("not the number of a user or group")
    return item


def _left_out(value: Any) -> LeftOut:
    if isinstance(value, str):
        return LeftOut(path=value, reason=LeftOutReason.NOT_RECORDED)
    return LeftOut(path=value["path"], reason=LeftOutReason(value["reason"]))

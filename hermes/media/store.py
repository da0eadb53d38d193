"""Store of received files and of copies to send, in one folder of the home, limited in size and age.

Received files are in a directory for their chat (`scope`), which that chat's tools may read, also as another user;
older versions stored them directly in the folder. A file's name is a hash of its key, never text of the sender. A
file is written under another name and renamed, so it is always complete.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from loguru import logger

from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.system.durable_file import sync_directory, sync_file
from hermes.system.tool_readable import create_readable_file, make_readable_directory

_SWEEP_EVERY_S = 3600.0
_OUT = "out"
_DRAFT = ".part"
_NAME_BYTES = 120
_MB = 1 << 20


class MediaError(HermesError):
    """The file cannot be stored."""


class FileTooLargeError(MediaError):
    """The file is larger than a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaLimits:
    file_bytes: int = 20 * _MB
    total_bytes: int = 1024 * _MB
    keep_s: float = 7 * 86_400.0


class MediaStore:
    def __init__(self, root: Path, *, limits: MediaLimits, clock: Clock) -> None:
        self.root = root
        self.limits = limits
        self._clock = clock
        self._swept_at = float("-inf")

    async def keep(self, scope: str, key: str, name: str, pieces: AsyncIterator[bytes]) -> Path:
        """Store a received file unless it exists. Raises MediaError, and what `pieces` raises."""
        path = self.root / scope / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()}{_suffix(name)}"
        if await asyncio.to_thread(_refreshed, path):
            return path
        draft = path.with_name(f"{secrets.token_hex(8)}{_DRAFT}")
        try:
            await asyncio.to_thread(self._make_room)
            await self._write(draft, pieces)
            await asyncio.to_thread(self._keep_within, draft)
            await asyncio.to_thread(_put_in_place, draft, path)
        except OSError as error:
            raise MediaError(f"it could not be stored: {error.strerror}") from error
        finally:
            await asyncio.to_thread(_remove, draft)
        return path

    async def _write(self, draft: Path, pieces: AsyncIterator[bytes]) -> None:
        size = 0
        file = await asyncio.to_thread(_create, draft)
        try:
            async for piece in pieces:
                size += len(piece)
                if size > self.limits.file_bytes:
                    raise FileTooLargeError(f"it is larger than the maximum of {amount(self.limits.file_bytes)}")
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(_sync, file)
        finally:
            await asyncio.to_thread(file.close)

    def put_aside(self, source: BinaryIO, name: str) -> Path:
        """Store a copy of a file to send, under its own name. Blocking; raises OSError."""
        self._make_room()
        folder = self.root / _OUT / secrets.token_hex(16)
        folder.mkdir(mode=0o700, parents=True)
        copy = folder / (os.fsencode(name)[:_NAME_BYTES].decode("utf-8", "ignore") or "file")
        with copy.open("wb") as file:
            shutil.copyfileobj(source, file)
        self._keep_within(copy)
        sync_file(copy)
        for directory in (folder, folder.parent, self.root):
            sync_directory(directory)
        return copy

    # ------------------------------------------------------------ limits of size and age

    async def tidy(self) -> None:
        """Sweep if the last sweep was long ago."""
        if self._clock() - self._swept_at >= _SWEEP_EVERY_S:
            with suppress(OSError):  # the next `keep` reports it
                await asyncio.to_thread(self._make_room)

    def _make_room(self) -> None:
        if not self.root.is_dir():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_directory(self.root.parent)
        now = self._clock()
        if now - self._swept_at >= _SWEEP_EVERY_S:
            self._swept_at = now
            self.sweep()

    def _keep_within(self, new: Path) -> None:
        """Remove the oldest files until the new one fits. Raises MediaError if it is too large."""
        size = new.stat().st_size
        if size > self.limits.total_bytes:
            new.unlink(missing_ok=True)
            raise FileTooLargeError(f"it is larger than {amount(self.limits.total_bytes)}, the maximum for all files")
        if sum(each[2] for each in _files(self.root)) > self.limits.total_bytes:
            self.sweep(new)

    def sweep(self, new: Path | None = None) -> None:
        """Remove files that are too old, and the oldest ones beyond the total size. Keeps `new`. Blocking."""
        kept = sorted(_files(self.root), key=lambda each: (each[0] == new, each[1]), reverse=True)
        total = 0
        for path, at, size in kept:
            total += size
            if total > self.limits.total_bytes or self._clock() - at > self.limits.keep_s:
                logger.debug("media: removed {}", path)
                path.unlink(missing_ok=True)
                if path.parent.parent == self.root / _OUT:  # those of chats stay: a file may be on its way there
                    with suppress(OSError):
                        path.parent.rmdir()


def amount(size: int) -> str:
    """Return a size in bytes as text for a person."""
    if size < _MB // 10:
        return f"{max(size // 1024, 1)} KB"
    return f"{size / _MB:.0f} MB" if size >= 10 * _MB else f"{size / _MB:.1f} MB"


def _suffix(name: str) -> str:
    """Return the suffix of a file's name; nothing else of the name is used."""
    found = re.search(r"\.([A-Za-z0-9]{1,8})\Z", name)
    return f".{found[1].lower()}" if found else ""


def _refreshed(path: Path) -> bool:
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def _create(path: Path) -> BinaryIO:
    make_readable_directory(path.parent)
    return open(create_readable_file(path), "wb")  # noqa: PTH123 - a descriptor has no path


def _put_in_place(draft: Path, path: Path) -> None:
    draft.replace(path)
    sync_directory(path.parent)
    sync_directory(path.parent.parent)  # its chat's directory may be new


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _remove(draft: Path) -> None:
    with suppress(OSError):  # it was renamed or never created
        draft.unlink()


def _files(root: Path) -> Iterator[tuple[Path, float, int]]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):  # it was removed
                status = path.lstat()
                yield path, status.st_mtime, status.st_size


def in_brackets(why: str) -> str:
    """Return a reason as text for a note in brackets."""
    return " ".join("".join(each if each.isprintable() and each not in "[]" else " " for each in why).split())


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data

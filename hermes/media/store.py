"""Files that came in or are on their way out, in one folder of the home: bounded, and gone after a while.

What came in lies in a directory for its chat (`scope`), which that chat's tools may read, also as another user; older
versions kept it right in the folder. A file's name is a hash and never anything that a stranger wrote; what came in
under the same key lies there once. A file is whole or not there: it is written under another name first.
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
    """A file that cannot be kept; the text says why."""


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
        """What came in, unless it is there already. Raises MediaError, and what the pieces raise."""
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
            raise MediaError(f"it could not be stored here: {error.strerror}") from error
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
                    raise MediaError(f"it is larger than {amount(self.limits.file_bytes)}, the most that is taken")
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(_sync, file)
        finally:
            await asyncio.to_thread(file.close)

    def put_aside(self, source: BinaryIO, name: str) -> Path:
        """A copy of a file that is to be sent, under its own name, on disk. In a thread; raises OSError."""
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

    # ------------------------------------------------------------ what is too much, or too old

    async def tidy(self) -> None:
        """Now and then; at other times it costs nothing."""
        if self._clock() - self._swept_at >= _SWEEP_EVERY_S:
            with suppress(OSError):  # whoever stores a file next is told
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
        """Remove the oldest files until the new one fits in. Raises MediaError if it never will."""
        size = new.stat().st_size
        if size > self.limits.total_bytes:
            new.unlink(missing_ok=True)
            raise MediaError(f"it is larger than {amount(self.limits.total_bytes)}, the most that all files may take")
        if sum(each[2] for each in _files(self.root)) > self.limits.total_bytes:
            self.sweep(new)

    def sweep(self, new: Path | None = None) -> None:
        """Remove what is older than it may be, and the oldest of what is too much. In a thread. `new` stays."""
        kept = sorted(_files(self.root), key=lambda each: (each[0] == new, each[1]), reverse=True)
        total = 0
        for path, at, size in kept:
            total += size
            if total > self.limits.total_bytes or self._clock() - at > self.limits.keep_s:
                logger.debug("{} is removed from the media store", path)
                path.unlink(missing_ok=True)
                if path.parent.parent == self.root / _OUT:  # those of chats stay: a file may be on its way there
                    with suppress(OSError):
                        path.parent.rmdir()


def amount(size: int) -> str:
    """Of bytes, for a person."""
    if size < _MB // 10:
        return f"{max(size // 1024, 1)} KB"
    return f"{size / _MB:.0f} MB" if size >= 10 * _MB else f"{size / _MB:.1f} MB"


def _suffix(name: str) -> str:
    """What tools and people tell the kind of a file by; nothing else of its name is used."""
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
    with suppress(OSError):  # it has its place by now, or there never was one
        draft.unlink()


def _files(root: Path) -> Iterator[tuple[Path, float, int]]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):  # somebody else has removed it
                status = path.lstat()
                yield path, status.st_mtime, status.st_size

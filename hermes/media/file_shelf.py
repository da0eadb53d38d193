"""Files of API clients: uploaded ones, and those that the agent sends to them. Each API key has its own.

A file and its description are two files of the media store, with its limits of size and age. The id is random and
decides the names of both.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from hermes.domain.media.scope import media_scope
from hermes.domain.values import dataclass
from hermes.media.store import MediaError, MediaStore, once
from hermes.ports.given import Clock

MAX_FILES: Final = 1_000  # of one key
ID_PATTERN: Final = r"file-[0-9a-f]{32}"
_ABOUT: Final = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelvedFile:
    id: str
    name: str  # as the sender gave it: untrusted text
    purpose: str
    media_type: str
    size_bytes: int
    created_at: float


class FileShelf:
    def __init__(
        self,
        store: MediaStore,
        *,
        clock: Clock,
        new_id: Callable[[], str] = lambda: f"file-{secrets.token_hex(16)}",
    ) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id

    @property
    def max_bytes(self) -> int:
        return self._store.limits.file_bytes

    @property
    def keep_s(self) -> float:
        return self._store.limits.keep_s

    async def add(
        self,
        owner: str,
        name: str,
        pieces: AsyncIterator[bytes],
        *,
        purpose: str | Callable[[], Awaitable[str]],
        media_type: str,
    ) -> ShelvedFile:
        """Store a file. `owner` is the platform of the key. Raises MediaError, and what `pieces` raises.

        A form can name the purpose after the file: `purpose` is then called when the file is stored. If that fails,
        the file has no description, so no client sees it, and it is removed with its age.
        """
        if len(await self.all(owner)) >= MAX_FILES:
            raise MediaError(f"there are {MAX_FILES} files already; delete some")
        file, scope = self._new_id(), _scope(owner)
        path = await self._store.keep(scope, file, "", pieces)
        about = ShelvedFile(
            id=file,
            name=name,
            purpose=purpose if isinstance(purpose, str) else await purpose(),
            media_type=media_type,
            size_bytes=(await asyncio.to_thread(path.stat)).st_size,
            created_at=self._clock(),
        )
        await self._store.keep(scope, file + _ABOUT, _ABOUT, once(json.dumps(asdict(about)).encode()))
        return about

    async def all(self, owner: str) -> list[ShelvedFile]:
        """Return the files of a key, newest first."""
        return await asyncio.to_thread(self._all, owner)

    async def find(self, owner: str, file: str) -> tuple[ShelvedFile, Path] | None:
        """Return a file and its path; None if the key has no such file."""
        if not re.fullmatch(ID_PATTERN, file):
            return None
        return await asyncio.to_thread(self._find, owner, file)

    async def remove(self, owner: str, file: str) -> bool:
        found = await self.find(owner, file)
        if found is None:
            return False
        for path in (self._path(owner, file), self._path(owner, file + _ABOUT, _ABOUT)):
            await asyncio.to_thread(path.unlink, missing_ok=True)
        return True

    def _path(self, owner: str, key: str, suffix: str = "") -> Path:
        return self._store.root / _scope(owner) / f"{hashlib.sha256(key.encode()).hexdigest()}{suffix}"

    def _all(self, owner: str) -> list[ShelvedFile]:
        found = map(_read, (self._store.root / _scope(owner)).glob(f"*{_ABOUT}"))
        there = [each for each in found if each is not None and self._path(owner, each.id).exists()]
        return sorted(there, key=lambda each: (each.created_at, each.id), reverse=True)

    def _find(self, owner: str, file: str) -> tuple[ShelvedFile, Path] | None:
        about, path = _read(self._path(owner, file + _ABOUT, _ABOUT)), self._path(owner, file)
        return (about, path) if about is not None and path.exists() else None


def _scope(owner: str) -> str:
    return media_scope("files of an API key", owner)


def _read(path: Path) -> ShelvedFile | None:
    try:
        fields: dict[str, Any] = json.loads(path.read_bytes())
        return ShelvedFile(**fields)
    except (OSError, ValueError, TypeError):  # removed meanwhile, or not ours
        return None

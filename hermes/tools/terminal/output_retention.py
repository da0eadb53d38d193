"""Retention of tool files in each conversation's folder: long outputs, and the sandbox's `tmp` and `home`.

Outputs of ended conversations are removed after some days. If all outputs together take too much space, the oldest
are removed, those of ended conversations first. A file younger than the longest possible command is never removed,
because a running command may still write to it.

`tmp` and `home` are removed when the conversation ended that many days ago and has no running background process.
The working directory `files` is kept. Guests of a conversation have the same directories in `guest`.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.domain.errors import HermesError, UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Phase, Session
from hermes.domain.values import dataclass
from hermes.ports.given import Clock

OUTPUTS: Final = "outputs"
SCRATCH: Final = ("tmp", "home")
_GUEST: Final = "guest"
FIRST_AFTER_S: Final = 60.0  # not during the daemon's start
SWEEP_EVERY_S: Final = 3600.0

Conversation = Callable[[SessionId], Awaitable[Session]]  # the session, or what it was compressed into


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    keep_s: float
    total_bytes: int
    longest_command_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutput:
    path: Path
    conversation: str  # the name of its folder
    written_at: float
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scratch:
    name: str  # of the conversation's folder
    path: Path


def in_question(outputs: Sequence[StoredOutput], now: float, limits: RetentionLimits) -> set[str]:
    """Return the conversations whose phase decides what is removed."""
    if sum(each.size_bytes for each in outputs) > limits.total_bytes:
        return {each.conversation for each in outputs}
    return {each.conversation for each in outputs if now - each.written_at > limits.keep_s}


def expired(
    outputs: Sequence[StoredOutput], ended: Collection[str], now: float, limits: RetentionLimits
) -> list[StoredOutput]:
    """Return the outputs to remove."""
    idle = [each for each in outputs if now - each.written_at > limits.longest_command_s]
    old = [each for each in idle if each.conversation in ended and now - each.written_at > limits.keep_s]
    excess = sum(each.size_bytes for each in outputs) - sum(each.size_bytes for each in old) - limits.total_bytes
    removed = set(old)
    for each in sorted(idle, key=lambda each: (each.conversation not in ended, each.written_at)):
        if excess <= 0:
            break
        if each not in removed:
            removed.add(each)
            excess -= each.size_bytes
    return sorted(removed, key=lambda each: each.written_at)


class OutputRetention:
    """Removes outputs in the background."""

    def __init__(
        self,
        root: Path,
        *,
        limits: RetentionLimits,
        conversation: Conversation,
        has_processes: Callable[[SessionId], bool],
        clock: Clock,
    ) -> None:
        """`has_processes` returns whether a conversation has running background processes."""
        self._root = root
        self._limits = limits
        self._has_processes = has_processes
        self._conversation = conversation
        self._clock = clock

    async def run(self) -> None:
        """Sweep every hour, until cancelled."""
        await asyncio.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.sweep()
                await self.sweep_scratch()
            except (OSError, HermesError) as error:
                logger.warning("tool outputs: could not remove old files: {}", error)
            await asyncio.sleep(SWEEP_EVERY_S)

    async def sweep(self) -> None:
        outputs = await asyncio.to_thread(lambda: list(_outputs(self._root)))
        now = self._clock()
        ended = {name for name in in_question(outputs, now, self._limits) if await self._has_ended(name)}
        gone = expired(outputs, ended, now, self._limits)
        if gone:
            await asyncio.to_thread(_remove, gone, ended)
            size = sum(each.size_bytes for each in gone)
            logger.info("tool outputs: removed {} old files ({} bytes)", len(gone), size)

    async def sweep_scratch(self) -> None:
        """Remove `tmp` and `home` of conversations that ended long ago."""
        now = self._clock()
        found = await asyncio.to_thread(lambda: list(_scratch(self._root, now - self._limits.keep_s)))
        for name in sorted({each.name for each in found}):
            ended = await self._has_ended(name, before=now - self._limits.keep_s)
            if ended and not self._has_processes(SessionId(name)):
                for each in found:
                    if each.name == name:
                        await asyncio.to_thread(_remove_tree, each.path)
                logger.info("sandbox: removed home and /tmp of ended conversation {}", name)

    async def _has_ended(self, name: str, *, before: float = math.inf) -> bool:
        """Return whether the conversation ended. A folder name that is not a known id counts as not ended."""
        try:
            session = await self._conversation(SessionId(name))
        except UnknownSessionError:
            return False
        return session.phase is Phase.ENDED and session.since < before


def _folders(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each conversation's name with its folder, and again with its guest folder. Skips symbolic links."""
    with suppress(FileNotFoundError):  # no tool was used yet
        for folder in os.scandir(root):
            if folder.is_dir(follow_symlinks=False):
                yield folder.name, Path(folder.path)
                guest = Path(folder.path, _GUEST)
                if guest.is_dir() and not guest.is_symlink():
                    yield folder.name, guest


def _scratch(root: Path, before: float) -> Iterator[_Scratch]:
    """Yield the `tmp` and `home` directories that did not change since `before`."""
    for name, folder in _folders(root):
        for each in SCRATCH:
            with suppress(OSError):  # it does not exist
                status = (folder / each).lstat()
                if stat.S_ISDIR(status.st_mode) and status.st_mtime < before:
                    yield _Scratch(name=name, path=folder / each)


def _remove_tree(path: Path) -> None:
    """Remove a tree. Links are removed, not followed. Read-only directories are made writable first."""
    with suppress(OSError):
        for _, _, _, descriptor in os.fwalk(path, follow_symlinks=False):
            with suppress(PermissionError):
                os.fchmod(descriptor, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def _outputs(root: Path) -> Iterator[StoredOutput]:
    for name, folder in _folders(root):
        with suppress(FileNotFoundError, NotADirectoryError):  # the conversation was deleted, or has none
            yield from _files(name, folder)


def _files(name: str, folder: Path) -> Iterator[StoredOutput]:
    for entry in os.scandir(folder / OUTPUTS):
        if entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            yield StoredOutput(
                path=Path(entry.path),
                conversation=name,
                written_at=status.st_mtime,
                size_bytes=status.st_size,
            )


def _remove(outputs: Sequence[StoredOutput], ended: Collection[str]) -> None:
    for each in outputs:
        each.path.unlink(missing_ok=True)
    for folder in {each.path.parent for each in outputs if each.conversation in ended}:
        with suppress(OSError):  # it is not empty
            folder.rmdir()

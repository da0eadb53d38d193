"""Retention of long tool outputs, which lie in `outputs/` of each conversation's folder.

Outputs of conversations that have ended go after some days. When all outputs together take too much space, the oldest
go, those of ended conversations first. A file younger than the longest command is never removed: a command that runs
may still write to it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.errors import HermesError, UnknownSessionError
from hermes.ports.given import Clock
from hermes.types import Phase, Session, SessionId
from hermes.values import dataclass

OUTPUTS: Final = "outputs"
FIRST_AFTER_S: Final = 60.0  # a start has better things to do
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


def in_question(outputs: Sequence[StoredOutput], now: float, limits: RetentionLimits) -> set[str]:
    """Return the conversations of which one must know whether they have ended."""
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

    def __init__(self, root: Path, *, limits: RetentionLimits, conversation: Conversation, clock: Clock) -> None:
        self._root = root
        self._limits = limits
        self._conversation = conversation
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        await asyncio.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.sweep()
            except (OSError, HermesError) as error:
                logger.warning("tool outputs: could not remove old ones: {}", error)
            await asyncio.sleep(SWEEP_EVERY_S)

    async def sweep(self) -> None:
        outputs = await asyncio.to_thread(lambda: list(_outputs(self._root)))
        now = self._clock()
        ended = {name for name in in_question(outputs, now, self._limits) if await self._has_ended(name)}
        gone = expired(outputs, ended, now, self._limits)
        if gone:
            await asyncio.to_thread(_remove, gone, ended)
            size = sum(each.size_bytes for each in gone)
            logger.info("tool outputs: removed {} files with {} bytes", len(gone), size)

    async def _has_ended(self, name: str) -> bool:
        """The name is an id, but for a few characters: one that is not found counts as open."""
        try:
            return (await self._conversation(SessionId(name))).phase is Phase.ENDED
        except UnknownSessionError:
            return False


def _outputs(root: Path) -> Iterator[StoredOutput]:
    with suppress(FileNotFoundError):  # no tool was used yet
        for folder in os.scandir(root):
            with suppress(FileNotFoundError, NotADirectoryError):  # the conversation was deleted, or has none
                yield from _files(folder)


def _files(folder: os.DirEntry[str]) -> Iterator[StoredOutput]:
    for entry in os.scandir(Path(folder.path, OUTPUTS)):
        if entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            yield StoredOutput(
                path=Path(entry.path),
                conversation=folder.name,
                written_at=status.st_mtime,
                size_bytes=status.st_size,
            )


def _remove(outputs: Sequence[StoredOutput], ended: Collection[str]) -> None:
    for each in outputs:
        each.path.unlink(missing_ok=True)
    for folder in {each.path.parent for each in outputs if each.conversation in ended}:
        with suppress(OSError):  # others are left in it
            folder.rmdir()

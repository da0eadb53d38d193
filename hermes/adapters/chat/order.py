"""The order in which what happened in one chat is taken: as it came, but that commands pass what a file holds up.

A file may take a minute to be fetched and written down. Until then the messages behind it wait; a command or a button
waits only for what came before the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Entry:
    """Known by itself: two of the same kind are not the same."""

    def __init__(self, *, urgent: bool, held_up: bool) -> None:
        self.urgent = urgent  # a command or a button
        self.held_up = held_up  # by a file, its own or one before it


class ChatOrder:
    def __init__(self) -> None:
        self._entries: list[_Entry] = []  # those that wait and those that are being taken, as they came
        self._moved = asyncio.Event()

    @asynccontextmanager
    async def place(self, *, urgent: bool, slow: bool) -> AsyncIterator[None]:
        """Places that are asked for in order are given in order. `slow`: it brings a file along."""
        held_up = not urgent and (slow or any(each.held_up for each in self._entries))
        entry = _Entry(urgent=urgent, held_up=held_up)
        self._entries.append(entry)
        try:
            while not self._is_next(entry):
                await self._moved.wait()
            yield
        finally:
            self._entries.remove(entry)
            self._moved.set()
            self._moved = asyncio.Event()

    def _is_next(self, entry: _Entry) -> bool:
        before = self._entries[: self._entries.index(entry)]
        return all(each.held_up for each in before) if entry.urgent else not before

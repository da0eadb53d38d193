"""Order of intake in one chat: first come, first served, but commands overtake messages that wait for a file.

A file download may take a minute. Messages behind it wait; a command or button press waits only for what came before
the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Entry:
    """One message in the queue, compared by identity."""

    def __init__(self, *, urgent: bool, held_up: bool) -> None:
        self.urgent = urgent  # command or button press
        self.held_up = held_up  # by its own file or an earlier one


class ChatOrder:
    def __init__(self) -> None:
        self._entries: list[_Entry] = []  # waiting and running ones, in order of arrival
        self._moved = asyncio.Event()

    @asynccontextmanager
    async def place(self, *, urgent: bool, slow: bool) -> AsyncIterator[None]:
        """Wait for this message's turn. `slow` messages have a file."""
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

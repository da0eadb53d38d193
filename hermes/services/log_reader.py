"""Reader of the daemon's log file: its last entries, newest first."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

from hermes.domain.read.log_line import LogFilter, LogLine, entries

READ_BYTES = 1 << 20  # from the end of the file


class LogReader:
    def __init__(self, file: Path) -> None:
        self._file = file

    async def last(self, wanted: LogFilter, limit: int, text: str = "") -> list[LogLine]:
        """Return the last entries that match, newest first, as far as they are at the end of the file."""
        return await asyncio.to_thread(self._last, wanted, limit, text.casefold())

    def _last(self, wanted: LogFilter, limit: int, text: str) -> list[LogLine]:
        try:
            with self._file.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - READ_BYTES))
                read = file.read(READ_BYTES)
        except FileNotFoundError:
            return []
        lines = read.decode("utf-8", "replace").splitlines()
        found = reversed(list(entries(lines)))
        matching = (line for line in found if wanted.admits(line) and text in line.raw.casefold())
        return list(islice(matching, limit))

"""History of typed messages, kept in the home across runs."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.system.durable_file import replace_file

FILE: Final = "chat_history.jsonl"
MAX_ENTRIES: Final = 1000
MAX_CHARS: Final = 100_000  # a longer paste is not kept
_COMPACT_AT: Final = 2 * MAX_ENTRIES


class InputHistory:
    """Entries, oldest first, and a position while a person walks through them. Reading and writing blocks."""

    def __init__(self, file: Path | None = None) -> None:
        """Without a file the entries are kept in memory only."""
        self._file = file
        self._entries: list[str] = []
        self._at: int | None = None
        self._draft = ""

    def load(self) -> None:
        """Read the entries of earlier runs. A line that cannot be read is skipped."""
        if self._file is None:
            return
        lines: list[str] = []
        with suppress(OSError):
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        found = [entry for entry in map(_entry, lines) if entry]
        self._entries = found[-MAX_ENTRIES:] + self._entries
        if len(lines) > _COMPACT_AT:
            with suppress(OSError):
                replace_file(self._file, "".join(map(_line, self._entries)))

    def add(self, text: str) -> bool:
        """Add an entry. Returns False if it is not kept: empty, too long, or the same as the last one."""
        self._at = None
        if not text.strip() or len(text) > MAX_CHARS or self._entries[-1:] == [text]:
            return False
        self._entries.append(text)
        return True

    def store(self, text: str) -> None:
        """Append an entry to the file. History is a convenience: a full disk does not stop the chat."""
        if self._file is None:
            return
        with suppress(OSError):
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(descriptor, "a", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor has no path
                file.write(_line(text))

    def older(self, current: str) -> str | None:
        """Return the entry before the current position; None if there is none."""
        if self._at is None:
            self._draft, self._at = current, len(self._entries)
        if self._at == 0:
            return None
        self._at -= 1
        return self._entries[self._at]

    def newer(self) -> str | None:
        """Return the entry after the current position; last the draft, then None."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self._entries):
            return self._entries[self._at]
        self._at = None
        return self._draft


def _line(text: str) -> str:
    return json.dumps(text) + "\n"


def _entry(line: str) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""

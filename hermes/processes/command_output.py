"""Output of a command: head and tail in memory, and the whole in a file if it is too long.

Memory and file are limited; bytes beyond the limits are only counted. Text for the model and for people has no
escape sequences. Output of a terminal is rendered as a terminal does (`\\r`, backspace, erased lines).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hermes.system.tool_readable import create_readable_file, make_readable_directory

_SHOWN_MAX_BYTES: Final = 2000
_BETWEEN_S: Final = 0.25

_ESCAPE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
_OVERSTRUCK: Final = re.compile(r"[^\n]\x08")  # how manual pages print bold on paper
_REDRAW: Final = re.compile(r"(\r|\x08|\x1b\[[012]?K)")


def plain_text(raw: bytes, *, terminal: bool) -> str:
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
    if terminal:
        text = "\n".join(_redrawn(line) for line in text.split("\n"))
    text = _OVERSTRUCK.sub("", _ESCAPE.sub("", text))
    return _CONTROL.sub("", text.replace("\r", "\n"))


def _redrawn(line: str) -> str:
    """Return a line as a terminal finally shows it."""
    if not _REDRAW.search(line):
        return line
    cells: list[str] = []
    at = 0
    for part in _REDRAW.split(line):
        match part:
            case "\r":
                at = 0
            case "\x08":
                at = max(0, at - 1)
            case "\x1b[K" | "\x1b[0K":
                del cells[at:]
            case "\x1b[1K" | "\x1b[2K":
                cells[:] = [" "] * at if part[2] == "2" else [" "] * at + cells[at:]
            case _:
                text = _ESCAPE.sub("", part)
                cells[at : at + len(text)] = list(text)
                at += len(text)
    return "".join(cells).rstrip()


class LineFeed:
    """Shows complete lines as they arrive, at most four times a second; of many lines only the last."""

    def __init__(self, show: Callable[[str], None], *, terminal: bool) -> None:
        self._show = show
        self._terminal = terminal
        self._waiting = bytearray()
        self._cut = False  # the first waiting line lacks its beginning
        self._timer: asyncio.TimerHandle | None = None
        self._next_at = 0.0

    def add(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) > _SHOWN_MAX_BYTES:
            del self._waiting[:-_SHOWN_MAX_BYTES]
            self._cut = True
        if self._timer is None and b"\n" in self._waiting:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._next_at, loop.time()), self._flush)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _flush(self) -> None:
        self._timer = None
        end = self._waiting.rfind(b"\n") + 1
        start = self._waiting.find(b"\n") + 1 if self._cut else 0
        lines = bytes(self._waiting[start:end])
        del self._waiting[:end]
        self._cut = self._cut and not end
        if text := plain_text(lines, terminal=self._terminal).rstrip():
            self._show(text)
        self._next_at = asyncio.get_running_loop().time() + _BETWEEN_S


class CommandOutput:
    """Collector of a command's output. Up to `kept_bytes` it is in memory only."""

    def __init__(self, folder: Path, name: str, *, kept_bytes: int, stored_max_bytes: int) -> None:
        self._folder = folder
        self._name = name
        self._head_max = kept_bytes * 2 // 5
        self._tail_max = kept_bytes - self._head_max  # the end of an output is usually more useful
        self._stored_max = stored_max_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._file: Path | None = None
        self._stored = 0
        self._problem = ""
        self.total = 0
        self.storing = False  # the last data is being written to disk

    async def add(self, data: bytes) -> None:
        before = self.total
        self.total += len(data)
        if self.total > self._head_max + self._tail_max:
            unstored = bytes(self._head + self._tail) + data if before <= self._head_max + self._tail_max else data
            await self._store(unstored[: self._stored_max - self._stored])
        room = self._head_max - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if before + len(data) > self._head_max + self._tail_max:
            del self._tail[: -self._tail_max]

    async def _store(self, data: bytes) -> None:
        if not data or self._problem:
            return
        self.storing = True
        try:
            self._file = await asyncio.to_thread(_append, self._file, self._folder, self._name, data)
            self._stored += len(data)
        except OSError as error:
            self._problem = error.strerror or str(error)
        finally:
            self.storing = False

    @property
    def is_cut(self) -> bool:
        return self.total > self._head_max + self._tail_max

    def text(self, *, terminal: bool) -> str:
        if not self.is_cut:
            return plain_text(bytes(self._head + self._tail), terminal=terminal)
        head = plain_text(bytes(self._head), terminal=terminal).rstrip("\ufffd")
        tail = plain_text(bytes(self._tail), terminal=terminal).lstrip("\ufffd")
        return f"{head}\n[... {self._omission()} ...]\n{tail}"

    def _omission(self) -> str:
        left_out = self.total - self._head_max - self._tail_max
        omission = f"{left_out} of {self.total} bytes left out here"
        if self._problem:
            return f"{omission}; they could not be stored: {self._problem}"
        if self._stored < self.total:
            return f"{omission}; the first {self._stored} bytes are in {self._file}, the rest was dropped"
        return f"{omission}; the whole output is in {self._file}"


def _append(file: Path | None, folder: Path, name: str, data: bytes) -> Path:
    """Append to the file. It is opened each time, so nothing stays open when a command is cancelled."""
    descriptor, path = _create(folder, name) if file is None else (os.open(file, os.O_WRONLY | os.O_APPEND), file)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(data)
    return path


def _create(folder: Path, name: str) -> tuple[int, Path]:
    """Create a new file. Its name may be taken: models reuse call ids across turns."""
    make_readable_directory(folder)
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80] or "output"
    number = 1
    while True:
        path = folder / (f"{safe}.txt" if number == 1 else f"{safe}-{number}.txt")
        try:
            return create_readable_file(path), path
        except FileExistsError:
            number += 1

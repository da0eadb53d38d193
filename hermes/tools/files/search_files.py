"""File search by content or name: with ripgrep if installed, else with our worker, with the same results.

Both run in a process that is killed when there are enough results, on timeout, or when the call is cancelled. The
worker does what ripgrep cannot (look-around, very long lines, options of newer versions), and all searches by name.
Files that the conversation must not read are skipped and counted.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes.domain.process.sandbox_launch import Box
from hermes.domain.values import dataclass
from hermes.sandbox.box import start
from hermes.tools.files import search_worker
from hermes.tools.terminal.command_output import cut_line
from hermes.tools.tool import ToolError

DEADLINE_S = 30.0
MAX_PATTERN_CHARS = 10_000
_EVENT_BYTES = 2**20  # of one line of the program's report
_LINE_CHARS = 500
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}  # the daemon's environment may contain secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuery:
    root: str  # absolute, without links
    pattern: str | None  # None: search by name
    glob: str | None
    context: int = 0
    lines: bool = True  # collect matching lines, not only files and their counts
    most: int = 50  # matches, or files if `lines` is False; one more is searched to know if there are more


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    path: str
    number: int
    text: str
    is_match: bool


class FileMatches:
    """Results of a search so far."""

    def __init__(self, query: FileQuery, allowed: Callable[[str], bool]) -> None:
        self.lines: list[Line] = []
        self.files: list[tuple[str, int]] = []  # with the number of their matching lines
        self.protected = 0
        self.timed_out = False
        self._query = query
        self._allowed = allowed
        self._pending: list[Line] = []  # of the current file, which may still turn out to be binary
        self._matches = 0

    def take(self, event: Mapping[str, Any]) -> bool:
        """Add one event. Return True if there are enough results."""
        kind, data = event["type"], event["data"]
        if kind == "refused":
            raise ToolError(f"The pattern is not a valid regular expression: {data['text']}.")
        if kind == "file":
            self._file(_bytes_or_text(data["path"]), 0)
        elif kind == "end":
            self._end(data)
        elif kind in ("match", "context") and self._query.lines:
            self._line(data, is_match=kind == "match")
        seen = self._matches if self._query.lines and self._query.pattern is not None else len(self.files)
        if seen > self._query.most:
            self.lines += self._pending
            return True
        return False

    def _line(self, data: Mapping[str, Any], *, is_match: bool) -> None:
        path = _bytes_or_text(data["path"])
        if not self._allowed(path):
            return
        text = cut_line(_bytes_or_text(data["lines"]).rstrip("\r\n"), _LINE_CHARS)
        self._pending.append(Line(path=path, number=data["line_number"], text=text, is_match=is_match))
        self._matches += is_match

    def _end(self, data: Mapping[str, Any]) -> None:
        if data["binary_offset"] is not None:
            self._matches -= sum(line.is_match for line in self._pending)
        elif data["stats"]["matched_lines"]:
            self._file(_bytes_or_text(data["path"]), data["stats"]["matched_lines"])
            self.lines += self._pending
        self._pending = []

    def _file(self, path: str, count: int) -> None:
        if self._allowed(path):
            self.files.append((path, count))
        else:
            self.protected += 1


def _bytes_or_text(value: Mapping[str, str]) -> str:
    return value["text"] if "text" in value else os.fsdecode(base64.b64decode(value["bytes"]))


async def search(
    query: FileQuery, allowed: Callable[[str], bool], *, deadline_s: float = DEADLINE_S, box: Box | None = None
) -> FileMatches:
    """Search until there are enough results, or until the deadline. `allowed` returns whether a path may be read.

    With a box, the programs run in that sandbox.
    """
    if query.pattern is not None and (len(query.pattern) > MAX_PATTERN_CHARS or "\0" in query.pattern):
        raise ToolError(f"The pattern must have at most {MAX_PATTERN_CHARS:,} characters and no NUL.")
    found = FileMatches(query, allowed)
    try:
        async with asyncio.timeout(deadline_s):
            ripgrep = await asyncio.to_thread(shutil.which, "rg")
            if ripgrep is None or not _suits_ripgrep(query) or not await _by_ripgrep(ripgrep, query, found, box):
                found = FileMatches(query, allowed)
                await _by_worker(query, found, box)
    except TimeoutError:
        found.timed_out = True
    return found


def _suits_ripgrep(query: FileQuery) -> bool:
    return query.pattern is not None and (query.glob is None or "/" not in query.glob)


async def _by_ripgrep(program: str, query: FileQuery, found: FileMatches, box: Box | None) -> bool:
    """Search with ripgrep. Return False if it failed."""
    # A type instead of --glob, because --glob overrides .gitignore.
    names = [f"--type-add=wanted:{query.glob}", "--type=wanted"] if query.glob else []
    command = [
        program,
        "--no-config",
        "--json",
        "--sort=path",
        "--hidden",
        "--glob=!.git",
        "--no-require-git",
        "--no-ignore-global",
        "--no-ignore-exclude",
        "--no-ignore-dot",
        "--no-messages",
        "--encoding=none",
        "--crlf",
        f"--context={query.context}",
        *names,
        f"--regexp={query.pattern}",
        "--",
        query.root,
    ]
    try:
        code = await _run(command, None, found.take, box)
    except (ValueError, LookupError, TypeError, OSError):  # an event too long or malformed; no such program
        return False
    return code in (0, 1) or bool(found.files)  # 2 also means a directory that it may not read


async def _by_worker(query: FileQuery, found: FileMatches, box: Box | None) -> None:
    request = {"root": query.root, "pattern": query.pattern, "glob": query.glob, "context": query.context}
    command = [sys.executable, "-I", "-S", str(Path(search_worker.__file__))]
    code = await _run(command, json.dumps(request).encode(), found.take, box)
    if code:
        raise ToolError("The search failed. Try a simpler pattern or another path.")


async def _run(
    command: Sequence[str],
    request: bytes | None,
    take: Callable[[Mapping[str, Any]], bool],
    box: Box | None,
) -> int:
    stdin = DEVNULL if request is None else PIPE
    process = await start(box, command, environ=_ENVIRONMENT, stdin=stdin, stdout=PIPE, limit_bytes=_EVENT_BYTES)
    assert process.stdout is not None
    try:
        if request is not None:
            assert process.stdin is not None
            process.stdin.write(request)
            process.stdin.close()
        while report := await process.stdout.readline():
            if take(json.loads(report)):
                return 0
        return await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()  # read the rest, so that the pipe closes

"""Read a page of a file or directory for the model. Blocking: call it in a thread.

Memory use does not depend on the file's size. A file is read only as far as the page needs, unless it is small enough
to count its lines. Only regular files are opened: a device may have no end, and a pipe may block.
"""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path

from hermes.tools.terminal.command_output import storable
from hermes.tools.tool import ToolError

MAX_LINES = 2_000
PAGE_BYTES = 45_000  # below the limit of a tool's output, so that a page is never truncated again
_LINE_CHARS = 1_900  # below the limit of an output line, with its number and truncation note
_COUNTED_BYTES = 64 * 2**20  # lines are counted to the end of files up to this size
_SAMPLE_BYTES = 8_192  # a file with a NUL in its first bytes counts as binary
_PIECE_BYTES = 2**20
_READ_TIMEOUT_S = 30.0
_MAX_LISTED = 5_000  # names compared for a suggestion

_KINDS = {
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}
_MAGIC = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF. Convert it with pdftotext",
    b"PK\x03\x04": "a zip archive or office document. Open it with unzip",
    b"\x1f\x8b": "compressed with gzip. Read it with zcat",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database. Query it with sqlite3",
    b"\xff\xfe": "UTF-16 text. Convert it with iconv -f UTF-16",
    b"\xfe\xff": "UTF-16 text. Convert it with iconv -f UTF-16",
}


def open_regular(path: str) -> BufferedReader:
    """Open a regular file for reading, without blocking."""
    check_regular(Path(path).stat().st_mode, path)  # before opening: opening some devices has side effects
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = open(descriptor, "rb")  # noqa: PTH123, SIM115 - a descriptor has no path; the caller closes it
    try:
        check_regular(os.fstat(descriptor).st_mode, path)  # after opening: it may have been replaced
    except ToolError:
        file.close()
        raise
    return file


def check_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory, not a file.")
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS.items() if is_kind(mode)), "a special file")
        raise ToolError(f"{path} is {kind}. Only regular files can be used.")


def read_page(path: str, offset: int, limit: int, cancelled: Callable[[], bool]) -> str:
    """Return the lines from `offset` (the first is 1), each with its number, and the total number of lines."""
    if offset < 1:
        raise ToolError("offset is the number of the first line to show; it must be at least 1.")
    limit = max(1, min(limit, MAX_LINES))
    try:
        if Path(path).is_dir():
            return _list_page(path, offset, limit)
        with open_regular(path) as file:
            _refuse_binary(file.read(_SAMPLE_BYTES), path)
            file.seek(0)
            return _text_page(file, path, offset, limit, cancelled)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(missing(path)) from None


def _refuse_binary(sample: bytes, path: str) -> None:
    if b"\0" not in sample:
        return
    kind = next((text for magic, text in _MAGIC.items() if sample.startswith(magic)), "")
    hint = f"It is {kind}." if kind else "Inspect it with file, strings or xxd in the terminal."
    raise ToolError(f"{path} is binary and cannot be shown as text. {hint}")


def _text_page(file: BufferedReader, path: str, offset: int, limit: int, cancelled: Callable[[], bool]) -> str:
    shown: list[str] = []
    number, room = 0, PAGE_BYTES
    size = os.fstat(file.fileno()).st_size
    lines = _lines(file, _deadline_check(path, cancelled))
    for number, (line, more) in enumerate(lines, 1):
        if number < offset:
            continue
        text = f"{number}|{_line(line, more)}"
        room -= len(text.encode()) + 1
        if room < 0 and shown:
            break
        shown.append(text)
        if len(shown) == limit:
            break
    last = offset + len(shown) - 1
    if number <= last and not file.peek(1):
        return _whole_rest(shown, offset, number, path)
    total = f"of {number + sum(1 for _ in lines):,}" if size <= _COUNTED_BYTES else f"of a file of {size:,} bytes"
    return "\n".join([*shown, f"[lines {offset:,}-{last:,} {total}; continue with offset={last + 1}]"])


def _whole_rest(shown: list[str], offset: int, total: int, path: str) -> str:
    if total == 0:
        return "[the file is empty]"
    if not shown:
        raise ToolError(f"{path} has only {total:,} lines; there is no line {offset:,}.")
    return "\n".join([*shown, f"[lines {offset:,}-{total:,} of {total:,}; end of file]"])


def _lines(file: BufferedReader, check: Callable[[], None]) -> Iterator[tuple[bytes, int]]:
    """Yield the start of each line, as much as can be shown, and the number of its remaining bytes."""
    for number in itertools.count():
        if number % 1_000 == 0:
            check()
        piece = line = file.readline(4 * _LINE_CHARS)
        if not piece:
            return
        more = 0
        while not piece.endswith(b"\n") and (piece := file.readline(_PIECE_BYTES)):
            check()
            more += len(piece.removesuffix(b"\n"))
        yield line.removesuffix(b"\n"), more


def _line(line: bytes, more: int) -> str:
    text = storable(line.removesuffix(b"\r").decode("utf-8", "replace"))
    if more or len(text) > _LINE_CHARS:
        more += len(text[_LINE_CHARS:].encode())
        return f"{text[:_LINE_CHARS]}... [the line has about {more:,} more bytes]"
    return text


def _deadline_check(path: str, cancelled: Callable[[], bool]) -> Callable[[], None]:
    deadline = time.monotonic() + _READ_TIMEOUT_S

    def check() -> None:
        if cancelled() or time.monotonic() > deadline:
            raise ToolError(f"{path} is too large: that line was not reached within {_READ_TIMEOUT_S:.0f} s.")

    return check


def _list_page(path: str, offset: int, limit: int) -> str:
    with os.scandir(path) as entries:
        names = sorted(entry.name + _suffix(entry) for entry in entries)
    page = names[offset - 1 : offset - 1 + limit]
    if not names:
        return f"[{path} is an empty directory]"
    last = offset + len(page) - 1
    rest = f"; continue with offset={last + 1}" if last < len(names) else ""
    return "\n".join([*page, f"[{path} is a directory: entries {offset:,}-{last:,} of {len(names):,}{rest}]"])


def _suffix(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir() else ""


def missing(path: str) -> str:
    """Return the error text for a missing path: the first missing part, and similar names."""
    wanted = Path(path)
    while not wanted.parent.is_dir() and wanted != wanted.parent:
        wanted = wanted.parent
    problem = f"{path} does not exist" if str(wanted) == path else f"{path} does not exist: there is no {wanted}"
    try:
        with os.scandir(wanted.parent) as entries:
            names = {entry.name.lower(): entry.name for entry in itertools.islice(entries, _MAX_LISTED)}
    except OSError:
        return f"{problem}."
    near = [str(wanted.with_name(names[name])) for name in get_close_matches(wanted.name.lower(), names, n=3)]
    return f"{problem}. Did you mean {' or '.join(near)}?" if near else f"{problem}."

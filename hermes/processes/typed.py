"""Unfinished input line of a process, which is judged together with the next input.

It is stored in the process's folder before it is sent, so a later daemon knows it too. Only the start and end of a
long line are kept.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FILE: Final = "typed"
_KEPT_BYTES: Final = 8192  # at either end
_LINE_END: Final = re.compile(rb"(?<!\\)(?:\\\\)*[\r\n]+")  # not after a backslash, which continues the line
_ERASES_ONE: Final = "\b\x7f"
_ERASES_LINE: Final = "\x03\x15"


def read_typed(folder: Path) -> bytes:
    try:
        return (folder / _FILE).read_bytes()
    except OSError:  # nothing was sent yet
        return b""


def note_typed(folder: Path, line: bytes) -> None:
    """Store new input. Raises OSError; then the input must not be sent."""
    (folder / _FILE).write_bytes(line)


def unfinished(before: bytes, data: bytes) -> bytes:
    line = before + data
    ends = [found.end() for found in _LINE_END.finditer(line)]
    line = line[ends[-1] :] if ends else line
    return line if len(line) <= 2 * _KEPT_BYTES else line[:_KEPT_BYTES] + line[-_KEPT_BYTES:]


def as_read(text: str) -> str:
    """Return the input as a terminal passes it to a shell: erased characters removed, Return as newline."""
    read: list[str] = []
    for character in text.replace("\r", "\n"):
        if character in _ERASES_ONE and read and read[-1] != "\n":
            read.pop()
        elif character in _ERASES_LINE:
            while read and read[-1] != "\n":
                read.pop()
        elif character not in _ERASES_ONE:
            read.append(character)
    return "".join(read)

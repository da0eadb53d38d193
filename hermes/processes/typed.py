"""What was sent to a process's input and not ended by a newline: whoever judges the next piece has to know the line.

It lies in the process's folder, so a daemon that comes later knows it too, and is noted before it is sent. Of a long
line the beginning and the end are kept.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FILE: Final = "typed"
_KEPT_BYTES: Final = 8192  # at either end
_LINE_END: Final = re.compile(rb"(?<!\\)(?:\\\\)*[\r\n]+")  # not where a backslash says that the line goes on
_ERASES_ONE: Final = "\b\x7f"
_ERASES_LINE: Final = "\x03\x15"


def read_typed(folder: Path) -> bytes:
    try:
        return (folder / _FILE).read_bytes()
    except OSError:  # nothing was sent yet
        return b""


def note_typed(folder: Path, line: bytes) -> None:
    """Raises OSError: then nothing is to be sent."""
    (folder / _FILE).write_bytes(line)


def unfinished(before: bytes, data: bytes) -> bytes:
    line = before + data
    ends = [found.end() for found in _LINE_END.finditer(line)]
    line = line[ends[-1] :] if ends else line
    return line if len(line) <= 2 * _KEPT_BYTES else line[:_KEPT_BYTES] + line[-_KEPT_BYTES:]


def as_read(text: str) -> str:
    """As a terminal hands it to a shell: without what was erased, and with a newline for each Return."""
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

"""Prepare a tool's result for the transcript: storable text, known secrets masked, length limited.

A result that is too long is stored in the conversation's folder. The model gets its head and tail, and a note about
the omitted part and the file. Blocking if a file is written: call `fit` in a thread.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.system.tool_readable import create_readable_file, make_readable_directory

Redact: TypeAlias = Callable[[str], str]  # masks known secrets

_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_HEAD_SHARE = 0.6  # of the shown text; the tail gets the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    size_bytes: int = 50_000
    lines: int = 2_000
    line_chars: int = 2_000


def storable(text: str) -> str:
    """Return text that every store, model and terminal accepts: no lone surrogates, no NULs."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # A surrogate pair becomes one character; a lone surrogate is replaced.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cut_line(line: str, max_chars: int) -> str:
    return line if len(line) <= max_chars else f"{line[:max_chars]}... [{len(line) - max_chars:,} more characters]"


def fit(text: str, folder: Path, call: str, limits: OutputLimits, redact: Redact, *, excerpt: bool = False) -> str:
    """Return the text within the limits. `excerpt`: the text is already only part of the output."""
    text = redact(storable(text))
    lines = text.split("\n")
    size = len(text.encode())
    if size <= limits.size_bytes and len(lines) <= limits.lines and all(len(x) <= limits.line_chars for x in lines):
        return text
    total = f"{'this excerpt' if excerpt else 'the whole output'} has {len(lines):,} lines and {size:,} bytes"
    try:
        total += f" and is in {_spill(folder / 'outputs', call, text)}; read_file shows parts of it"
    except OSError as error:
        total += f" and could not be stored: {error.strerror}"
    return _shortened([cut_line(line, limits.line_chars) for line in lines], total, limits)


def _spill(outputs: Path, call: str, text: str) -> Path:
    make_readable_directory(outputs)
    # The model chooses the id: it may not be a valid file name, and it may repeat in a later turn.
    name = call if _SAFE_NAME.fullmatch(call) else hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()[:16]
    for number in itertools.count(1):
        path = outputs / (f"{name}.txt" if number == 1 else f"{name}-{number}.txt")
        try:
            descriptor = create_readable_file(path)
        except FileExistsError:
            continue
        break
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
            file.write(text.encode())
    except OSError:
        path.unlink()  # a partial file must not look complete
        raise
    return path


def _shortened(lines: list[str], total: str, limits: OutputLimits) -> str:
    if (
        len(lines) <= limits.lines
        and sum(len(line.encode()) + 1 for line in lines) <= limits.size_bytes - len(total) - 60
    ):
        return "\n".join([*lines, f"[long lines were truncated; {total}]"])
    room = max(0, limits.size_bytes - len(total.encode()) - 60)
    head = _taken(lines, room * _HEAD_SHARE, limits.lines * _HEAD_SHARE)
    rest = lines[len(head) :]
    tail = _taken(reversed(rest), room * (1 - _HEAD_SHARE), limits.lines * (1 - _HEAD_SHARE) - 1)[::-1]
    note = f"[... {len(rest) - len(tail):,} lines omitted here; {total}]"
    return "\n".join([*head, note, *tail])


def _taken(lines: Iterable[str], size_bytes: float, most: float) -> list[str]:
    taken: list[str] = []
    for line in lines:
        size_bytes -= len(line.encode()) + 1
        if size_bytes < 0 or len(taken) + 1 > most:
            break
        taken.append(line)
    return taken

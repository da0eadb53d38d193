"""Split of a long text into messages of a maximum number of UTF-16 units.

The same text gives the same parts. A growing text keeps all its parts but the last, so parts of a growing reply that
were shown stay correct. Cuts are at an empty line, else a line end, else a space, else at the limit, always in the
second half of the part. A code block that is cut is closed, and reopened in the next part; one inside a list loses
its indentation there. Only white space is dropped.
"""

from __future__ import annotations

import re

from hermes.adapters.chat.utf16 import prefix, sound, units
from hermes.domain.values import dataclass

NOTHING = "…"  # sent for an empty text, which platforms refuse
_MAX_MARKS = 16  # longer fences are plain text
_MAX_INFO = 64  # characters after the fence; more make it plain text
_MAX_INDENT = 24  # columns before the fence; more make it plain text
_CLOSING = _MAX_INDENT + _MAX_MARKS + 1  # units needed to close a fence
_INDENT = r"((?:[ \t]|(?:[-*+]|\d{1,9}[.)])[ \t])*)"  # a code block can be the first block of a list item
_OPENS = re.compile(_INDENT + r"(`{3,}|~{3,})(.*)")
_BEGINS = re.compile(_INDENT + "[`~]")
_CLOSES = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    indent: str
    marks: str
    line: str  # the opening line

    @property
    def closing(self) -> str:
        return re.sub(r"[^\t]", " ", self.indent) + self.marks

    @property
    def opening(self) -> str:
        """Opening line without the indentation of a list."""
        return self.line[len(self.indent) :]

    def is_closed_by(self, line: str) -> bool:
        found = _CLOSES.fullmatch(line)
        return bool(found and found[1].startswith(self.marks))

    def moved_left(self, text: str) -> str:
        """Remove the indentation from the rest of the block; the text after it stays unchanged."""
        lines = text.split("\n")
        for number, line in enumerate(lines):
            lines[number] = line[min(len(self.indent), len(line) - len(line.lstrip(" \t"))) :]
            if self.is_closed_by(line):
                break
        return "\n".join(lines)


def split(text: str, limit: int) -> tuple[str, ...]:
    """Split the text. Returns at least one part; no part is blank."""
    rest = sound(text)
    if not rest.strip():
        return (NOTHING,)
    result: list[str] = []
    opening = ""
    while units(opening + rest) > limit:
        part, opening, rest = _first(opening, rest, limit)
        result.append(part)
    last = opening + rest
    return (*filter(str.strip, result), *([last] if rest.strip() else [])) or (NOTHING,)


def _first(opening: str, rest: str, limit: int) -> tuple[str, str, str]:
    """Return the first part, the opening of the next one, and the rest."""
    at = _cut(rest, limit - units(opening) - _CLOSING)
    fence = _open_fence(opening + rest[:at])
    if fence and (before := _before_opener(rest[:at], fence)) and not _open_fence(opening + rest[:before]):
        at, fence = before, None
    part, left = opening + rest[:at].rstrip("\n"), _trimmed(rest, at)
    if fence is None:
        return part, "", left
    first, _, others = left.partition("\n")
    if fence.is_closed_by(first):  # cut just before its end
        return f"{part}\n{fence.closing}", "", others
    return f"{part}\n{fence.closing}", f"{fence.opening}\n", fence.moved_left(left) if fence.indent else left


def _cut(text: str, room: int) -> int:
    """Return the end of the first part."""
    window = prefix(text, room)
    least = len(window) // 2
    for separator in ("\n\n", "\n", " "):
        at = window.rfind(separator, least)
        while at > least and _looks_like_fence(text, at + len(separator)):
            at = window.rfind(separator, least, at)
        if at > 0:
            return at
    at = len(window)
    while at > least and _looks_like_fence(text, at):
        at -= 1
    return max(at, 1)


def _looks_like_fence(text: str, at: int) -> bool:
    """Return True if a cut here would make the next line start like a fence when it did not before."""
    # Reads no further than a cut always can, so that a growing text is cut at the same place.
    return text[at - 1 : at] != "\n" and _BEGINS.match(text, at, at + _MAX_INDENT + 1) is not None


def _trimmed(rest: str, at: int) -> str:
    """Return the text after the cut without the line end or space at it."""
    left = rest[at:]
    return left.lstrip("\n") if left.startswith("\n") else left.removeprefix(" ")


def _before_opener(piece: str, fence: _Fence) -> int:
    """Return the position before a fence that opens at the very end of the piece, else 0."""
    stripped = piece.rstrip("\n")
    at = len(stripped) - len(fence.line)
    return at if at > 0 and stripped.endswith(f"\n{fence.line}") else 0


def _open_fence(text: str) -> _Fence | None:
    """Return the code block that the text leaves open."""
    fence: _Fence | None = None
    for line in text.split("\n"):
        if fence is None:
            fence = _opened_by(line)
        elif fence.is_closed_by(line):
            fence = None
    return fence


def _opened_by(line: str) -> _Fence | None:
    found = _OPENS.fullmatch(line)
    if found is None or len(found[1]) > _MAX_INDENT or len(found[2]) > _MAX_MARKS or len(found[3]) > _MAX_INFO:
        return None
    if found[2][0] == "`" and "`" in found[3]:
        return None  # inline code
    return _Fence(indent=found[1], marks=found[2], line=line)

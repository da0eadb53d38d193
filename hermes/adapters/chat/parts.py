"""A long text as messages of no more than so many UTF-16 units, cut where it hurts least.

The same text gives the same parts, and a text that grows keeps all its parts but the last: what was shown of a reply
in flight stays true. Cuts are at an empty line, else at a line's end, else at a space, else where it is full, in the
second half of what fits. A block of code that is cut is closed, and opened again in the next part; one that stands in
a list moves to the left there, as the list does not go along. Only white space is dropped, at a cut and by that move.
"""

from __future__ import annotations

import re

from hermes.adapters.chat.utf16 import prefix, sound, units
from hermes.domain.values import dataclass

NOTHING = "…"  # said for an empty text, which platforms refuse
_MAX_MARKS = 16  # of a fence; a longer one is treated as text
_MAX_INFO = 64  # characters after a fence's marks; with more it is text, too
_MAX_INDENT = 24  # columns before a fence's marks; deeper ones are text, too
_CLOSING = _MAX_INDENT + _MAX_MARKS + 1  # units that closing a fence may take
_INDENT = r"((?:[ \t]|(?:[-*+]|\d{1,9}[.)])[ \t])*)"  # a block may be the first in an item of a list
_OPENS = re.compile(_INDENT + r"(`{3,}|~{3,})(.*)")
_BEGINS = re.compile(_INDENT + "[`~]")
_CLOSES = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    indent: str
    marks: str
    line: str  # that opened it

    @property
    def closing(self) -> str:
        return re.sub(r"[^\t]", " ", self.indent) + self.marks

    @property
    def opening(self) -> str:
        """Where there is no list around it."""
        return self.line[len(self.indent) :]

    def is_closed_by(self, line: str) -> bool:
        found = _CLOSES.fullmatch(line)
        return bool(found and found[1].startswith(self.marks))

    def moved_left(self, text: str) -> str:
        """The rest of the block without its indentation, and what follows as it is."""
        lines = text.split("\n")
        for number, line in enumerate(lines):
            lines[number] = line[min(len(self.indent), len(line) - len(line.lstrip(" \t"))) :]
            if self.is_closed_by(line):
                break
        return "\n".join(lines)


def split(text: str, limit: int) -> tuple[str, ...]:
    """At least one part, none of them blank."""
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
    """A part, what the next one has to begin with, and what is left."""
    at = _cut(rest, limit - units(opening) - _CLOSING)
    fence = _open_fence(opening + rest[:at])
    if fence and (before := _before_opener(rest[:at], fence)) and not _open_fence(opening + rest[:before]):
        at, fence = before, None
    part, left = opening + rest[:at].rstrip("\n"), _trimmed(rest, at)
    if fence is None:
        return part, "", left
    first, _, others = left.partition("\n")
    if fence.is_closed_by(first):  # the cut came just before its end
        return f"{part}\n{fence.closing}", "", others
    return f"{part}\n{fence.closing}", f"{fence.opening}\n", fence.moved_left(left) if fence.indent else left


def _cut(text: str, room: int) -> int:
    """Where the first part ends."""
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
    """Whether a line that began here would open or close a block of code, and does not begin here now."""
    # No further ahead than what is there whenever a text is cut, or a text that grows would be cut elsewhere.
    return text[at - 1 : at] != "\n" and _BEGINS.match(text, at, at + _MAX_INDENT + 1) is not None


def _trimmed(rest: str, at: int) -> str:
    """What is left after the cut: without the line's end, or the space, where it was."""
    left = rest[at:]
    return left.lstrip("\n") if left.startswith("\n") else left.removeprefix(" ")


def _before_opener(piece: str, fence: _Fence) -> int:
    """The place before a fence that was opened at the very end of the piece; 0: there is none."""
    stripped = piece.rstrip("\n")
    at = len(stripped) - len(fence.line)
    return at if at > 0 and stripped.endswith(f"\n{fence.line}") else 0


def _open_fence(text: str) -> _Fence | None:
    """The block of code that the text leaves open."""
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
        return None  # code within a line
    return _Fence(indent=found[1], marks=found[2], line=line)

"""Separates reasoning from an answer: `<think>…</think>`, also split over chunks, repeated or never closed.

A tag counts at the beginning of the answer or of a line, which is where models put it. In the middle of a line and in
a fenced code block it is ordinary text.

Some chat templates open the block themselves, so the answer starts inside of it and holds only `</think>`. Everything
before such a tag was reasoning, and the caller has to take it back (`take_back`).
"""

from __future__ import annotations

import re

_OPEN = ("<think>", "<thinking>")
_ORPHAN = ("</think>", "</thinking>")  # closing tags of a block that the answer did not open
_CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_CLOSE_MAX = len("</thinking>")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
_LINE_MAX = 1000  # characters of a line that are looked at to find a fence


class ReasoningFilter:
    """Incremental parser: `feed` returns the visible text of a chunk, `finish` what was held back at the end."""

    def __init__(self) -> None:
        self._inside = False  # of a reasoning block
        self._held: str | None = ""  # beginning of a line that may become a tag; None: it is ordinary text
        self._tail = ""  # end of the reasoning so far, which may hold a part of the closing tag
        self._line = ""  # visible text of the current line
        self._fence = ""  # that opened the current code block
        self._leading: str | None = ""  # whitespace before the first visible word; None: there was one
        self.found = False  # there was a reasoning block
        self._withdrawn = False  # all text returned so far was reasoning
        self._thoughts: list[str] = []  # reasoning since the last `take_thought`

    def take_back(self) -> bool:
        """Return whether the text of earlier `feed` calls was reasoning. True once."""
        withdrawn, self._withdrawn = self._withdrawn, False
        return withdrawn

    def take_thought(self) -> str:
        """Return the reasoning since the last call."""
        if not self._thoughts:
            return ""
        thought, self._thoughts = "".join(self._thoughts), []
        return thought

    def feed(self, text: str) -> str:
        if self._held is None and not self._inside and "\n" not in text:  # the usual case
            return self._show(text)
        shown: list[str] = []
        while text:
            text = self._skip(text) if self._inside else self._take(text, shown)
        return "".join(shown)

    def finish(self) -> str:
        if self._inside:
            self._thoughts.append(self._tail)
        rest = "" if self._inside else self._show(self._held or "")
        leading = "" if self.found else self._leading or ""
        return rest + leading

    def _skip(self, text: str) -> str:
        """Set reasoning aside; return what follows its end."""
        text = self._tail + text
        end = _CLOSE.search(text)
        if end is None:
            self._tail = text[1 - _CLOSE_MAX :]
            self._thoughts.append(text[: len(text) - len(self._tail)])
            return ""
        self._thoughts.append(text[: end.start()])
        self._inside, self._tail, self._held = False, "", ""
        return text[end.end() :]

    def _take(self, text: str, shown: list[str]) -> str:
        """Show text up to the end of its line, or up to a tag; return what follows."""
        line, newline, rest = text.partition("\n")
        line += newline
        if self._held is None:
            shown.append(self._show(line))
            return rest
        line = self._held + line
        body = line.lstrip(" \t\r")
        if not self._fence and (tag := _tag(body, _OPEN)):
            self._inside, self.found = True, True
            return body[len(tag) :] + rest
        if not self._fence and not self.found and (tag := _tag(body, _ORPHAN)):
            self._thoughts.append("".join(shown))
            shown.clear()
            self.found, self._withdrawn = True, True
            self._held, self._line, self._leading = "", "", ""
            return body[len(tag) :] + rest
        if not self._fence and _may_be_tag(body, _OPEN if self.found else _OPEN + _ORPHAN):
            self._held = line
            return ""
        self._held = None
        shown.append(self._show(line))
        return rest

    def _show(self, text: str) -> str:
        """Note what is visible, and hold back whitespace before the first visible word."""
        self._line = (self._line + text)[:_LINE_MAX]
        if text.endswith("\n"):
            self._fence = _fence_after(self._fence, self._line)
            self._line, self._held = "", ""
        if self._leading is None:
            return text
        text = self._leading + text
        if not text.strip():
            self._leading = text
            return ""
        self._leading = None
        return text.lstrip() if self.found else text


def visible(text: str) -> str:
    """Return the answer without reasoning."""
    parser = ReasoningFilter()
    return parser.feed(text) + parser.finish()


def _tag(body: str, tags: tuple[str, ...]) -> str:
    return next((body[: len(tag)] for tag in tags if body[: len(tag)].lower() == tag), "")


def _may_be_tag(body: str, tags: tuple[str, ...]) -> bool:
    return any(tag.startswith(body.lower()) for tag in tags)


def _fence_after(fence: str, line: str) -> str:
    """Return the fence that is open after this line, or nothing."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return fence
    mark, info = found[1], found[2]
    if not fence:
        return "" if mark[0] == "`" and "`" in info else mark
    return "" if mark[0] == fence[0] and len(mark) >= len(fence) and not info.strip() else fence

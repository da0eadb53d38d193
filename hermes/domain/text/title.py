"""Title of a session: one line of characters that can be seen."""

from __future__ import annotations

from typing import Final

MAX_TITLE: Final = 200  # characters
_JOINERS: Final = "\u200c\u200d"  # part of words and emoji


def clean_title(text: str) -> str:
    """Return the text on one line, without control characters and direction marks, cut at the limit."""
    seen = "".join(char if char.isprintable() or char in _JOINERS else " " * char.isspace() for char in text)
    line = " ".join(seen.split()).strip(_JOINERS)
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1].rstrip() + "…"

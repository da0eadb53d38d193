"""Snippet of a found text, with the matches between marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hermes.search.fold import folded_with_places, is_unspaced

OPEN: Final = ">>>"
CLOSE: Final = "<<<"
WIDTH: Final = 200  # characters of the text, without marks
BEFORE: Final = 50  # characters before the first mark

_MAX_FOUND: Final = 400  # matches; enough to choose a good part


def snippet(text: str, tokens: Sequence[str]) -> str:
    """Return the part of a text with the most different tokens. Tokens are folded."""
    found = _found(text, tokens)
    if not found:
        return _framed(text, 0, min(len(text), WIDTH), [])
    first = max(range(len(found)), key=lambda number: (_variety(found, number), -number))
    start = max(0, found[first][0] - BEFORE)
    end = min(len(text), start + WIDTH)
    return _framed(text, start, end, [place[:2] for place in found if place[0] >= start and place[1] <= end])


def _found(text: str, tokens: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the matches of the tokens at the start of words, or else anywhere."""
    folded, places = folded_with_places(text)
    for boundary in (True, False):
        patterns = [_pattern(token, boundary=boundary) for token in tokens]
        if not patterns:
            return []
        found: list[tuple[int, int, str]] = []
        for match in re.finditer("|".join(patterns), folded):
            found.append((places[match.start()], max(places[match.end()], places[match.start()] + 1), match[0]))
            if len(found) == _MAX_FOUND:
                break
        if found:
            return found
    return []


def _pattern(token: str, *, boundary: bool) -> str:
    return (r"\b" if boundary and not is_unspaced(token[0]) else "") + re.escape(token)


def _variety(found: Sequence[tuple[int, int, str]], first: int) -> int:
    """Return the number of different tokens in a part that starts at this match."""
    seen: set[str] = set()
    for start, _, token in found[first:]:
        if start > found[first][0] + WIDTH - BEFORE:
            break
        seen.add(token)
    return len(seen)


def _framed(text: str, start: int, end: int, marks: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = start
    for begin, until in marks:
        if begin < at:  # one character can fold to several
            continue
        parts += (text[at:begin], OPEN, text[begin:until], CLOSE)
        at = until
    parts.append(text[at:end])
    shown = " ".join("".join(parts).split())
    return ("…" if start else "") + shown + ("…" if end < len(text) else "")

"""Text length in UTF-16 units, as Telegram and others count it. An emoji takes two."""

from __future__ import annotations


def units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)


def sound(text: str) -> str:
    """Join halves of surrogate pairs, and replace those without their other half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def prefix(text: str, room: int) -> str:
    """Return the longest prefix of at most `room` units, without splitting a pair."""
    if units(text[:room]) <= room:
        return text[:room]
    low, high = room // 2, room
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if units(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


def between(text: str, offset: int, length: int) -> str:
    """Return the text of an entity at this offset."""
    return text.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")

"""Text measured in UTF-16 units, of which an emoji takes two, as Telegram and others do."""

from __future__ import annotations


def units(text: str) -> int:
    """How long it is."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)


def sound(text: str) -> str:
    """The text with halves of surrogate pairs joined, or replaced where the other half is missing."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def prefix(text: str, room: int) -> str:
    """The longest beginning of the text that takes no more than so many units; no pair is taken apart."""
    if units(text[:room]) <= room:
        return text[:room]
    low, high = room // 2, room
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if units(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


def between(text: str, offset: int, length: int) -> str:
    """What an entity of that place covers."""
    return text.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")

"""Several things in one line of text: the first few and how many more there are, or their number. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 5


def some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def counted(number: int, one: str, more: str) -> str:
    """Return a number with its noun: `counted(1, "process runs", "processes run")`."""
    return f"{number} {one if number == 1 else more}"

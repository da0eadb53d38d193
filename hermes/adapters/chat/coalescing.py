"""Coalescing of a long text that a client split into several messages.

Only a message of nearly the maximum length is waited on for a moment; all others start immediately. Each part is on
disk before it is acknowledged: the state here only tells which parts belong together and may be lost.
"""

from __future__ import annotations

from collections.abc import Hashable

from hermes.domain.ids import TurnId

WAIT_S = 0.8  # between the parts of one text
_NEARLY = 0.95  # of the maximum length: clients prefer to split between words


def is_cut_off(text: str, splits_at: int) -> bool:
    """Return True if the rest of this text is probably on its way."""
    return splits_at > 0 and len(text.encode("utf-16-le", "surrogatepass")) // 2 >= splits_at * _NEARLY


class Bursts:
    """Turns that expect another part, by sender and conversation."""

    def __init__(self) -> None:
        self._open: dict[Hashable, tuple[TurnId, float]] = {}

    def take_up(self, who: Hashable, now: float) -> TurnId | None:
        """Return the turn that a message of this sender continues if it arrives now."""
        turn, until = self._open.pop(who, (None, 0.0))
        return turn if now <= until else None

    def expect(self, who: Hashable, turn: TurnId, now: float) -> None:
        self._open = {each: (open_turn, until) for each, (open_turn, until) in self._open.items() if now <= until}
        self._open[who] = (turn, now + WAIT_S)

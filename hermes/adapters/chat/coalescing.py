"""A long text that a client split into several messages: which of them belong together. Pure, but for what it notes.

Only a message that is about as long as the client allows is waited on for a moment; all others start at once. Each
part is on disk before it is confirmed: what is remembered here only says what joins what, and may be lost.
"""

from __future__ import annotations

from collections.abc import Hashable

from hermes.domain.types import TurnId

WAIT_S = 0.8  # between the parts of one text
_NEARLY = 0.95  # of the longest message: clients prefer to split between words


def is_cut_off(text: str, splits_at: int) -> bool:
    """Whether the rest of this is probably on its way."""
    return splits_at > 0 and len(text.encode("utf-16-le", "surrogatepass")) // 2 >= splits_at * _NEARLY


class Bursts:
    """The texts whose rest is expected, by who wrote them where."""

    def __init__(self) -> None:
        self._open: dict[Hashable, tuple[TurnId, float]] = {}

    def take_up(self, who: Hashable, now: float) -> TurnId | None:
        """The message that one of theirs continues if it comes now."""
        turn, until = self._open.pop(who, (None, 0.0))
        return turn if now <= until else None

    def expect(self, who: Hashable, turn: TurnId, now: float) -> None:
        self._open = {each: (open_turn, until) for each, (open_turn, until) in self._open.items() if now <= until}
        self._open[who] = (turn, now + WAIT_S)

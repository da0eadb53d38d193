"""Publish-subscribe port of live events."""

from __future__ import annotations

from typing import Protocol, Self

from hermes.domain.events import Event, Notice
from hermes.domain.ids import SessionId, TurnId


class Subscription(Protocol):
    """Bounded feed of live events. `lagged` is set when the reader falls behind by more than the bound."""

    lagged: bool

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Event: ...
    def waiting(self) -> list[Event]:
        """Return the events that have arrived, without waiting."""

    def close(self) -> None: ...


class Hub(Protocol):
    def publish(self, event: Event) -> None: ...
    def subscribe(
        self,
        *,
        turn: TurnId | None = None,
        session: SessionId | None = None,
        late: bool = False,
        text: bool = True,
    ) -> Subscription:
        """Subscribe to one turn, one session, or everything; without `text` not to pieces of text and reasoning.

        A `late` subscriber of a turn first gets the text so far of the turn's current model call.
        """

    def notices_of(self, turn: TurnId) -> list[Notice]:
        """Return the last notices of this turn, for a reader that comes late."""

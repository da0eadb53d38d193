"""Live events: who publishes them, and who watches."""

from __future__ import annotations

from typing import Protocol, Self

from hermes.domain.events import Event
from hermes.domain.types import SessionId, TurnId


class Subscription(Protocol):
    """A bounded feed of live events. A reader that falls behind by more than its bound is told by `lagged`."""

    lagged: bool

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Event: ...
    def waiting(self) -> list[Event]:
        """Take what has already arrived, without waiting."""

    def close(self) -> None: ...


class Hub(Protocol):
    def publish(self, event: Event) -> None: ...
    def subscribe(
        self, *, turn: TurnId | None = None, session: SessionId | None = None, late: bool = False
    ) -> Subscription:
        """Feed of one turn, of one session, or of everything.

        `late`: the beginning of the present reply was missed, so its text is left out up to the next call of a tool.
        """

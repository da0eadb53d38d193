"""Reader of a turn's live events that joins text which has already arrived.

A write to a client costs more than the text in it, so waiting pieces are returned as one.
"""

from __future__ import annotations

import asyncio
from collections import deque

from hermes.domain.events import Event, TextDelta
from hermes.ports.hub import Subscription


class FeedReader:
    def __init__(self, feed: Subscription) -> None:
        self._feed = feed
        self._taken: deque[Event] = deque()  # taken from the feed, and not returned yet

    @property
    def lagged(self) -> bool:
        return self._feed.lagged

    async def next_event(self, quiet_s: float) -> Event | None:
        """Return the next event; None at the end of the feed. Raises TimeoutError if none comes within `quiet_s`."""
        if not self._taken:
            self._taken.extend(self._feed.waiting())
        if self._taken:
            return self._taken.popleft()
        async with asyncio.timeout(quiet_s):
            return await anext(self._feed, None)

    def waiting_text(self) -> str:
        """Return the text that has already arrived, up to the next event of another kind."""
        self._taken.extend(self._feed.waiting())
        texts = []
        while self._taken and isinstance(delta := self._taken[0], TextDelta):
            texts.append(delta.text)
            self._taken.popleft()
        return "".join(texts)

    def close(self) -> None:
        self._feed.close()

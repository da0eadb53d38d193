"""What is to be said in one chat: what waits, what is shown while it grows, and when it is tried again."""

from __future__ import annotations

import asyncio
from collections import deque

from hermes.actors.delivery.preview import Stream
from hermes.domain.backoff import backoff_s
from hermes.domain.errors import DeliveryError, HermesError
from hermes.domain.outbox_message import OutboxMessage
from hermes.ports.hub import Subscription

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
MAX_MOVES = 3  # of a chat that are followed at once
MAX_TRIES_IF_REFUSED = 8  # a few minutes' worth: then it makes way for those behind it


class Lane:
    """What is to be said in one chat. One thing at a time, in the order it was owed."""

    __slots__ = ("busy", "paused", "queue", "streams", "tries")

    def __init__(self) -> None:
        self.queue: deque[str] = deque()
        self.streams: dict[str, Live] = {}  # by obligation
        self.busy = ""  # with this one
        self.paused = False
        self.tries = 0

    def take_over(self, former: Lane) -> None:
        """What waited in the chat as it was called before comes first, but for what is just being said."""
        under_way = 1 if self.queue and self.queue[0] == self.busy else 0
        for name in reversed(former.queue):
            self.queue.insert(under_way, name)
        self.streams = former.streams | self.streams


class Live:
    """A turn that is shown while it runs."""

    __slots__ = ("announced", "feed", "shown_at", "stream", "task")

    def __init__(self, feed: Subscription, now: float) -> None:
        self.feed = feed
        self.stream = Stream()
        self.announced = False  # it has grown, and the actor knows
        self.shown_at = now  # an answer that is there soon is said once, and never shown half
        self.task: asyncio.Task[None] | None = None


def is_hopeless(error: HermesError, outgoing: OutboxMessage) -> bool:
    """Return whether no retry can succeed: the chat is gone, or the platform keeps refusing the message."""
    if not isinstance(error, DeliveryError):
        return False
    return error.gone or (error.refused and outgoing.refusals >= MAX_TRIES_IF_REFUSED)


def pause_s(tries: int, error: HermesError, jitter: float) -> float:
    if isinstance(error, DeliveryError) and error.retry_after_s is not None:
        return error.retry_after_s + jitter
    return backoff_s(tries, first_s=FIRST_PAUSE_S, max_s=LONGEST_PAUSE_S, jitter=jitter)

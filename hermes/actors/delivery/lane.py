"""Lane of one chat: queued outbox messages, previews of running turns, and the retry pause."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from hermes.actors.delivery.preview import Stream
from hermes.domain.backoff import backoff_s
from hermes.domain.errors import DeliveryError, HermesError
from hermes.domain.outbox_message import OutboxMessage
from hermes.ports.hub import Subscription

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
MAX_MOVES = 3  # of a chat during one delivery
MAX_TRIES_IF_REFUSED = 8  # a few minutes; then the next message gets its turn


class Lane:
    """Outbox messages of one chat, sent one at a time in the order of the outbox."""

    __slots__ = ("busy", "paused", "queue", "streams", "tries")

    def __init__(self) -> None:
        self.queue: deque[str] = deque()
        self.streams: dict[str, Live] = {}  # by id of the outbox message
        self.busy = ""  # id of the message being sent
        self.paused = False
        self.tries = 0

    def take_over(self, former: Lane) -> None:
        """Put the queue of the chat's former id first, behind the message being sent."""
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
        self.announced = False  # the actor knows that it has grown
        self.shown_at = now  # a quick answer is sent once, without a preview
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


def oldest_problem(outgoing: Iterable[OutboxMessage], now: float) -> str:
    """Describe the oldest message that could not be delivered; empty: there is none."""
    failing = min((each for each in outgoing if each.problem), key=lambda each: each.at, default=None)
    if failing is None:
        return ""
    since = f"{max(0.0, now - failing.at):.0f} s"
    return f"{failing.id} is not delivered for {since}: {failing.problem} (tried {failing.tries} times)"

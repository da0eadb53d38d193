"""Rate limits of Slack, as arithmetic: no waiting and no clock here.

One new message a second per channel, counted from the last answer, and about a hundred a minute per workspace, with
short bursts. Edits are fifty a minute per workspace, with short bursts: a growing reply is shown only while enough
edits are left for the ends of other replies. Messages from before the start are unknown: every channel counts as just
used, and each workspace's burst as used up. A channel, or all edits of a workspace, under a limit of Slack's own is
held until that ends.
"""

from __future__ import annotations

import math

from hermes.domain.values import dataclass

_MAX_CHATS = 4096  # entries; idle chats are dropped then


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackLimits:
    channel_every_s: float = 1.0
    every_s: float = 0.15  # new messages per workspace, on average
    at_once: int = 20
    change_every_s: float = 1.2  # edits per workspace, on average
    changes_at_once: int = 20
    look_every_s: float = 1.3  # calls of the backfill, on average
    looks_at_once: int = 10


class Allowance:
    """Token bucket per workspace: a burst of `at_once`, then one every `every_s`."""

    def __init__(self, *, every_s: float, at_once: int, used_up_at: float = -math.inf) -> None:
        self._every_s = every_s
        self._burst_s = every_s * at_once
        self._unknown = used_up_at + self._burst_s
        self._full_at: dict[str, float] = {}  # when the workspace's bucket is full

    def has_room(self, workspace: str, now: float) -> bool:
        """Return True if half of the bucket is left; the other half is for necessary calls."""
        return self._full_at.get(workspace, self._unknown) - now <= self._burst_s / 2

    def take(self, workspace: str, now: float) -> float:
        """Take a token. Returns how long to wait for it."""
        full_at = max(now, self._full_at.get(workspace, self._unknown)) + self._every_s
        self._full_at[workspace] = full_at
        return max(0.0, full_at - self._burst_s - now)


class SlackRateLimiter:
    """Rate limiter for all workspaces. Times are seconds of a monotonic clock. Chat ids start with the workspace."""

    def __init__(self, limits: SlackLimits, started: float) -> None:
        self._limits = limits
        self._unknown = started + limits.channel_every_s  # messages from before the start are unknown
        self._free: dict[str, float] = {}  # next new message by chat
        self._held: dict[str, float] = {}  # end of Slack's own limits
        self.messages = Allowance(every_s=limits.every_s, at_once=limits.at_once, used_up_at=started)
        self.changes = Allowance(every_s=limits.change_every_s, at_once=limits.changes_at_once, used_up_at=started)

    def held_s(self, what: str, now: float) -> float:
        """Return how long a limit of Slack's own holds this kind of call."""
        return max(0.0, self._held.get(what, now) - now)

    def hold(self, what: str, until: float) -> None:
        self._held[what] = until

    def wait_s(self, chat: str, now: float) -> float:
        """Return how long a new message has to wait for the limits of its chat."""
        return max(0.0, self._free.get(chat, self._unknown) - now)

    def answered(self, chat: str, now: float) -> None:
        """Record an answer, successful or not, to a new message."""
        if len(self._free) >= _MAX_CHATS:
            self._free = {name: at for name, at in self._free.items() if at > now}
            self._held = {name: at for name, at in self._held.items() if at > now}
        self._free[chat] = now + self._limits.channel_every_s

"""How often Slack wants to hear from a bot, as arithmetic: nothing here waits or looks at a clock.

One new message a second in a channel, counted from the answer to the one before, and some hundred a minute in a
workspace, a few of them at once: short bursts are welcome there. Changes of messages are fifty a minute in a whole
workspace, some at once: a growing reply is shown only while enough of them are left for the final words of others.
What was said before the start is not known: every channel counts as just spoken to then, and what a workspace takes
at once as used up. What Slack asked us to leave alone for a while is left alone: a channel, or all changes in a
workspace.
"""

from __future__ import annotations

import math

from hermes.domain.values import dataclass

_MAX_CHATS = 4096  # remembered; those that would not have to wait any more are forgotten then


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackLimits:
    channel_every_s: float = 1.0
    every_s: float = 0.15  # new messages in a workspace, in the long run
    at_once: int = 20
    change_every_s: float = 1.2  # in a workspace, in the long run
    changes_at_once: int = 20
    look_every_s: float = 1.3  # calls that read what was missed, in the long run
    looks_at_once: int = 10


class Allowance:
    """So many at once, and one more each while after that; a workspace has one for each kind of call."""

    def __init__(self, *, every_s: float, at_once: int, used_up_at: float = -math.inf) -> None:
        self._every_s = every_s
        self._burst_s = every_s * at_once
        self._unknown = used_up_at + self._burst_s
        self._full_at: dict[str, float] = {}  # when a workspace has all of it again

    def has_room(self, workspace: str, now: float) -> bool:
        """Whether half of it is left: the other half is for what has to be."""
        return self._full_at.get(workspace, self._unknown) - now <= self._burst_s / 2

    def take(self, workspace: str, now: float) -> float:
        """Takes the next turn, and says how long it is until then."""
        full_at = max(now, self._full_at.get(workspace, self._unknown)) + self._every_s
        self._full_at[workspace] = full_at
        return max(0.0, full_at - self._burst_s - now)


class SlackRateLimiter:
    """Times are seconds of one clock that only goes forward. Keys of chats begin with their workspace's."""

    def __init__(self, limits: SlackLimits, started: float) -> None:
        self._limits = limits
        self._unknown = started + limits.channel_every_s  # what was said before the start is not known
        self._free: dict[str, float] = {}  # when a chat may be told something new
        self._held: dict[str, float] = {}  # until when, by Slack itself
        self.messages = Allowance(every_s=limits.every_s, at_once=limits.at_once, used_up_at=started)
        self.changes = Allowance(every_s=limits.change_every_s, at_once=limits.changes_at_once, used_up_at=started)

    def held_s(self, what: str, now: float) -> float:
        """For how long Slack wants nothing of this kind."""
        return max(0.0, self._held.get(what, now) - now)

    def hold(self, what: str, until: float) -> None:
        self._held[what] = until

    def wait_s(self, chat: str, now: float) -> float:
        """How long something new has to wait, as far as this chat is concerned."""
        return max(0.0, self._free.get(chat, self._unknown) - now)

    def answered(self, chat: str, now: float) -> None:
        """Something new was just answered, well or badly."""
        if len(self._free) >= _MAX_CHATS:
            self._free = {name: at for name, at in self._free.items() if at > now}
            self._held = {name: at for name, at in self._held.items() if at > now}
        self._free[chat] = now + self._limits.channel_every_s

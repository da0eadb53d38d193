"""How often Telegram wants to hear from a bot, as arithmetic: nothing here waits or looks at a clock.

One message a second in a chat, counted from the answer to the one before, so that delays on the way cannot bring
two together. Twenty a minute in a group: a few at once, then one every four seconds, which is never more than twenty
in any minute. Thirty a second in all: evenly spaced, a little slower, as requests bunch up on their way. A chat that
Telegram asked us to leave alone for a while is left alone. What was said before the start is not known: a chat counts
as having been told something just then, a group as having used up most of what it may.
"""

from __future__ import annotations

import dataclasses

from hermes.domain.values import dataclass

_MAX_CHATS = 4096  # remembered; those that would not have to wait any more are forgotten then


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramLimits:
    chat_every_s: float = 1.0
    group_burst: int = 5
    group_every_s: float = 4.0
    every_s: float = 1 / 28


@dataclasses.dataclass(slots=True)
class _Chat:
    free_at: float = 0.0  # when its second is over
    full_at: float = 0.0  # when a group may send its whole burst again
    held_until: float = 0.0  # by Telegram itself

    def quiet_at(self) -> float:
        return max(self.free_at, self.full_at, self.held_until)


class TelegramRateLimiter:
    """Times are seconds of one clock that only goes forward."""

    def __init__(self, limits: TelegramLimits, started: float) -> None:
        self._limits = limits
        self._burst_s = limits.group_every_s * (limits.group_burst - 1)
        self._started = started
        self._chats: dict[str, _Chat] = {}
        self._next = 0.0  # when something may be sent anywhere

    def held_s(self, chat: str, now: float) -> float:
        """For how long Telegram wants nothing for this chat."""
        return max(0.0, self._chats[chat].held_until - now) if chat in self._chats else 0.0

    def wait_s(self, chat: str, now: float) -> float:
        """How long a message to this chat has to wait, as far as the chat is concerned."""
        known = self._chats.get(chat) or self._unknown()
        return max(0.0, known.free_at - now, known.full_at - self._burst_s - now if is_group(chat) else 0.0)

    def turn_s(self, now: float) -> float:
        """How long it is until something may be said anywhere."""
        return max(0.0, self._next - now)

    def take_turn(self, now: float) -> None:
        """Something is said now: the next has to wait."""
        self._next = now + self._limits.every_s

    def answered(self, chat: str, now: float) -> None:
        """A message to this chat was just answered, well or badly."""
        self._forget_quiet(now)
        known = self._chats.setdefault(chat, self._unknown())
        known.free_at = now + self._limits.chat_every_s
        if is_group(chat):
            known.full_at = max(now, known.full_at) + self._limits.group_every_s

    def hold(self, chat: str, until: float) -> None:
        self._chats.setdefault(chat, self._unknown()).held_until = until

    def _unknown(self) -> _Chat:
        return _Chat(free_at=self._started + self._limits.chat_every_s, full_at=self._started + self._burst_s)

    def _forget_quiet(self, now: float) -> None:
        if len(self._chats) >= _MAX_CHATS:
            self._chats = {name: chat for name, chat in self._chats.items() if chat.quiet_at() > now}


def is_group(chat: str) -> bool:
    """Groups and channels have negative ids, people have not."""
    return chat.startswith("-")

"""Rate limits of Telegram, as arithmetic: no waiting and no clock here.

One message a second per chat, counted from the last answer, because delays may bring two together. Twenty a minute
per group: a short burst, then one every four seconds. Thirty a second in all: evenly spaced and a little slower,
because requests bunch up on the network. A chat under a limit of Telegram's own is held until that ends. Messages
from before the start are unknown: a chat counts as just used, and a group's burst as mostly used.
"""

from __future__ import annotations

import dataclasses

from hermes.domain.values import dataclass

_MAX_CHATS = 4096  # entries; idle chats are dropped then


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramLimits:
    chat_every_s: float = 1.0
    group_burst: int = 5
    group_every_s: float = 4.0
    every_s: float = 1 / 28


@dataclasses.dataclass(slots=True)
class _Chat:
    free_at: float = 0.0  # end of the current second
    full_at: float = 0.0  # time at which a group's burst is available again
    held_until: float = 0.0  # by a limit of Telegram's own

    def quiet_at(self) -> float:
        return max(self.free_at, self.full_at, self.held_until)


class TelegramRateLimiter:
    """Rate limiter for one bot. Times are seconds of a monotonic clock."""

    def __init__(self, limits: TelegramLimits, started: float) -> None:
        self._limits = limits
        self._burst_s = limits.group_every_s * (limits.group_burst - 1)
        self._started = started
        self._chats: dict[str, _Chat] = {}
        self._next = 0.0  # next send to any chat

    def held_s(self, chat: str, now: float) -> float:
        """Return how long a limit of Telegram's own holds this chat."""
        return max(0.0, self._chats[chat].held_until - now) if chat in self._chats else 0.0

    def wait_s(self, chat: str, now: float) -> float:
        """Return how long a message has to wait for the limits of its chat."""
        known = self._chats.get(chat) or self._unknown()
        return max(0.0, known.free_at - now, known.full_at - self._burst_s - now if is_group(chat) else 0.0)

    def turn_s(self, now: float) -> float:
        """Return how long a message has to wait for the limit of all chats."""
        return max(0.0, self._next - now)

    def take_turn(self, now: float) -> None:
        """Take the next slot of the limit of all chats."""
        self._next = now + self._limits.every_s

    def answered(self, chat: str, now: float) -> None:
        """Record an answer, successful or not, to a message in this chat."""
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
    """Return True for groups and channels, which have negative ids."""
    return chat.startswith("-")

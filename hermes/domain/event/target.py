"""Delivery targets: where a report goes, as people write it. Pure.

`home`, `telegram`, `telegram:-1001:7`, `slack:#triage`, `all`, `origin` and `local`, or several separated by commas.
"""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.values import dataclass


class TargetKind(StrEnum):
    LOCAL = "local"  # nowhere: the report stays in its session
    ORIGIN = "origin"  # the chat where it was asked for
    HOME = "home"  # home channel of a platform; without one, the first that is set
    ALL = "all"  # every home channel
    CHAT = "chat"  # a chat by id or name


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTarget:
    kind: TargetKind
    platform: str = ""
    chat: str = ""  # id, or a name of the channel directory
    thread: str = ""

    def __str__(self) -> str:
        if self.kind is TargetKind.HOME and self.platform:
            return self.platform
        return ":".join(filter(None, (self.platform, self.chat, self.thread))) or self.kind.value


def parse_target(text: str) -> DeliveryTarget:
    """Return the target that a text means. Raises ValueError."""
    text = text.strip()
    if text in (TargetKind.LOCAL, TargetKind.ORIGIN, TargetKind.HOME, TargetKind.ALL):
        return DeliveryTarget(kind=TargetKind(text))
    platform, colon, rest = text.partition(":")
    if not platform.isidentifier() or (colon and not rest.strip()):
        raise ValueError(
            f"{text[:80]!r} is not a delivery target: write home, all, origin, local, PLATFORM, PLATFORM:CHAT or "
            "PLATFORM:CHAT:THREAD"
        )
    if not colon:
        return DeliveryTarget(kind=TargetKind.HOME, platform=platform)
    chat, thread = _chat_and_thread(rest.strip())
    return DeliveryTarget(kind=TargetKind.CHAT, platform=platform, chat=chat, thread=thread)


def _chat_and_thread(text: str) -> tuple[str, str]:
    """Split after the last colon, if a thread id follows: digits, with a point in Slack."""
    chat, colon, thread = text.rpartition(":")
    if colon and chat and thread.replace(".", "", 1).isdecimal():
        return chat, thread
    return text, ""


def parse_targets(texts: tuple[str, ...]) -> tuple[DeliveryTarget, ...]:
    """Return the targets of a list whose members may have commas. Raises ValueError."""
    parts = [part for text in texts for part in text.split(",") if part.strip()]
    return tuple(dict.fromkeys(parse_target(part) for part in parts))

"""Channel directory: names of the chats in which people wrote, with their ids. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from hermes.domain.source import Place, Source
from hermes.domain.values import dataclass

PREFIX: Final = "channel:"  # of the names of facts
MAX_NAME: Final = 120
MAX_PER_PLATFORM: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A chat of a platform, as its last message showed it."""

    platform: str
    chat: str
    name: str = ""
    kind: str = ""  # dm, group, channel or thread
    at: float = 0.0  # when it was first seen, or its name changed

    @property
    def place(self) -> Place:
        return Place(platform=self.platform, chat=self.chat)

    @property
    def fact(self) -> str:
        return f"{PREFIX}{self.platform}:{self.chat}"

    def encoded(self) -> bytes:
        return json.dumps({"name": self.name, "kind": self.kind, "at": self.at}, ensure_ascii=False).encode()


def channel_of(source: Source, at: float) -> Channel | None:
    """Return the channel of a message; None if it came from no chat."""
    place, company = source.place, source.company
    if place is None:
        return None
    private = company is not None and company.kind == "dm"
    name = "" if company is None else (company.person or source.name if private else company.chat)
    kind = "" if company is None else company.kind
    kind = "channel" if kind == "thread" else kind
    name = " ".join((name or (source.name if private else "")).split())[:MAX_NAME]
    return Channel(platform=place.platform, chat=place.chat, name=name, kind=kind, at=at)


def decode_channel(fact: str, value: bytes) -> Channel | None:
    platform, _, chat = fact.removeprefix(PREFIX).partition(":")
    try:
        found = json.loads(value)
        return Channel(
            platform=platform, chat=chat, name=str(found["name"]), kind=str(found["kind"]), at=float(found["at"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def bare(name: str) -> str:
    """Return a name as it is compared: without its sign, spaces around it, and case."""
    return name.strip().lstrip("#@").strip().casefold()


def named(channels: Iterable[Channel], platform: str, name: str) -> list[Channel]:
    """Return the channels of this name or id."""
    here = [each for each in channels if each.platform == platform]
    return [each for each in here if each.chat == name] or [
        each for each in here if each.name and bare(each.name) == bare(name)
    ]

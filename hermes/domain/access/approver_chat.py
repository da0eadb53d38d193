"""Chats in which the owner and the admins are asked for approval: private chats, else home channels. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from hermes.domain.access import home_channel
from hermes.domain.source import Place

PRIVATE = "chat.private:"  # how the names of facts begin that hold an admin's private chat
HOME = home_channel.PREFIX


def fact_of(platform: str, user: str) -> str:
    return f"{PRIVATE}{platform}:{user}"


def encode(place: Place) -> bytes:
    return json.dumps({"chat": place.chat}).encode()


def is_one(fact: str) -> bool:
    """Return whether a fact of that name holds an approver's chat."""
    return fact.startswith((PRIVATE, HOME))


def places(facts: Mapping[str, bytes], admins: Collection[tuple[str, str]]) -> tuple[Place, ...]:
    """Return the private chats of the current admins; if none is known, the home channels."""
    private = [
        Place(platform=platform, chat=json.loads(raw)["chat"])
        for platform, user in sorted(admins)
        if (raw := facts.get(fact_of(platform, user))) is not None
    ]
    if private:
        return tuple(private)
    names = sorted(name for name in facts if name.startswith(HOME))
    homes = (home_channel.decode(name.removeprefix(HOME), facts[name]) for name in names)
    return tuple(place for place in homes if place is not None)

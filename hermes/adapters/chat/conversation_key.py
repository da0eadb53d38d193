"""Session key of a chat message. Pure.

`agent:main:<platform>:dm:<chat>[:<thread>]`; elsewhere `agent:main:<platform>:<type>:<chat>[:<thread>][:<user>]`.
In a group each person has a separate conversation; the people in a thread share one.
"""

from __future__ import annotations

from hermes.domain.ids import SessionKey
from hermes.ports.chat import Inbound


def is_shared(inbound: Inbound, *, group_sessions_per_user: bool = True) -> bool:
    """Return True if several people can talk in this conversation."""
    return inbound.chat_type != "dm" and (bool(inbound.place.thread) or not group_sessions_per_user)


def conversation_key(inbound: Inbound, *, group_sessions_per_user: bool = True) -> SessionKey:
    place = inbound.place
    parts = ["agent", "main", place.platform, inbound.chat_type, inbound.former_chat or place.chat]
    if place.thread:
        parts.append(place.thread)
    if inbound.chat_type != "dm" and not is_shared(inbound, group_sessions_per_user=group_sessions_per_user):
        parts.append(inbound.user)
    return SessionKey(":".join(parts))

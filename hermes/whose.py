"""Whose a conversation is, and who may learn what was said in it. Pure."""

from __future__ import annotations

from hermes.role import OWNER_SURFACES
from hermes.types import Session


def is_personal(session: Session) -> bool:
    """One person's alone: a private chat, or their part of a group. What several share is not."""
    kind, _, rest = session.key.partition(f"agent:main:{session.platform}:")[2].partition(":")
    shares_a_thread = session.place is not None and bool(session.place.thread)
    return kind == "dm" or (bool(session.owner) and rest.endswith(f":{session.owner}") and not shares_a_thread)


def may_be_told_in(here: Session, other: Session) -> bool:
    """Whether the agent may tell in `here` what was said in `other`.

    The owner of the daemon may know everything, a person what is theirs, and those who share a conversation what was
    said in it: none of them is to learn there what another one said elsewhere.
    """
    if here.platform in OWNER_SURFACES:
        return True
    if other.platform != here.platform:
        return False
    return other.key == here.key or (is_personal(here) and bool(here.owner) and other.owner == here.owner)

"""Ownership of conversations, and who may read them. Pure."""

from __future__ import annotations

from hermes.domain.access.role import OWNER_SURFACES, Role
from hermes.domain.session.state import Session


def is_personal(session: Session) -> bool:
    """One person's alone: a private chat, or their part of a group. What several share is not."""
    kind, _, rest = session.key.partition(f"agent:main:{session.platform}:")[2].partition(":")
    shares_a_thread = session.place is not None and bool(session.place.thread)
    return kind == "dm" or (bool(session.owner) and rest.endswith(f":{session.owner}") and not shares_a_thread)


def may_be_told_in(here: Session, other: Session, role: Role = Role.OWNER, by: str = "") -> bool:
    """Whether the agent may tell in a turn of that role, and of that person, in `here` what was said in `other`.

    The owner of the daemon may know everything, a person what is theirs, and those who share a conversation what was
    said in it: none of them is to learn there what another one said elsewhere.
    """
    if here.platform in OWNER_SURFACES and role is Role.OWNER:
        return True
    if other.platform != here.platform:
        return False
    if other.key == here.key:
        return True
    theirs = role is Role.OWNER or by == f"{here.platform}:{here.owner}"  # else others talk in it, too
    return theirs and is_personal(here) and bool(here.owner) and other.owner == here.owner

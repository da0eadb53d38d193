"""Ownership of conversations, and who may read them. Pure."""

from __future__ import annotations

from hermes.domain.access.role import OWNER_SURFACES, Role
from hermes.domain.session.state import Session


def is_personal(session: Session) -> bool:
    """Return whether the session belongs to one person: a private chat, or that person's session in a group."""
    kind, _, rest = session.key.partition(f"agent:main:{session.platform}:")[2].partition(":")
    shares_a_thread = session.place is not None and bool(session.place.thread)
    return kind == "dm" or (bool(session.owner) and rest.endswith(f":{session.owner}") and not shares_a_thread)


def may_be_told_in(here: Session, other: Session, role: Role = Role.OWNER, by: str = "") -> bool:
    """Return whether a turn in `here`, of that role and person, may show content of `other`.

    The owner of the daemon may read everything, and a person their own sessions. People who share a conversation may
    read that one, and nothing that one of them wrote elsewhere.
    """
    if here.platform in OWNER_SURFACES and role is Role.OWNER:
        return True
    if other.platform != here.platform:
        return False
    if other.key == here.key:
        return True
    theirs = role is Role.OWNER or by == f"{here.platform}:{here.owner}"  # else others talk in it, too
    return theirs and is_personal(here) and bool(here.owner) and other.owner == here.owner

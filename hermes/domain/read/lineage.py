"""Routes from an address to the session that is meant, read from the store. Never runs on the event loop."""

from __future__ import annotations

from hermes.domain.cause.end_cause import goes_on
from hermes.domain.errors import BadRowError
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.read.reader import Reader
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.state import Phase, Session
from hermes.domain.values import dataclass

CLOSED_PHASES = (Phase.ENDED, Phase.SUSPENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of a session: its id or an ancestor's, or a key. Neither means a new session."""

    session: SessionId | None = None
    key: SessionKey | None = None
    exact: bool = False  # that very session, not where its conversation went on


NOWHERE = Address()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    head: Session | None = None  # the end of the stored lineage; None: the address is new
    damaged: tuple[Session, ...] = ()  # rows that had to be rebuilt from the log on the way


def find_route(reader: Reader, address: Address) -> Route:
    session = address.session
    if session is None and address.key is not None:
        session = reader.bound(address.key)
    damaged: list[Session] = []
    head = find_head(reader, session, damaged) if session is not None else None
    while head is not None and not address.exact and head.phase in CLOSED_PHASES and head.successor is not None:
        successor = find_head(reader, head.successor, damaged)
        if successor is None:  # it was deleted
            break
        head = successor
    return Route(head=head, damaged=tuple(damaged))


def find_lineage(reader: Reader, session: Session) -> tuple[SessionId, ...]:
    """Return the sessions from the oldest stored ancestor to this one."""
    lineage = [session.id]
    parent = session.parent
    while parent is not None and parent not in lineage:
        head = find_head(reader, parent)
        if head is None:
            break
        lineage.append(parent)
        parent = head.parent
    return tuple(reversed(lineage))


def find_family(reader: Reader, session: SessionId) -> tuple[SessionId, ...]:
    """This conversation: the session, and those that it continues or that continue it, as far as they are there.

    A branch is a conversation of its own, and so is a session that began after this one ended.
    """
    family: list[SessionId] = []
    unseen = [session]
    while unseen:
        head = find_head(reader, unseen.pop())
        if head is None or head.id in family:
            continue
        family.append(head.id)
        if head.successor is not None and goes_on(head):
            unseen.append(head.successor)
        parent = find_head(reader, head.parent) if head.parent is not None else None
        if parent is not None and goes_on(parent):
            unseen.append(parent.id)
    return tuple(family)


def find_head(reader: Reader, session: SessionId, damaged: list[Session] | None = None) -> Session | None:
    """Return the session. Appends to `damaged` a row that had to be rebuilt from the log."""
    try:
        return reader.head(session)
    except BadRowError:
        rebuilt = replay(session, reader.salvage(session))
        if rebuilt is not None and damaged is not None:
            damaged.append(rebuilt)
        return rebuilt

"""Views of sessions, messages, turns and actors, as services return them."""

from __future__ import annotations

from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.records import Record
from hermes.domain.session.state import Session
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    session: Session
    why: str
    lineage: tuple[SessionId, ...]  # oldest ancestor first, this session last
    live: bool  # an actor holds it in memory
    mailbox: int = 0
    reset: str = ""  # when it will be reset, and what keeps it from that


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    seq: Seq
    at: float
    turn: TurnId
    message: EncodedMessage
    note: bool = False  # Hermes wrote it; the model reads it as a user message
    by: str = ""  # author: name, platform and user, role; empty: not a person, or stored before there were roles
    answered: str = ""  # of a tool's result: the answer to its question, and the person who gave it


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    session: SessionId
    seq: Seq
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A record of any session, with its position in the order in which all records were written."""

    position: int
    session: SessionId
    seq: Seq
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPage:
    entries: list[JournalEntry]
    position: int  # up to which the journal was read


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorView:
    kind: str
    name: str
    state: str  # "running", "stopping", "parked"; of a session its phase
    mailbox: int
    oldest_s: float  # age of the oldest waiting message
    handled: int
    slowest_s: float
    age_s: float
    last_error: str = ""

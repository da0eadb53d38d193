"""What can happen to a session, what it can ask for in return, and the step that joins the two."""

from __future__ import annotations

from typing import TypeAlias

from hermes.errors import RefusedError
from hermes.events import Event as LiveEvent
from hermes.records import Record
from hermes.types import EncodedMessage, Failure, InboundKey, Seen, Session, Source, Turn, TurnId, Usage
from hermes.values import dataclass

# ---------------------------------------------------------------- what can happen to a session


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    source: Source
    options: bytes = b"{}"
    inbound: InboundKey | None = None
    fingerprint: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSucceeded:
    turn: TurnId
    attempt: int
    text: str
    model: str
    finish_reason: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnErrored:
    turn: TurnId
    attempt: int
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTurn:
    """End a turn at someone's wish: the running one, or the named one, which may still be waiting."""

    reason: str
    turn: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStop:
    """The daemon is about to stop."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """The session is back in memory, and work that was open when it left is still open."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    reason: str


Event: TypeAlias = Deliver | TurnSucceeded | TurnErrored | StopTurn | AnnounceStop | Recover | Suspend | Resume | End


# ---------------------------------------------------------------- what it can ask for


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """The message is durable: tell its sender. `position` is how many turns go first."""

    turn: TurnId
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    error: RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Reroute:
    """This session takes no more messages: the conversation goes on elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTurn:
    turn: Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTurn:
    """Stop the work of the turn in flight, if there is any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    event: LiveEvent


Effect: TypeAlias = Accept | Refuse | Reroute | BeginTurn | CancelTurn | Publish


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    session: Session
    records: tuple[Record, ...] = ()
    effects: tuple[Effect, ...] = ()
    seen: Seen | None = None

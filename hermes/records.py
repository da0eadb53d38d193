"""What the journal can hold. A session's state and its transcript are both folds over these.

A record is never changed once written. New fields get defaults; a field never changes its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hermes.types import EncodedMessage, Failure, SessionId, SessionKey, Source, TurnId, Usage
from hermes.values import dataclass

if TYPE_CHECKING:
    from hermes.types import Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    at: float
    key: SessionKey
    source: Source
    reason: str
    parent: SessionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived:
    """What a person said, with whatever history came along. The last message is the new one."""

    at: float
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    source: Source
    options: bytes = b"{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """From here on the turn's messages are part of the transcript."""

    at: float
    turn: TurnId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    at: float
    turn: TurnId
    message: EncodedMessage
    model: str
    finish_reason: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    at: float
    turn: TurnId
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInterrupted:
    """The turn was cut off by something that was not its fault; it is to be continued."""

    at: float
    turn: TurnId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedResumePending:
    """A stop was announced while a turn ran: if it does not finish in time, it continues after the start."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The conversation went on in another session."""

    at: float
    successor: SessionId
    reason: str


Record: TypeAlias = (
    SessionStarted
    | MessageReceived
    | TurnStarted
    | TurnFinished
    | TurnFailed
    | TurnInterrupted
    | MarkedResumePending
    | Suspended
    | Resumed
    | Ended
    | Continued
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that failed its checksum or cannot be read. It was set aside; its session goes on."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    seq: Seq
    record: Record | BadRecord

"""The nouns: ids, phases and the values that sessions, the journal and the adapters share.

Everything here is immutable. Times are seconds since the epoch, UTC; durations carry `_s` in their name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

from hermes.values import dataclass

SessionId = NewType("SessionId", str)
SessionKey = NewType("SessionKey", str)
TurnId = NewType("TurnId", str)
InboundKey = NewType("InboundKey", str)  # "<platform>:<the platform's own id of an update>"
Epoch = NewType("Epoch", int)  # grows by one with each daemon that owns the store
Seq = NewType("Seq", int)  # position of a record in its session's log, from 0
EncodedMessage = NewType("EncodedMessage", bytes)  # one chat message as UTF-8 JSON, encoded once


class Phase(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    RESUME_PENDING = "resume_pending"
    SUSPENDED = "suspended"
    ENDED = "ended"


class FailureKind(StrEnum):
    """Why a turn has no answer."""

    AUTH = "auth"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    MALFORMED_REPLY = "malformed_reply"
    POLICY = "policy"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"  # not ended: it goes on when its session is resumed
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a message came from."""

    platform: str
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An accepted message and the work it asks for. Its text is in the log, not here."""

    id: TurnId
    accepted_at: float
    attempt: int = 0  # how often it was started
    options: bytes = b"{}"  # model options of this turn, as a JSON object


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """All there is to know about a session but its transcript. It is a fold over the session's records."""

    id: SessionId
    key: SessionKey
    phase: Phase
    reason: str  # of the phase, in plain words
    since: float  # of the phase
    created_at: float
    active_at: float  # the last time a person wrote
    next_seq: Seq
    platform: str
    parent: SessionId | None = None
    successor: SessionId | None = None  # where the conversation went on
    turn: Turn | None = None  # in flight, or to be continued
    queue: tuple[Turn, ...] = ()  # accepted, waiting
    resume_reason: str = ""  # not empty: a stop was announced while the turn ran
    interruptions: int = 0  # since the last finished turn
    messages: int = 0
    turns: int = 0
    usage: Usage = Usage()
    last_failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The memory of an accepted inbound id: the same id again is the same turn, also after a crash."""

    key: InboundKey
    session: SessionId
    turn: TurnId
    fingerprint: bytes  # of the request's content; another content under the same id is a client's mistake
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that crashed its session twice. Kept whole, so that it can be replayed."""

    id: str
    session: SessionId
    turn: TurnId
    messages: tuple[EncodedMessage, ...]
    source: Source
    options: bytes
    problem: str
    at: float

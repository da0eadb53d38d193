"""Write operations: everything that one transaction of the store can contain. Pure values."""

from __future__ import annotations

from typing import TypeAlias

from hermes.domain.change import Change
from hermes.domain.ids import Epoch, Seq, SessionId, SessionKey, TurnId
from hermes.domain.job.job import Job, JobRun
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import Record
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add records to one session. Refused whole when the session has moved on or has a newer owner."""

    session: SessionId
    expected_seq: Seq  # what the first of the records gets; 0 starts the session
    epoch: Epoch
    records: tuple[Record, ...]
    head: Session  # the session after these records
    pending: bool  # start-up must recover the session
    bind: SessionKey | None = None  # from now on this key means this session
    seen: Seen | None = None  # refused with AlreadySeenError if its key was seen before
    due: float | None = None  # next time to check the session for a reset; None: never


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Rewrite a damaged row of a session, rebuilt from its log."""

    head: Session
    epoch: Epoch
    pending: bool
    due: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDue:
    """Change the time of the next reset check. Refused if the session has newer records."""

    session: SessionId
    expected_seq: Seq  # what its next record would get
    due: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase:
    """Forget a session: log, row, keys that mean it, its place in every index. Refused if it has moved on since."""

    session: SessionId
    expected_seq: Seq | None = None  # what its next record would get; None: wherever it is


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    letter: DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDeadLetter:
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSeen:
    """Forget inbound ids older than `before`, looking at no more than `limit` of them from where it last stopped."""

    before: float
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Add to what was used on a day, by a model, on a platform."""

    day: str  # YYYY-MM-DD, UTC
    model: str
    platform: str
    usage: Usage
    turns: int = 0
    guest: str = ""  # who used it, if that was a guest: platform and user


@dataclass(frozen=True, slots=True, kw_only=True)
class PutFact:
    """Remember something small under a name; None forgets it."""

    name: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutProcess:
    record: ProcessRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProcess:
    """Remove a process, if it exists."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """Add a message to the outbox. A message with that id keeps its delivery state, and its text unless this one is
    final.
    """

    outgoing: OutboxMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDelivery:
    """Progress of a delivery. Ignored if the outbox message does not exist any more."""

    id: str
    sent: tuple[str, ...] = ()
    sending: bool = False
    tries: int = 0
    problem: str = ""
    repeated: tuple[int, ...] = ()
    superseded: tuple[str, ...] = ()
    refusals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkDelivered:
    """Mark an outbox message as delivered: the platform has confirmed all of it."""

    sent: DeliveredMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Remove an outbox message, if it exists."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class See:
    """Take note of an inbound id without a message. Refused with AlreadySeenError if it was seen before.

    `latest`: replaces the earlier note instead.
    """

    seen: Seen
    latest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendChange:
    """Add a change to the log of its subject. Refused with SequenceConflictError unless its number is the next one.

    Refused with ChangeKnownError if the log has a change with that operation id: the whole transaction is a repeat.
    """

    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseChanges:
    """Forget all changes of a subject."""

    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutJob:
    """Store a job. Refused with SequenceConflictError unless the stored one has the version before.

    Version 1 is that of a new job. Refused with UnknownJobError if it should exist and does not.
    """

    job: Job
    due: float | None  # when the scheduler must look at it; None: never


@dataclass(frozen=True, slots=True, kw_only=True)
class DropJob:
    """Delete a job with its runs, if it exists."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutJobRun:
    """Store a run of a job. Older runs than the last `keep` are deleted."""

    run: JobRun
    keep: int


Operation: TypeAlias = (
    Append
    | Restore
    | SetDue
    | Erase
    | SetAside
    | DropDeadLetter
    | ForgetSeen
    | Tally
    | PutFact
    | PutProcess
    | DropProcess
    | Enqueue
    | RecordDelivery
    | MarkDelivered
    | Cancel
    | See
    | AppendChange
    | EraseChanges
    | PutJob
    | DropJob
    | PutJobRun
)


def set_aside(outgoing: OutboxMessage, problem: str, at: float) -> tuple[Operation, ...]:
    """Return what makes an outbox message a dead letter, whole, so that it can be replayed."""
    letter = DeadLetter(
        id=outgoing.id,
        session=outgoing.session or SessionId(""),
        turn=outgoing.turn or TurnId(""),
        messages=(),
        source=Source(platform=outgoing.place.platform, place=outgoing.place),
        options=b"{}",
        problem=problem,
        at=at,
        undelivered=outgoing,
    )
    return (SetAside(letter=letter), Cancel(id=outgoing.id))

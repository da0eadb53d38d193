"""Reader: the port through which the read side sees the store."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from hermes.domain.change import Change
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey
from hermes.domain.job.job import Job, JobRun
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import LogEntry, Record
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Seen
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    engine: str
    path: str
    sessions: int
    records: int
    pending: int
    dead_letters: int
    bad_records: int
    outbox: int  # messages that are not delivered yet
    size_bytes: int  # on disk
    used_bytes: int  # by live pages
    map_bytes: int
    free_disk_bytes: int
    readers: int
    commits: int  # since this process opened it
    transactions: int
    last_commit_s: float
    commits_took_s: float = 0.0  # all of them together


Activity: TypeAlias = tuple[float, SessionId]  # last activity, and the session: a place in the list of sessions
Due: TypeAlias = tuple[float, SessionId]  # next reset check, and the session


class Reader(Protocol):
    """Reads of the store. Blocking and thread-safe; each call is a short read. Never called on the event loop."""

    def head(self, session: SessionId) -> Session | None: ...  # raises BadRowError
    def bound(self, key: SessionKey) -> SessionId | None: ...
    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]: ...
    def salvage(self, session: SessionId) -> list[LogEntry]: ...  # by reading the whole log
    def seen(self, key: InboundKey) -> Seen | None: ...
    def pending(self) -> list[SessionId]: ...
    def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        """Sessions, last active first, after the current place of a session or after a given place."""

    def due(self, before: float, limit: int, after: Due | None = None) -> list[Due]: ...  # the earliest first
    def due_at(self, session: SessionId) -> float | None: ...  # raises BadRowError
    def dead_letters(self) -> list[DeadLetter]: ...
    def tallies(self, first_day: str) -> list[Tally]: ...  # of that day and later, oldest first
    def fact(self, name: str) -> bytes | None: ...
    def facts(self, prefix: str) -> list[str]: ...  # the names that begin so
    def processes(self) -> list[ProcessRecord]: ...  # by id; a damaged one is left out
    def outbox(self) -> list[OutboxMessage]: ...  # in the order they were made; a damaged one is left out
    def outgoing(self, outgoing: str) -> OutboxMessage | None: ...
    def sent(self, outgoing: str) -> DeliveredMessage | None: ...
    def sent_with(
        self, message: str
    ) -> list[DeliveredMessage]: ...  # content of the message with that id, in any chat
    def tail(self, after: int, limit: int) -> list[tuple[int, SessionId, Seq, Record]]:
        """All sessions' records in the order they were written, after that position."""

    def changes(self, subject: str, after: int = 0, limit: int | None = None) -> list[Change]:
        """Changes of something learned, oldest first, after that number. A damaged one has the action DAMAGED."""

    def last_change(self, subject: str) -> Change | None: ...
    def change_of(self, subject: str, operation: str) -> Change | None: ...  # the change with that operation id
    def change_subjects(self, prefix: str) -> list[str]: ...  # those that have changes and begin so, in order
    def job(self, job: str) -> Job | None: ...
    def jobs(self, limit: int, after: str = "") -> list[Job]: ...  # by id; a damaged one is left out
    def job_count(self) -> int: ...
    def jobs_due(self, before: float, limit: int) -> list[Job]: ...  # the earliest first
    def next_job_due(self) -> float | None: ...
    def job_run(self, job: str, number: int) -> JobRun | None: ...
    def job_runs(self, job: str, limit: int, before: int | None = None) -> list[JobRun]: ...  # the last first
    def stats(self) -> StoreStats: ...

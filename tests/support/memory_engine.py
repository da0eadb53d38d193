"""In-memory engine: the store without a disk, for tests.

It shares the rules for what can be stored (ids, values) with the one on disk and nothing else, so that the contract
suite compares two independent answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

from hermes.domain.change import Change
from hermes.domain.errors import (
    AlreadySeenError,
    ChangeKnownError,
    HermesError,
    SequenceConflictError,
    StaleOwnerError,
    StorageError,
    UnknownJobError,
    UnknownSessionError,
)
from hermes.domain.ids import Epoch, InboundKey, Seq, SessionId, SessionKey
from hermes.domain.job.job import Job, JobRun
from hermes.domain.operations import (
    Append,
    AppendChange,
    Cancel,
    DropDeadLetter,
    DropJob,
    DropProcess,
    Enqueue,
    Erase,
    EraseChanges,
    ForgetSeen,
    MarkDelivered,
    Operation,
    PutFact,
    PutJob,
    PutJobRun,
    PutProcess,
    RecordDelivery,
    Restore,
    See,
    SetAside,
    SetDue,
    Tally,
)
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.read.reader import Activity, Due, StoreStats
from hermes.domain.records import LogEntry, Record
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Seen
from hermes.domain.values import dataclass
from hermes.ports.storage import Engine, Transaction
from hermes.storage.codec import UNSTORABLE, pack
from hermes.storage.row_keys import due_key, due_of, recent_key, session_key, subject_key, text_key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    head: Session
    epoch: Epoch
    pending: bool
    due: float | None


_NOTED = ("sent", "sending", "tries", "problem", "repeated", "superseded", "refusals")  # of a delivery


class MemoryEngine(Engine):
    def __init__(self, epoch: Epoch = Epoch(1)) -> None:  # noqa: B008 - a NewType
        self._epoch = epoch
        self._lock = threading.Lock()
        self._rows: dict[SessionId, _Row] = {}
        self._log: dict[tuple[SessionId, int], Record] = {}
        self._keys: dict[SessionKey, SessionId] = {}
        self._inbox: dict[InboundKey, Seen] = {}
        self._dead: dict[str, DeadLetter] = {}
        self._tallies: dict[tuple[str, str, str, str], Tally] = {}
        self._facts: dict[str, bytes] = {}
        self._processes: dict[str, ProcessRecord] = {}
        self._outbox: dict[str, OutboxMessage] = {}
        self._sent: dict[str, DeliveredMessage] = {}
        self._changes: dict[tuple[str, int], Change] = {}
        self._jobs: dict[str, tuple[Job, float | None]] = {}
        self._job_runs: dict[tuple[str, int], JobRun] = {}
        self._enqueued = 0
        self._order: dict[int, tuple[SessionId, int]] = {}
        self._position = 0
        self._undo: list[Callable[[], object]] = []  # what takes back the transaction at hand
        self._commits = self._transactions = 0
        self._forget_from = 0

    @property
    def epoch(self) -> Epoch:
        return self._epoch

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        with self._lock:
            self._commits += 1
            self._transactions += len(batch)
            return [self._attempt(transaction) for transaction in batch]

    def backup(self, target: Path) -> None:
        raise StorageError(f"nothing to copy to {target}: this store is in memory only")

    def close(self) -> None:
        """Nothing to let go of."""

    # ------------------------------------------------------------ reading

    def head(self, session: SessionId) -> Session | None:
        with self._lock:
            row = self._rows.get(session)
        return row.head if row else None

    def bound(self, key: SessionKey) -> SessionId | None:
        with self._lock:
            return self._keys.get(key)

    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]:
        with self._lock:
            row = self._rows.get(session)
            stop = row.head.next_seq if row else 0
            wanted = range(first, stop if limit is None else min(stop, first + limit))
            return [LogEntry(seq=Seq(seq), record=self._log[session, seq]) for seq in wanted]

    def salvage(self, session: SessionId) -> list[LogEntry]:
        return self.log(session)

    def seen(self, key: InboundKey) -> Seen | None:
        with self._lock:
            return self._inbox.get(key)

    def pending(self) -> list[SessionId]:
        with self._lock:
            return sorted(session for session, row in self._rows.items() if row.pending)

    def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        with self._lock:
            heads = sorted((row.head for row in self._rows.values()), key=_activity)
            if isinstance(after, tuple):
                place = recent_key(session_key(after[1]), after[0])
            elif after is not None and after not in self._rows:
                raise UnknownSessionError(f"there is no session {after} (any more)")
            else:
                place = _activity(self._rows[after].head) if after is not None else b""
        return [head for head in heads if _activity(head) > place][:limit]

    def due(self, before: float, limit: int, after: Due | None = None) -> list[Due]:
        with self._lock:
            places = sorted((row.due, name) for name, row in self._rows.items() if row.due is not None)
        return [place for place in places if place[0] <= before and (after is None or place > after)][:limit]

    def due_at(self, session: SessionId) -> float | None:
        with self._lock:
            row = self._rows.get(session)
        return row.due if row else None

    def dead_letters(self) -> list[DeadLetter]:
        with self._lock:
            return [self._dead[name] for name in sorted(self._dead)]

    def tallies(self, first_day: str) -> list[Tally]:
        with self._lock:
            return [self._tallies[key] for key in sorted(self._tallies) if key[0] >= first_day]

    def fact(self, name: str) -> bytes | None:
        with self._lock:
            return self._facts.get(name)

    def facts(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(name for name in self._facts if name.startswith(prefix))

    def processes(self) -> list[ProcessRecord]:
        with self._lock:
            return [self._processes[name] for name in sorted(self._processes)]

    def outbox(self) -> list[OutboxMessage]:
        with self._lock:
            return sorted(self._outbox.values(), key=lambda each: each.order)

    def outgoing(self, outgoing: str) -> OutboxMessage | None:
        with self._lock:
            return self._outbox.get(outgoing)

    def sent(self, outgoing: str) -> DeliveredMessage | None:
        with self._lock:
            return self._sent.get(outgoing)

    def sent_with(self, message: str) -> list[DeliveredMessage]:
        with self._lock:
            found = [sent for sent in self._sent.values() if message in sent.messages]
        return sorted(found, key=lambda sent: sent.sent_at)

    def tail(self, after: int, limit: int) -> list[tuple[int, SessionId, Seq, Record]]:
        with self._lock:
            places = [(n, *place) for n, place in sorted(self._order.items()) if n > after and place in self._log]
            return [(n, session, Seq(seq), self._log[session, seq]) for n, session, seq in places[:limit]]

    def last_position(self) -> int:
        return self._position

    def changes(self, subject: str, after: int = 0, limit: int | None = None) -> list[Change]:
        with self._lock:
            found = [self._changes[key] for key in sorted(self._changes) if key[0] == subject and key[1] > after]
        return found if limit is None else found[:limit]

    def last_change(self, subject: str) -> Change | None:
        return next(reversed(self.changes(subject)), None)

    def change_of(self, subject: str, operation: str) -> Change | None:
        return next((each for each in self.changes(subject) if each.operation == operation), None)

    def change_subjects(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted({subject for subject, _ in self._changes if subject.startswith(prefix)})

    def job(self, job: str) -> Job | None:
        with self._lock:
            found = self._jobs.get(job)
        return found and found[0]

    def jobs(self, limit: int, after: str = "") -> list[Job]:
        with self._lock:
            return [self._jobs[name][0] for name in sorted(self._jobs) if name > after][:limit]

    def job_count(self) -> int:
        return len(self._jobs)

    def _dues(self) -> list[tuple[float, str]]:
        with self._lock:
            return sorted((due, name) for name, (_, due) in self._jobs.items() if due is not None)

    def jobs_due(self, before: float, limit: int) -> list[Job]:
        return [self._jobs[name][0] for due, name in self._dues() if due <= before][:limit]

    def next_job_due(self) -> float | None:
        return next((due for due, _ in self._dues()), None)

    def job_run(self, job: str, number: int) -> JobRun | None:
        with self._lock:
            return self._job_runs.get((job, number))

    def job_runs(self, job: str, limit: int, before: int | None = None) -> list[JobRun]:
        with self._lock:
            found = [self._job_runs[key] for key in sorted(self._job_runs, reverse=True) if key[0] == job]
        return [run for run in found if before is None or run.number < before][:limit]

    def stats(self) -> StoreStats:
        pending = len(self.pending())
        return StoreStats(
            engine="memory",
            path="",
            sessions=len(self._rows),
            records=len(self._log),
            pending=pending,
            dead_letters=len(self._dead),
            bad_records=0,
            outbox=len(self._outbox),
            size_bytes=0,
            used_bytes=0,
            map_bytes=0,
            free_disk_bytes=0,
            readers=0,
            commits=self._commits,
            transactions=self._transactions,
            last_commit_s=0.0,
        )

    # ------------------------------------------------------------ writing

    def _attempt(self, transaction: Transaction) -> HermesError | None:
        refusal: HermesError | None = None
        try:
            for operation in transaction:
                self._perform(operation)
        except HermesError as error:
            refusal = error
        except UNSTORABLE as error:
            refusal = StorageError(f"the transaction holds something that cannot be stored ({type(error).__name__})")
        while self._undo:
            take_back = self._undo.pop()
            if refusal:
                take_back()
        return refusal

    def _perform(self, operation: Operation) -> None:
        match operation:
            case Append():
                self._append(operation)
            case Restore():
                self._restore(operation)
            case SetDue():
                self._set_due(operation)
            case Erase():
                self._erase(operation)
            case SetAside() | DropDeadLetter():
                self._set_aside(operation)
            case ForgetSeen():
                self._forget(operation)
            case Tally():
                self._count(operation)
            case PutFact() | PutProcess() | DropProcess():
                self._keep(operation)
            case See(seen=seen, latest=latest):
                self._see(seen, latest=latest)
            case Enqueue() | RecordDelivery() | MarkDelivered() | Cancel():
                self._deliver(operation)
            case AppendChange() | EraseChanges():
                self._learn(operation)
            case _:
                self._put_job(operation)

    def _put_job(self, operation: PutJob | DropJob | PutJobRun) -> None:
        match operation:
            case PutJob(job=job, due=due):
                before = self._jobs.get(job.id)
                if before is None and job.version > 1:
                    raise UnknownJobError(f"there is no job {job.id}")
                if job.version != (before[0].version if before else 0) + 1:
                    raise SequenceConflictError(f"job {job.id} has moved on")
                pack((subject_key(job.id), job))
                self._set(self._jobs, job.id, (job, _as_stored(due)))
            case DropJob(id=name):
                if name in self._jobs:
                    self._remove(self._jobs, name)
                    for key in [key for key in self._job_runs if key[0] == name]:
                        self._remove(self._job_runs, key)
            case PutJobRun(run=run, keep=keep):
                pack((subject_key(run.job), run))
                self._set(self._job_runs, (run.job, run.number), run)
                for key in [key for key in self._job_runs if key[0] == run.job and key[1] <= run.number - keep]:
                    self._remove(self._job_runs, key)
            case _:
                assert_never(operation)

    def _set_aside(self, operation: SetAside | DropDeadLetter) -> None:
        if isinstance(operation, SetAside):
            pack((text_key(operation.letter.id), operation.letter))
            self._set(self._dead, operation.letter.id, operation.letter)
        else:
            self._drop(operation.id)

    def _keep(self, operation: PutFact | PutProcess | DropProcess) -> None:
        match operation:
            case PutFact(name=name, value=bytes(value)):
                self._set(self._facts, name, value)
            case PutFact(name=name):
                self._discard(self._facts, name)
            case PutProcess(record=record):
                pack((text_key(record.id), record))
                self._set(self._processes, record.id, record)
            case DropProcess(id=name):
                self._discard(self._processes, name)

    def _deliver(self, operation: Enqueue | RecordDelivery | MarkDelivered | Cancel) -> None:
        match operation:
            case Enqueue(outgoing=outgoing):
                pack((text_key(outgoing.id), outgoing))
                self._enqueued += 1
                known = self._outbox.get(outgoing.id)
                how: dict[str, Any] = {"order": self._enqueued}
                if known is not None:
                    how = {
                        "order": known.order,
                        "sent": known.sent,
                        "sending": known.sending,
                        "repeated": known.repeated,
                        "superseded": known.superseded,
                    }
                if known is None or outgoing.final:
                    self._set(self._outbox, outgoing.id, replace(outgoing, **how))
            case RecordDelivery(id=name) if name in self._outbox:
                how = {name: getattr(operation, name) for name in _NOTED}
                noted = replace(self._outbox[operation.id], **how)
                self._set(self._outbox, name, noted)
            case MarkDelivered(sent=sent):
                pack((text_key(sent.id), sent))
                self._discard(self._outbox, sent.id)
                self._set(self._sent, sent.id, sent)
            case Cancel(id=name):
                self._discard(self._outbox, name)

    def _append(self, append: Append) -> None:
        row = self._rows.get(append.session)
        if row is None and append.expected_seq:
            raise UnknownSessionError(f"there is no session {append.session} (any more)")
        if row and append.epoch < row.epoch:
            raise StaleOwnerError(f"session {append.session} belongs to epoch {row.epoch}, not {append.epoch}")
        if append.expected_seq != (row.head.next_seq if row else 0):
            raise SequenceConflictError(f"session {append.session} is not at {append.expected_seq}")
        if append.head.id != append.session or append.head.next_seq != append.expected_seq + len(append.records):
            raise StorageError(f"the head of session {append.session} does not fit its records")
        if append.seen:
            self._see(append.seen)
        if append.bind is not None:
            pack(text_key(append.bind))
            self._set(self._keys, append.bind, append.session)
        for seq, record in enumerate(append.records, append.expected_seq):
            pack((seq, record))
            self._set(self._log, (append.session, seq), record)
            self._position += 1
            self._set(self._order, self._position, (append.session, seq))
        self._put_row(append)

    def _learn(self, operation: AppendChange | EraseChanges) -> None:
        if isinstance(operation, EraseChanges):
            subject_key(operation.subject)
            for key in [key for key in self._changes if key[0] == operation.subject]:
                self._remove(self._changes, key)
            return
        change = operation.change
        subject_key(change.subject)
        pack((text_key(change.operation), change))
        numbers = {each.operation: number for (name, number), each in self._changes.items() if name == change.subject}
        if change.operation in numbers:
            raise ChangeKnownError(change.subject, numbers[change.operation])
        if change.number != len(numbers) + 1:
            raise SequenceConflictError(f"{change.subject} is not at {change.number}")
        if not change.operation:
            raise StorageError("no operation id")
        self._set(self._changes, (change.subject, change.number), change)

    def _see(self, seen: Seen, *, latest: bool = False) -> None:
        if not latest and (earlier := self._inbox.get(seen.key)):
            raise AlreadySeenError(earlier)
        pack((text_key(seen.key), seen))
        self._set(self._inbox, seen.key, seen)

    def _restore(self, restore: Restore) -> None:
        head = restore.head
        row = self._rows.get(head.id)
        if row is None:
            raise UnknownSessionError(f"there is no record of a session {head.id}")
        if restore.epoch < row.epoch:
            raise StaleOwnerError(f"session {head.id} belongs to epoch {row.epoch}, not {restore.epoch}")
        if head.next_seq != row.head.next_seq:
            raise SequenceConflictError(f"session {head.id} is not at {head.next_seq}")
        self._put_row(restore)

    def _set_due(self, wish: SetDue) -> None:
        row = self._rows.get(wish.session)
        if row is None:
            raise UnknownSessionError(f"there is no session {wish.session} (any more)")
        if wish.expected_seq != row.head.next_seq:
            raise SequenceConflictError(f"session {wish.session} is not at {wish.expected_seq}")
        self._set(self._rows, wish.session, replace(row, due=_as_stored(wish.due)))

    def _put_row(self, write: Append | Restore) -> None:
        head = write.head
        pack((_activity(head), head, write.epoch))
        row = _Row(head=head, epoch=write.epoch, pending=write.pending, due=_as_stored(write.due))
        self._set(self._rows, head.id, row)

    def _erase(self, erase: Erase) -> None:
        session = erase.session
        if session not in self._rows:
            raise UnknownSessionError(f"there is no session {session} (any more)")
        next_seq = self._rows[session].head.next_seq
        if erase.expected_seq not in (None, next_seq):
            raise SequenceConflictError(f"session {session} is not at {erase.expected_seq}")
        for seq in range(next_seq):
            self._remove(self._log, (session, seq))
        for key in [key for key, meant in self._keys.items() if meant == session]:
            self._remove(self._keys, key)
        self._remove(self._rows, session)
        for table in (self._outbox, self._sent):
            for name in [name for name, each in table.items() if each.session == session]:
                self._remove(table, name)

    def _drop(self, letter: str) -> None:
        if letter not in self._dead:
            raise StorageError(f"there is no dead letter {letter} (any more)")
        self._remove(self._dead, letter)

    def _count(self, tally: Tally) -> None:
        key = (tally.day, tally.model, tally.platform, tally.guest)
        if earlier := self._tallies.get(key):
            tally = replace(tally, usage=earlier.usage + tally.usage, turns=earlier.turns + tally.turns)
        self._set(self._tallies, key, tally)

    def _forget(self, forget: ForgetSeen) -> None:
        for name in [name for name, each in self._sent.items() if each.at < forget.before]:
            self._remove(self._sent, name)
        keys = sorted(self._inbox)[self._forget_from : self._forget_from + forget.limit]
        old = [key for key in keys if self._inbox[key].at < forget.before]
        for key in old:
            self._remove(self._inbox, key)
        self._forget_from = self._forget_from + len(keys) - len(old) if len(keys) == forget.limit else 0

    def _set(self, table: MutableMapping[Any, Any], key: Hashable, value: object) -> None:
        if key in table:
            before = table[key]
            self._undo.append(lambda: table.__setitem__(key, before))
        else:
            self._undo.append(lambda: table.pop(key))
        table[key] = value

    def _discard(self, table: MutableMapping[Any, Any], key: Hashable) -> None:
        if key in table:
            self._remove(table, key)

    def _remove(self, table: MutableMapping[Any, Any], key: Hashable) -> None:
        before = table.pop(key)
        self._undo.append(lambda: table.__setitem__(key, before))


def _as_stored(due: float | None) -> float | None:
    return None if due is None else due_of(due_key(b"", due))


def _activity(head: Session) -> bytes:
    """Sorts the session that was active last first."""
    return recent_key(session_key(head.id), head.active_at)

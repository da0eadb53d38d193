"""Process actor: finds one background process, sends its heartbeats, records its end and notifies its conversation.

The process runs under its shim and does not depend on this actor: after a crash or a restart, another actor finds it.
A process descriptor of the kernel signals the end immediately; without one, the next sample shows it. The end is
on disk before it is published. Then the conversation is notified, if it asked for that. The notice has a fixed
inbound id, so it arrives exactly once, and it waits for the end of a running turn.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

from loguru import logger

from hermes.actors.kernel.journaled import JournaledActor, WriteState
from hermes.actors.kernel.ref import ActorDeadError
from hermes.actors.process.process_notice import (
    DELETED,
    end_notice,
    late_notice,
    notice_submission,
    watch_notice,
)
from hermes.actors.process.process_services import Announcement, ProcessServices
from hermes.domain.errors import HermesError, SessionClosedError, UnknownSessionError
from hermes.domain.events import ProcessEnded
from hermes.domain.operations import PutProcess
from hermes.domain.process.process import Chunk, Handle, Lost, ProcessEnd, ProcessSample
from hermes.domain.process.process_record import Heartbeat, ProcessRecord
from hermes.domain.process.process_state import ProcessRow, ended, lost, with_handle, with_heartbeat, with_record
from hermes.domain.process.staleness import how_ended
from hermes.domain.values import dataclass, replace
from hermes.ports.processes import ProcessHost
from hermes.processes.watch import WatchNotice, WatchPatterns, watch_end, watch_output
from hermes.system.random_id import new_marker

T = TypeVar("T")
RETRY_S = 5.0  # pause after a refusal by the store or the session; doubles each time
MAX_RETRY_S = 60.0
SAVE_EVERY_S = 60.0  # minimum pause between two writes of the last activity
TAIL_BYTES = 2000
_WATCHED_AT_ONCE = 1 << 20  # bytes of output scanned in one read


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    sample: ProcessSample
    ports: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """End the process and send no more notices: its conversation is being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchDone:
    found: Handle | Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndDescriptor:
    descriptor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndSignalled:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutputRead:
    """Output to scan; `end`: it is the last of a process that has ended."""

    chunk: Chunk
    end: ProcessEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreRecord:
    """Store the record, then send the watch notice, so that a crash repeats no notice."""

    record: ProcessRecord
    notice: WatchNotice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _StartNotice:
    """Send the notice of the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TailRead:
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoticeSent:
    error: HermesError | None


class ProcessActor(JournaledActor[_StoreRecord, ProcessRecord]):
    kind = "process"

    def __init__(self, services: ProcessServices, process: str) -> None:
        super().__init__(services.journal)
        self._services = services
        self._id = process
        row = services.board[process]
        self._watch = WatchPatterns(patterns=row.record.watch, terminal=row.record.pty)
        self._reading = False  # a read of its output is on its way
        self._reached = row.record.watched_bytes  # output scanned so far; the record follows
        self._ending: ProcessEnd | Lost | None = None
        self._silenced = False
        self._retry_s = RETRY_S
        self._descriptor: int | None = None
        self._stored_active_at = row.record.active_at

    @property
    def _row(self) -> ProcessRow:
        return self._services.board[self._id]

    def on_start(self) -> None:
        row = self._row
        if not row.runs:
            self._notify_or_stop()
        elif row.handle is None:
            self._in_thread(lambda: self._services.host.find(self._id), lambda found: _SearchDone(found=found))
        else:
            self._await_end(row.handle)

    def handle(self, message: object) -> None:
        match message:
            case Sampled():
                self._on_sample(message)
            case _EndSignalled():
                self._request_sample()
            case _SearchDone(found=Handle() as handle):
                self._services.board.put(with_handle(self._row, handle))
                logger.info("process {} was found again: pid {}", self._id, handle.pid)
                self._await_end(handle)
                self._kill_if_silenced()
            case _SearchDone(found=Lost() as found):
                self._on_end_detected(found)
            case _EndDescriptor():
                self._on_descriptor(message.descriptor)
            case _OutputRead():
                self._scan_output(message)
            case _StoreRecord():
                self.persist(message, message.record, (PutProcess(record=message.record),))
            case Silence():
                self._silence()
            case _StartNotice() | _TailRead() | _NoticeSent():
                self._notify_conversation(message)
            case Exception():
                raise message
            case _:
                super().handle(message)

    # ------------------------------------------------------------ alive

    def _await_end(self, handle: Handle) -> None:
        self._in_thread(
            lambda: self._services.host.end_fd(handle),
            lambda descriptor: _EndDescriptor(descriptor=descriptor),
            unheard=lambda descriptor: None if descriptor is None else os.close(descriptor),
        )

    def _on_descriptor(self, descriptor: int | None) -> None:
        if descriptor is None:  # it has ended, or the system has no process descriptors
            self._request_sample()
            return
        self._descriptor = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._on_readable)

    def _on_readable(self) -> None:
        self._close_descriptor()
        self.tell_self(_EndSignalled())

    def _request_sample(self) -> None:
        handle = self._row.handle
        if handle is not None and self._row.runs:
            self._in_thread(lambda: self._services.host.look(handle), lambda sample: Sampled(sample=sample))

    def _on_sample(self, sampled: Sampled) -> None:
        row, services = self._row, self._services
        if not row.runs or self._ending is not None:
            return
        sample = sampled.sample
        if sample.end is not None:
            self._on_end_detected(sample.end)
            return
        if not sample.alive:
            return
        row = with_heartbeat(row, sample, sampled.ports, services.clock(), services.settings().heartbeat_s)
        services.board.put(row)
        services.send_heartbeat(Heartbeat(process=row.view))
        if abs(row.view.active_at - self._stored_active_at) >= SAVE_EVERY_S:
            self._store(row.record)
        if sample.output_bytes > self._reached or self._watch.held:
            self._read_output(None)

    # ------------------------------------------------------------ watched output

    @property
    def _is_watching(self) -> bool:
        return bool(self._watch.patterns) and not self._watch.promoted

    def _read_output(self, end: ProcessEnd | None) -> None:
        handle, reached = self._row.handle, self._reached
        if handle is None or not self._is_watching or (self._reading and end is None):
            return
        self._reading = True
        self._in_thread(
            lambda: self._services.host.output(handle, reached, _WATCHED_AT_ONCE),
            lambda chunk: _OutputRead(chunk=chunk, end=end),
        )

    def _scan_output(self, written: _OutputRead) -> None:
        self._reading = False
        now = self._services.clock()
        chunk = written.chunk
        seen_before = max(0, self._reached - chunk.offset)  # two reads may have met at its end
        self._reached = max(self._reached, chunk.offset + len(chunk.data))
        self._watch, notice = watch_output(self._watch, chunk.data[seen_before:], now)
        self._save_watch_position(notice)
        if written.end is None:
            return
        if chunk.data and self._reached < chunk.total:
            self._read_output(written.end)
            return
        self._watch, notice = watch_end(self._watch, now)
        self._save_watch_position(notice)
        self._record_end(written.end)

    def _save_watch_position(self, notice: WatchNotice | None) -> None:
        """Record where the next daemon continues: after the last complete line whose notice is not held back."""
        if not self._watch.held:
            record = replace(self._row.record, watched_bytes=self._reached - len(self._watch.unfinished))
            self._services.board.put(with_record(self._row, record))
        if notice is not None:
            record = self._row.record
            self._store(replace(record, notify=True) if notice.promoted else record, notice)

    def _send_watch_notice(self, mail: _StoreRecord) -> None:
        if mail.notice is not None and self._services.notices.admit(self._services.clock()):
            text = watch_notice(self._row.view, mail.notice, marker=new_marker())
            self._send(f"watch:{mail.record.watched_bytes}", text, self._on_watch_notice_sent)

    def _on_watch_notice_sent(self, error: HermesError | None) -> None:
        if error is not None:
            logger.warning("process {}: could not send a watch notice: {}", self._id, error)

    # ------------------------------------------------------------ its end

    def _on_end_detected(self, end: ProcessEnd | Lost) -> None:
        if self._ending is not None:
            return
        self._ending = end
        self._close_descriptor()
        if isinstance(end, ProcessEnd) and self._row.handle is not None and self._is_watching:
            self._read_output(end)
        else:
            self._record_end(end)

    def _record_end(self, end: ProcessEnd | Lost) -> None:
        now = self._services.clock()
        record = replace(self._row.record, told=self._services.board.is_heard(self._id))
        self._store(ended(record, end, now) if isinstance(end, ProcessEnd) else lost(record, end, now))

    def _store(self, record: ProcessRecord, notice: WatchNotice | None = None) -> None:
        row = self._row
        record = replace(record, active_at=row.view.active_at)
        self._stored_active_at = record.active_at
        if record.ended_at is None:
            self._services.board.put(with_record(row, record))
        mail = _StoreRecord(record=record, notice=notice)
        if self.write_state is WriteState.READY:
            self.handle(mail)
        else:
            self.stash(mail)

    def is_awaited(self, mail: _StoreRecord) -> bool:
        """A refused end is stored again. The record of a running process is not: the next one replaces it."""
        return mail.record.ended_at is None

    def on_refused(self, mail: _StoreRecord, error: HermesError) -> None:
        logger.warning("process {}: could not store its record: {}", self._id, error)
        self._send_watch_notice(mail)

    def on_persisted(self, mail: _StoreRecord, step: ProcessRecord) -> None:
        if step.ended_at is None:
            self._send_watch_notice(mail)
            return
        first = self._row.runs
        self._services.board.put(with_record(self._row, step))
        if first:
            self._publish_end()
        self._notify_or_stop()

    def _publish_end(self) -> None:
        record, view = self._row.record, self._row.view
        how = how_ended(view)
        logger.info("process {} of session {} ended: {}, {}", self._id, record.session, record.reason, how)
        self._services.publish(ProcessEnded(session=view.session, process=view.id, command=view.command, end=how))

    def _kill_if_silenced(self) -> None:
        row, host = self._row, self._services.host
        handle = row.handle
        if self._silenced and row.runs and handle is not None:
            self._in_thread(lambda: host.kill(handle, why=DELETED), lambda _: _EndSignalled())

    def _silence(self) -> None:
        self._silenced = True
        self._watch = WatchPatterns(patterns=())
        self._kill_if_silenced()
        if self._ending is None or not self._row.runs:  # else its end is being stored, and this follows
            self._store(replace(self._row.record, notify=False, watch=()))

    # ------------------------------------------------------------ notice of the end

    def _notify_or_stop(self) -> None:
        if self._row.owes_a_word and self._silenced:
            self._silence()
        elif self._row.owes_a_word:
            self._notify_conversation(_StartNotice())
        else:
            self.actor_ref.stop(block=False)  # nothing left to do; the registry keeps its row

    def _notify_conversation(self, message: _StartNotice | _TailRead | _NoticeSent) -> None:
        row = self._row
        match message:
            case _StartNotice():
                host, handle = self._services.host, row.handle
                self._in_thread(lambda: _tail_of(host, handle, self._id), lambda chunk: _TailRead(chunk=chunk))
            case _TailRead():
                text = end_notice(row.record, row.view, message.chunk, marker=new_marker())
                self._send("end", text, lambda error: self.tell_self(_NoticeSent(error=error)))
            case _NoticeSent(error=None):
                self._store(replace(row.record, told=True))
            case _NoticeSent(error=SessionClosedError() | UnknownSessionError() as error):
                logger.info("process {}: its conversation is closed, announcing the end instead: {}", self._id, error)
                announcement = Announcement(
                    id=f"process:{self._id}:end",
                    session=row.record.session,
                    text=self._services.redact(late_notice(row.record, row.view)),
                )
                self._services.notice_sender.announce(
                    announcement, lambda error: self.tell_self(_NoticeSent(error=error))
                )
            case _NoticeSent():
                wait_s, problem = self._retry_s, message.error
                logger.info(
                    "process {}: notice of its end failed, retrying in {:.0f} s: {}", self._id, wait_s, problem
                )
                self.tell_later(wait_s, _StartNotice())
                self._retry_s = min(2 * self._retry_s, MAX_RETRY_S)

    def _send(self, what: str, text: str, then: Callable[[HermesError | None], None]) -> None:
        services = self._services
        submission = notice_submission(self._row.record, what, services.redact(text), services.new_turn())
        services.notice_sender.send(submission, then)

    # ------------------------------------------------------------ threads

    def _in_thread(
        self,
        call: Callable[[], T],
        message: Callable[[T], object],
        unheard: Callable[[T], None] = lambda _: None,
    ) -> None:
        """Run a call in a thread and send its outcome to this actor, or to `unheard` if the actor has ended."""

        def then(value: T | None, error: Exception | None) -> None:
            try:
                self.actor_ref.tell(error or message(value))  # type: ignore[arg-type]  # no error: a value
            except ActorDeadError:
                if error is None:
                    unheard(value)  # type: ignore[arg-type]

        self._services.threads.run(call, then)

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def on_end(self) -> None:
        self._close_descriptor()


def _tail_of(host: ProcessHost, handle: Handle | None, process: str) -> Chunk:
    """Return the end of its output, or nothing if that is gone. Blocking."""
    found = handle or host.find(process)
    return host.tail(found, TAIL_BYTES) if isinstance(found, Handle) else Chunk(offset=0, data=b"", total=0)

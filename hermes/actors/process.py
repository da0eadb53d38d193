"""One background process: found, looked at, and its end recorded and told.

The process runs under its shim and does not notice what becomes of this actor: after a crash or a restart of the
daemon another one finds it. The end is noticed at once by a descriptor of the kernel's, or else by the next look. It
is on disk before anybody hears of it; then the conversation is told, if it asked for that, under an id that makes it
once and only once. What a conversation is told waits for the end of a running turn.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from loguru import logger

from hermes.actors.kernel.actor import LoopActor
from hermes.actors.kernel.ref import ActorDeadError
from hermes.actors.process_notice import DELETED, end_notice, late_notice, watch_notice
from hermes.actors.process_services import Announcement, ProcessServices
from hermes.domain.errors import HermesError, SessionClosedError, UnknownSessionError
from hermes.domain.events import ProcessEnded
from hermes.domain.fence import new_marker
from hermes.domain.operations import PutProcess
from hermes.domain.process.process import Chunk, Handle, Heartbeat, Lost, ProcessEnd
from hermes.domain.process.staleness import how_ended
from hermes.domain.process.state import ProcessRow, ended, looked_at, lost, with_handle, with_record
from hermes.domain.submission import Submission
from hermes.domain.types import Busy, EncodedMessage, InboundKey, ProcessRecord, Source
from hermes.domain.values import dataclass
from hermes.ports.processes import ProcessHost
from hermes.processes.watch import WatchNotice, WatchPatterns, watch_end, watch_output

T = TypeVar("T")
AGAIN_S = 5.0  # after a store or a session that was too busy; longer each time
MAX_AGAIN_S = 60.0
SAVE_EVERY_S = 60.0  # when it last did something is stored no more often
TAIL_BYTES = 2000
_WATCHED_AT_ONCE = 1 << 20  # of output, in one look


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    look: Heartbeat
    ports: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """End it, and tell its conversation nothing more: that is being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    found: Handle | Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndDescriptor:
    descriptor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndSeen:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """Output to look through; `end` when that was the last of it."""

    chunk: Chunk
    end: ProcessEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    record: ProcessRecord
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SaveAgain:
    record: ProcessRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tell:
    """To itself: its end is to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    error: HermesError | None


class ProcessActor(LoopActor):
    kind = "process"

    def __init__(self, services: ProcessServices, process: str) -> None:
        super().__init__()
        self._services = services
        self._id = process
        row = services.board[process]
        self._watch = WatchPatterns(patterns=row.record.watch, terminal=row.record.pty)
        self._reading = False  # output that is being looked through
        self._reached = row.record.watched_bytes  # that far; the record follows when all of it was told
        self._ending: ProcessEnd | Lost | None = None
        self._hushed = False
        self._again_s = AGAIN_S
        self._descriptor: int | None = None
        self._saved_active_at = row.record.active_at

    @property
    def _row(self) -> ProcessRow:
        return self._services.board[self._id]

    def on_start(self) -> None:
        row = self._row
        if not row.runs:
            self._after_end()
        elif row.handle is None:
            self._in_thread(lambda: self._services.host.find(self._id), lambda found: _Found(found=found))
        else:
            self._await_end(row.handle)

    def on_receive(self, message: object) -> None:
        match message:
            case Looked():
                self._on_look(message)
            case _EndSeen():
                self._look_now()
            case _Found(found=Handle() as handle):
                self._services.board.put(with_handle(self._row, handle))
                logger.info("process {} was found again: pid {}", self._id, handle.pid)
                self._await_end(handle)
                self._end_if_hushed()
            case _Found(found=Lost() as found):
                self._end(found)
            case _EndDescriptor():
                self._on_descriptor(message.descriptor)
            case _Written():
                self._on_written(message)
            case _Saved():
                self._on_saved(message)
            case _SaveAgain():
                self._save(message.record)
            case Silence():
                self._hush()
            case _Tell() | _Tail() | _Told():
                self._on_telling(message)
            case Exception():
                raise message
            case _:
                super().on_receive(message)

    # ------------------------------------------------------------ alive

    def _await_end(self, handle: Handle) -> None:
        self._in_thread(
            lambda: self._services.host.end_fd(handle),
            lambda descriptor: _EndDescriptor(descriptor=descriptor),
            unheard=lambda descriptor: None if descriptor is None else os.close(descriptor),
        )

    def _on_descriptor(self, descriptor: int | None) -> None:
        if descriptor is None:  # it has ended, or this system has no such thing
            self._look_now()
            return
        self._descriptor = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._on_readable)

    def _on_readable(self) -> None:
        self._close()
        with suppress(ActorDeadError):
            self.actor_ref.tell(_EndSeen())

    def _look_now(self) -> None:
        handle = self._row.handle
        if handle is not None and self._row.runs:
            self._in_thread(lambda: self._services.host.look(handle), lambda look: Looked(look=look))

    def _on_look(self, looked: Looked) -> None:
        row, services = self._row, self._services
        if not row.runs or self._ending is not None:
            return
        look = looked.look
        if look.end is not None:
            self._end(look.end)
            return
        if not look.alive:
            return
        row = looked_at(row, look, looked.ports, services.clock(), services.settings().heartbeat_s)
        services.board.put(row)
        if abs(row.view.active_at - self._saved_active_at) >= SAVE_EVERY_S:
            self._save(row.record)
        if look.output_bytes > self._reached or self._watch.held:
            self._read_output(None)

    # ------------------------------------------------------------ words in its output

    def _read_output(self, end: ProcessEnd | None) -> None:
        handle, reached = self._row.handle, self._reached
        if handle is None or not self._watch.patterns or self._watch.promoted or (self._reading and end is None):
            return
        self._reading = True
        self._in_thread(
            lambda: self._services.host.output(handle, reached, _WATCHED_AT_ONCE),
            lambda chunk: _Written(chunk=chunk, end=end),
        )

    def _on_written(self, written: _Written) -> None:
        self._reading = False
        now = self._services.clock()
        chunk = written.chunk
        seen_before = max(0, self._reached - chunk.offset)  # two reads may have met at its end
        self._reached = max(self._reached, chunk.offset + len(chunk.data))
        self._watch, notice = watch_output(self._watch, chunk.data[seen_before:], now)
        self._mark_watched()
        if notice is not None:
            self._tell_watched(notice)
        if written.end is None:
            return
        if chunk.data and self._reached < chunk.total:
            self._read_output(written.end)
            return
        self._watch, notice = watch_end(self._watch, now)
        self._mark_watched()
        if notice is not None:
            self._tell_watched(notice)
        self._record_end(written.end)

    def _mark_watched(self) -> None:
        """Another daemon begins where nothing was held back, nor a line cut."""
        if not self._watch.held:
            record = replace(self._row.record, watched_bytes=self._reached - len(self._watch.unfinished))
            self._services.board.put(with_record(self._row, record))

    def _tell_watched(self, notice: WatchNotice) -> None:
        """First it is stored how far was looked, so that after a crash nothing is told twice."""
        record = self._row.record
        self._save(replace(record, notify=True) if notice.promoted else record)
        if self._services.notices.admit(self._services.clock()):
            text = watch_notice(self._row.view, notice, marker=new_marker())
            self._send(f"watch:{record.watched_bytes}", text, self._on_watch_told)

    def _on_watch_told(self, error: HermesError | None) -> None:
        if error is not None:
            logger.warning("process {}: a line in its output could not be told: {}", self._id, error)

    # ------------------------------------------------------------ its end

    def _end(self, end: ProcessEnd | Lost) -> None:
        if self._ending is not None:
            return
        self._ending = end
        self._close()
        row = self._row
        if (
            isinstance(end, ProcessEnd)
            and row.handle is not None
            and self._watch.patterns
            and not self._watch.promoted
        ):
            self._read_output(end)
        else:
            self._record_end(end)

    def _record_end(self, end: ProcessEnd | Lost) -> None:
        now = self._services.clock()
        record = replace(self._row.record, told=self._services.board.is_heard(self._id))
        self._save(ended(record, end, now) if isinstance(end, ProcessEnd) else lost(record, end, now))

    def _save(self, record: ProcessRecord) -> None:
        row = self._row
        record = replace(record, active_at=row.view.active_at)
        self._saved_active_at = record.active_at
        if record.ended_at is None:
            self._services.board.put(with_record(row, record))
        self._services.journal.commit(
            (PutProcess(record=record),), lambda error: self.tell_self(_Saved(record=record, error=error))
        )

    def _on_saved(self, saved: _Saved) -> None:
        record = saved.record
        if record.ended_at is None:
            if saved.error is not None:
                logger.warning("process {}: what is known of it could not be stored: {}", self._id, saved.error)
            return
        if saved.error is not None:
            logger.warning("process {}: its end could not be stored, trying again: {}", self._id, saved.error)
            self.tell_later(AGAIN_S, _SaveAgain(record=record))
            return
        first = self._row.runs
        self._services.board.put(with_record(self._row, record))
        if first:
            logger.info(
                "process {} of session {} ended: {}, {}", self._id, record.session, record.reason, _status(record)
            )
            view = self._row.view
            self._services.publish(
                ProcessEnded(session=view.session, process=view.id, command=view.command, end=how_ended(view))
            )
        self._after_end()

    def _end_if_hushed(self) -> None:
        row, host = self._row, self._services.host
        handle = row.handle
        if self._hushed and row.runs and handle is not None:
            self._in_thread(lambda: host.kill(handle, why=DELETED), lambda _: _EndSeen())

    def _hush(self) -> None:
        self._hushed = True
        self._watch = WatchPatterns(patterns=())
        self._end_if_hushed()
        if self._ending is None or not self._row.runs:  # else its end is on the way to disk, and this follows it
            self._save(replace(self._row.record, notify=False, watch=()))

    # ------------------------------------------------------------ telling it

    def _after_end(self) -> None:
        if self._row.owes_a_word and self._hushed:
            self._hush()
        elif self._row.owes_a_word:
            self._on_telling(_Tell())
        else:
            self.actor_ref.stop(block=False)  # there is nothing left to do; the board keeps what is known

    def _on_telling(self, message: _Tell | _Tail | _Told) -> None:
        row = self._row
        match message:
            case _Tell():
                host, handle = self._services.host, row.handle
                self._in_thread(lambda: _tail_of(host, handle, self._id), lambda chunk: _Tail(chunk=chunk))
            case _Tail():
                text = end_notice(row.record, row.view, message.chunk, marker=new_marker())
                self._send("end", text, lambda error: self.tell_self(_Told(error=error)))
            case _Told(error=None):
                self._save(replace(row.record, told=True))
            case _Told(error=SessionClosedError() | UnknownSessionError() as error):
                logger.info("process {}: nobody is there to be told of its end: {}", self._id, error)
                announcement = Announcement(
                    id=f"process:{self._id}:end",
                    session=row.record.session,
                    text=self._services.redact(late_notice(row.record, row.view)),
                )
                self._services.courier.announce(announcement, lambda error: self.tell_self(_Told(error=error)))
            case _Told():
                logger.info("process {}: its end is told in {:.0f} s: {}", self._id, self._again_s, message.error)
                self.tell_later(self._again_s, _Tell())
                self._again_s = min(2 * self._again_s, MAX_AGAIN_S)

    def _send(self, what: str, text: str, then: Callable[[HermesError | None], None]) -> None:
        record = self._row.record
        content = json.dumps({"role": "user", "content": self._services.redact(text)}, ensure_ascii=False)
        self._services.courier.send(
            Submission(
                turn=self._services.new_turn(),
                messages=(EncodedMessage(content.encode("utf-8", "replace")),),
                source=Source(platform=record.platform, automatic=True, role=record.role),
                session=record.session,
                inbound=InboundKey(f"process:{record.id}:{what}"),
                fingerprint=b"process",  # the same whatever is said: its words may differ after a restart
                busy=Busy.QUEUE,
            ),
            then,
        )

    # ------------------------------------------------------------ threads

    def _in_thread(
        self,
        call: Callable[[], T],
        message: Callable[[T], object],
        unheard: Callable[[T], None] = lambda _: None,
    ) -> None:
        """Have it done in a thread, and its outcome told to this actor; to `unheard` if that is gone."""

        def then(value: T | None, error: Exception | None) -> None:
            try:
                self.actor_ref.tell(error or message(value))  # type: ignore[arg-type]  # no error: a value
            except ActorDeadError:
                if error is None:
                    unheard(value)  # type: ignore[arg-type]

        self._services.threads.run(call, then)

    def _close(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def on_end(self) -> None:
        self._close()


def _tail_of(host: ProcessHost, handle: Handle | None, process: str) -> Chunk:
    """Empty when nothing is left of it. Blocking."""
    found = handle or host.find(process)
    return host.tail(found, TAIL_BYTES) if isinstance(found, Handle) else Chunk(offset=0, data=b"", total=0)


def _status(record: ProcessRecord) -> str:
    if record.signal is not None:
        return f"signal {record.signal}"
    return "exit code not known" if record.exit_code is None else f"exit code {record.exit_code}"

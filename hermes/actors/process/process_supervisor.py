"""Supervisor of background processes: starts them, adopts those of an earlier daemon, and samples all in one pass.

A process is in the store before it runs: whatever is killed when, the next daemon knows what to look for. Each has an
actor, which is restarted when it crashes; the process does not notice. One pass over the machine every few seconds
serves them all. What has ended stays on the list for a while, with its output; then both are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from loguru import logger

from hermes.actors.kernel.actor import ActorDied, LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.process.process import ProcessActor, Sampled, Silence
from hermes.actors.process.process_services import ProcessServices
from hermes.domain.errors import BadInputError, BadRowError, HermesError
from hermes.domain.events import ProcessStarted
from hermes.domain.ids import SessionId
from hermes.domain.operations import DropProcess, PutProcess
from hermes.domain.process.process import FailedStart, Handle, Lost, ProcessSample, ProcessSpec
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.process.process_state import ProcessRow, row_of, summary, with_record
from hermes.domain.read.reader import Reader
from hermes.domain.session.state import Session
from hermes.domain.text.listing import counted
from hermes.domain.values import dataclass, replace
from hermes.ports.processes import ProcessHost, ProcessOrder
from hermes.ports.supervision import Park, RestartPolicy

T = TypeVar("T")
Ports: TypeAlias = dict[str, tuple[int, ...]]

KEEP_ENDED_S = 3600.0
KEEP_ENDED = 64  # and no more of them than that
PORTS_EVERY = 6  # heartbeats: reading the ports is expensive
PARKED_S = 60.0  # an actor that keeps crashing is tried again after that
FORGET_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProcess:
    """Asked; answered by its ProcessView when it runs."""

    order: ProcessOrder
    session: Session
    root: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetProcesses:
    """End and forget what that session has started: it is being deleted."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class _Restored:
    records: tuple[ProcessRecord, ...] = ()
    unwanted: frozenset[str] = frozenset()  # whose session is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """It is in the store, and can be started."""

    process: str
    order: ProcessOrder
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launched:
    process: str
    outcome: Handle | FailedStart


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beat:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    samples: dict[str, ProcessSample]
    ports: Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class _StartAgain:
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forgotten:
    process: str


class ProcessSupervisor(LoopActor):
    kind = "processes"

    def __init__(
        self, services: ProcessServices, *, new_id: Callable[[], str], restart_policy: RestartPolicy
    ) -> None:
        super().__init__()
        self._services = services
        self._new_id = new_id
        self._policy = restart_policy
        self._restored = False
        self._early: list[tuple[StartProcess, LoopFuture]] = []  # came before it was known what runs
        self._replies: dict[str, LoopFuture] = {}
        self._actors: dict[str, ActorRef[Any]] = {}
        self._deaths: dict[str, tuple[float, ...]] = {}
        self._unwanted: set[str] = set()  # their conversation was deleted
        self._forgetting: set[str] = set()
        self._beats = 0

    def on_start(self) -> None:
        self._services.journal.read(
            _stored,
            lambda restored, error: self.tell_self(error or restored),
        )
        self.tell_later(self._services.settings().heartbeat_s, _Beat())

    def on_receive(self, message: object) -> None:
        match message:
            case StartProcess():
                self._store_start(message, self.defer_reply())
            case ForgetProcesses():
                self._silence_processes_of(message.session)
            case ActorDied():
                self._on_died(message)
            case _Restored():
                self._unwanted |= message.unwanted  # it was deleted, and the daemon died before these were ended
                self._restore(message.records)
            case _Noted():
                self._launch(message)
            case _Launched():
                self._on_launched(message)
            case _Beat():
                self._request_scan()
            case _Scan():
                self._forward_samples(message)
            case _StartAgain():
                self._start_actor(message.process)
            case _Forgotten():
                self._on_forgotten(message.process)
            case Exception():
                raise message
            case _:
                super().on_receive(message)

    # ------------------------------------------------------------ those of before

    def _restore(self, records: tuple[ProcessRecord, ...]) -> None:
        board = self._services.board
        known = {record.id for record in records}
        for row in board:  # of an earlier run of this supervisor: it may know more than the store, but not of more
            if row.record.id not in known:
                board.drop(row.record.id)
        for record in records:
            before = board.get(record.id)
            if before is None:
                board.register(row_of(record, self._services.clock()))
            else:
                board.put(with_record(before, record))
            if board[record.id].runs or board[record.id].owes_a_word:
                self._start_actor(record.id)
        running = sum(record.ended_at is None for record in records)
        if running:
            what = counted(running, "background process was", "background processes were")
            logger.info("{} running when the daemon stopped; looking for what is left", what)
        self._restored = True
        board.filled.set()
        early, self._early = self._early, []
        for request, reply in early:
            self._store_start(request, reply)

    # ------------------------------------------------------------ a new one

    def _store_start(self, request: StartProcess, reply: LoopFuture) -> None:
        if not self._restored:
            self._early.append((request, reply))
            return
        if problem := self._limit_problem(request.root):
            reply.settle(None, BadInputError(problem, code="too_many_processes"))
            return
        order, session = request.order, request.session
        now = self._services.clock()
        record = ProcessRecord(
            id=self._new_id(),
            root=request.root,
            session=session.id,
            key=session.key,
            platform=session.platform,
            command=summary(order.command),
            cwd=order.cwd,
            started_at=now,
            notify=order.notify,
            watch=order.watch,
            pty=order.pty,
            active_at=now,
            role=order.role,
        )
        self._services.board.register(row_of(record, now))
        self._replies[record.id] = reply
        self._services.journal.commit(
            (PutProcess(record=record),),
            lambda error: self.tell_self(_Noted(process=record.id, order=order, error=error)),
        )

    def _limit_problem(self, root: SessionId) -> str:
        board, settings = self._services.board, self._services.settings()
        if board.running(root) >= settings.max_per_session:
            most, whose, which = settings.max_per_session, "this conversation", "max_per_session"
        elif board.running() >= settings.max_total:
            most, whose, which = settings.max_total, "all conversations together", "max_total"
        else:
            return ""
        return (
            f"nothing was started: {most} background processes may run for {whose} (processes.{which}); "
            "end one that is not needed any more (`hermes ps --running` lists those of all conversations)"
        )

    def _launch(self, noted: _Noted) -> None:
        if noted.error is not None:
            self._services.board.drop(noted.process)
            self._replies.pop(noted.process).settle(None, noted.error)
            return
        order = noted.order
        spec = ProcessSpec(
            id=noted.process,
            argv=order.argv,
            cwd=order.cwd,
            environ=order.environ,
            terminal=order.pty,
            box=order.box,
        )
        self._in_thread(
            lambda: self._services.host.start(spec),
            lambda outcome, error: _Launched(
                process=noted.process, outcome=outcome or FailedStart(reason=f"starting it failed: {error}")
            ),
        )

    def _on_launched(self, launched: _Launched) -> None:
        board, reply = self._services.board, self._replies.pop(launched.process)
        row, outcome = board[launched.process], launched.outcome
        if isinstance(outcome, FailedStart):
            board.drop(launched.process)
            self._services.journal.commit((DropProcess(id=launched.process),), _log_error)
            reply.settle(
                None, BadInputError(f"the command could not be started: {outcome.reason}", code="not_started")
            )
            return
        record = replace(row.record, pid=outcome.pid)
        now = self._services.clock()
        row = replace(with_record(row, record), handle=outcome, heartbeats=1)
        board.register(replace(row, view=replace(row.view, heartbeat_at=now, active_at=now)))
        self._services.journal.commit((PutProcess(record=record),), _log_error)
        self._start_actor(record.id)
        logger.info("process {} of session {} started: pid {}", record.id, record.session, record.pid)
        self._services.publish(ProcessStarted(session=record.session, process=record.id, command=record.command))
        reply.settle(board.view(record.id))

    # ------------------------------------------------------------ actors

    def _start_actor(self, process: str) -> None:
        if process not in self._actors and self._services.board.get(process) is not None:
            self._actors[process] = ProcessActor.start(self._services, process, name=process, owner=self.actor_ref)
            if process in self._unwanted:
                self._actors[process].tell(Silence())

    def _on_died(self, died: ActorDied) -> None:
        self._actors.pop(died.name, None)
        if died.cause is None:
            self._deaths.pop(died.name, None)
            return
        now = self._services.clock()
        deaths = self._deaths[died.name] = (*self._deaths.get(died.name, ())[-10:], now)
        verdict = self._policy(deaths, now)
        after_s = PARKED_S if isinstance(verdict, Park) else verdict.after_s
        logger.warning("the actor of process {} crashed ({!r}): restart in {:.2f} s", died.name, died.cause, after_s)
        self.tell_later(after_s, _StartAgain(process=died.name))

    # ------------------------------------------------------------ the look at them all

    def _request_scan(self) -> None:
        self._forget_old()
        self._beats += 1
        rows = [row for row in self._services.board if row.runs and row.handle is not None]
        if not rows:
            self._schedule_scan()
            return
        handles = [row.handle for row in rows if row.handle is not None]
        often = self._beats % PORTS_EVERY == 0
        scanned = [row.handle for row in rows if row.handle is not None and (often or row.heartbeats < PORTS_EVERY)]
        host = self._services.host
        self._in_thread(lambda: _scan(host, handles, scanned), lambda found, error: error or found)

    def _forward_samples(self, scan: _Scan) -> None:
        for process, sample in scan.samples.items():
            ref = self._actors.get(process)
            if ref is not None:
                with suppress(ActorDeadError):  # its death notice is on the way
                    ref.tell(Sampled(sample=sample, ports=scan.ports.get(process)))
        self._schedule_scan()

    def _schedule_scan(self) -> None:
        self.tell_later(self._services.settings().heartbeat_s, _Beat())

    # ------------------------------------------------------------ forgetting

    def _forget_old(self) -> None:
        now = self._services.clock()
        over = [row for row in self._services.board if not row.runs and not row.owes_a_word]
        over.sort(key=lambda row: row.record.ended_at or 0.0)
        surplus = len(over) - KEEP_ENDED
        old = [row for n, row in enumerate(over) if n < surplus or self._is_expired(row, now)]
        for row in old[:FORGET_AT_ONCE]:
            self._forget(row.record.id)

    def _is_expired(self, row: ProcessRow, now: float) -> bool:
        return row.record.id in self._unwanted or abs(now - (row.record.ended_at or 0.0)) > KEEP_ENDED_S

    def _forget(self, process: str) -> None:
        if process in self._forgetting or process in self._actors:
            return
        self._forgetting.add(process)
        gone = Lost(id=process, reason="")  # it has ended: there is nothing to be careful about but its folder
        self._in_thread(lambda: self._services.host.forget(gone), lambda _, __: _Forgotten(process=process))

    def _on_forgotten(self, process: str) -> None:
        self._forgetting.discard(process)
        self._unwanted.discard(process)
        self._services.board.drop(process)
        self._services.journal.commit((DropProcess(id=process),), _log_error)

    def _silence_processes_of(self, session: SessionId) -> None:
        for process in [row.record.id for row in self._services.board if row.record.session == session]:
            self._unwanted.add(process)
            if process in self._actors:  # else it has ended, or its actor hears of it when it begins
                with suppress(ActorDeadError):
                    self._actors[process].tell(Silence())
        self._forget_old()

    # ------------------------------------------------------------ threads

    def _in_thread(
        self, call: Callable[[], T], message: Callable[[T | None, Exception | None], object | None]
    ) -> None:
        def then(value: T | None, error: Exception | None) -> None:
            told = message(value, error)
            if told is not None:
                self.tell_self(told)

        self._services.threads.run(call, then)

    def on_end(self) -> None:
        for ref in self._actors.values():
            ref.stop(block=False)


def _stored(reader: Reader) -> _Restored:
    records = tuple(reader.processes())
    gone = frozenset(record.id for record in records if not _is_there(reader, record.session))
    return _Restored(records=records, unwanted=gone)


def _is_there(reader: Reader, session: SessionId) -> bool:
    try:
        return reader.head(session) is not None
    except BadRowError:  # it can be mended
        return True


def _scan(host: ProcessHost, handles: list[Handle], scanned: list[Handle]) -> _Scan:
    """Blocking."""
    return _Scan(samples=host.look_all(handles), ports=host.ports(scanned) if scanned else {})


def _log_error(error: HermesError | None) -> None:
    if error is not None:
        logger.warning("what is known of a background process could not be stored: {}", error)

"""State of a background process, and its changes by samples and by its end. Pure.

A process is active if it has used CPU above a floor since the last sample, or has written output. The first
sample of a daemon shows no CPU activity, since earlier usage is not known.
"""

from __future__ import annotations

from hermes.domain.process.process import EndReason, Handle, Lost, ProcessEnd, ProcessSample
from hermes.domain.process.process_record import ProcessRecord, ProcessView
from hermes.domain.values import dataclass, replace

KNOWN_AFTER = 2  # heartbeats: one alone does not show whether it works
CPU_FLOOR = 0.02  # of one core, over a heartbeat: an idle server stays below
_STEADY_S = 2.0  # a start time does not move for less: the two clocks are not read at the same time
_COMMAND_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    record: ProcessRecord
    view: ProcessView  # as its actor sees it; others see the last heartbeat
    handle: Handle | None = None  # None: it is not found yet, or lost
    heartbeats: int = 0  # by this daemon

    @property
    def runs(self) -> bool:
        return self.record.ended_at is None

    @property
    def owes_a_word(self) -> bool:
        """Return whether its conversation still has to be notified of its end."""
        return self.record.ended_at is not None and self.record.notify and not self.record.told


def summary(command: str) -> str:
    """One line for lists."""
    line = " ".join(command.split())
    return line if len(line) <= _COMMAND_CHARS else f"{line[: _COMMAND_CHARS - 3]}..."


def row_of(record: ProcessRecord, heard_at: float) -> ProcessRow:
    """Return the state from the store. A process that ran counts as seen until the first heartbeat."""
    view = ProcessView(
        id=record.id,
        session=record.session,
        command=record.command,
        pid=record.pid,
        started_at=record.started_at,
        heartbeat_at=heard_at,
        active_at=max(record.active_at, record.started_at),
        known=False,
        notify=record.notify,
    )
    row = ProcessRow(record=record, view=view)
    return row if record.ended_at is None else with_record(row, record)


def with_record(row: ProcessRow, record: ProcessRecord) -> ProcessRow:
    """Return the view that follows from the stored record."""
    view = replace(row.view, pid=record.pid)
    if record.ended_at is not None:
        view = replace(
            view,
            ended_at=record.ended_at,
            exit_code=record.exit_code,
            signal=record.signal,
            reason=record.reason,
            detail=record.detail,
            output_bytes=record.output_bytes,
            memory_bytes=0,
            ports=(),
            untold=record.notify and not record.told,
        )
    return replace(row, record=record, view=view)


def with_handle(row: ProcessRow, handle: Handle) -> ProcessRow:
    return replace(with_record(row, replace(row.record, pid=handle.pid)), handle=handle)


def with_heartbeat(
    row: ProcessRow, sample: ProcessSample, ports: tuple[int, ...] | None, now: float, heartbeat_s: float
) -> ProcessRow:
    """Return the row after a sample of a live process. `ports`: None if they were not read."""
    view = row.view
    cpu_s = view.cpu_s if sample.cpu_s is None else sample.cpu_s
    worked = row.heartbeats > 0 and cpu_s - view.cpu_s >= CPU_FLOOR * heartbeat_s
    wrote = sample.output_bytes > view.output_bytes
    active_at = view.active_at
    if worked or (wrote and row.heartbeats > 0):
        active_at = now
    elif wrote and sample.last_output_at is not None:  # before this daemon started: the file has the time
        active_at = max(active_at, min(now, sample.last_output_at))
    view = replace(
        view,
        started_at=_started_at(view, sample, now),
        heartbeat_at=now,
        active_at=active_at,
        cpu_s=cpu_s,
        output_bytes=sample.output_bytes,
        memory_bytes=sample.rss_bytes or 0,
        ports=view.ports if ports is None else ports,
        known=row.heartbeats + 1 >= KNOWN_AFTER,
    )
    return replace(row, view=view, heartbeats=row.heartbeats + 1)


def _started_at(view: ProcessView, sample: ProcessSample, now: float) -> float:
    if sample.age_s is None or abs(now - sample.age_s - view.started_at) < _STEADY_S:
        return view.started_at
    return now - sample.age_s


def ended(record: ProcessRecord, end: ProcessEnd, now: float) -> ProcessRecord:
    detail = "; ".join(filter(None, (end.detail, end.problem, _left(end.left))))
    return replace(
        record,
        ended_at=end.ended_at or now,
        exit_code=end.code,
        signal=end.signal,
        reason=end.reason.value,
        detail=detail,
        output_bytes=end.output_bytes,
    )


def lost(record: ProcessRecord, found: Lost, now: float) -> ProcessRecord:
    return replace(record, ended_at=now, reason=EndReason.LOST.value, detail=found.reason)


def _left(names: tuple[str, ...]) -> str:
    return f"what it left running was ended: {', '.join(names)}" if names else ""

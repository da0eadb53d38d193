"""Trace of each message, as a fold over the records of its conversation. Pure.

A trace begins with `MessageReceived` and ends with its turn, in whichever session that ends. Problems are pauses
without an explanation, interruptions, turns that are open for long, and messages that are not delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from hermes.domain.ids import InboundKey, TurnId
from hermes.domain.outbox import reply_id
from hermes.domain.read.trace import TraceLine, TraceState, TraceStep
from hermes.domain.read.trace_call import judged, named
from hermes.domain.read.trace_delivery import LONG_S, PAUSE_S, Delivery, count, delivered, span
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import (
    Answered,
    Asked,
    CompressionFailed,
    CompressionStarted,
    ContextCarried,
    InnerCalled,
    MarkedResumePending,
    Merged,
    MessageReceived,
    ModelReplied,
    ModelRetried,
    Record,
    Resumed,
    Suspended,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.domain.session.routed_question import question_ids
from hermes.domain.session.turn_role import answered_by, who_said
from hermes.domain.turn.tool_call import Call, CallOutcome
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Usage
from hermes.domain.values import replace

_OF_THE_SESSION = (MarkedResumePending, Suspended, Resumed, CompressionStarted, CompressionFailed)
_SUMMARY = "summary"
QUEUED_S = 0.1  # a shorter wait for the model is not shown
_ANNOUNCED = "stop announced"


def fold_trace(
    entries: Sequence[TurnRecord],
    deliveries: Mapping[str, Delivery],
    remembered: Container[InboundKey],
    *,
    now: float,
    alive: bool = True,  # a daemon works on what is open
    only: TurnId | None = None,
) -> list[TraceLine]:
    """One line for each message that was received in these records, which are in order.

    `remembered` are the inbound keys that are not forgotten: what was sent for those is not forgotten either.
    """
    lines = []
    for place, entry in enumerate(entries):
        if isinstance(entry.record, MessageReceived) and only in (None, entry.record.turn):
            walk = _Walk(entry, entry.record)
            for later in entries[place + 1 :]:
                walk.take(later)
                if walk.ended_at is not None:
                    break
            lines.append(walk.line(deliveries, remembered, now=now, alive=alive))
    return lines


def _author(received: MessageReceived) -> str:
    """Return the author and role; empty if stored before there were roles."""
    return "" if received.source.role is None else f"from {who_said(received.source)}"


class _Walk:
    """One message on its way."""

    def __init__(self, entry: TurnRecord, received: MessageReceived) -> None:
        self._received = received
        self._session = entry.session
        self._turn = received.turn  # whose answer it gets
        self._steps = [TraceStep(at=received.at, what="accepted", detail=_author(received))]
        self._last_at = received.at  # of the last record of any turn
        self._own_at = received.at  # of the last one that concerns this message
        self._thinking_at: float | None = None
        self._calls: dict[str, Call] = {}  # of the model's last reply, as far as they have no outcome
        self._open: dict[str, int] = {}  # steps that have not ended: calls, questions, a summary
        self._questions: list[str] = []
        self._state = TraceState.QUEUED
        self._attempts = self._interruptions = self._replies = self._tools = 0
        self.ended_at: float | None = None

    def take(self, entry: TurnRecord) -> None:
        record = entry.record
        if self._concerns(record):
            if not isinstance(record, _OF_THE_SESSION):
                self._session = entry.session
            _TAKEN.get(type(record), _nothing)(self, record)
            self._own_at = record.at
        self._last_at = record.at

    def _concerns(self, record: Record) -> bool:
        if isinstance(record, ContextCarried):
            moved = record.turn is not None and record.turn.id == self._turn
            return moved or any(each.turn == self._turn for each in record.waiting)
        return isinstance(record, _OF_THE_SESSION) or getattr(record, "turn", None) == self._turn

    # ------------------------------------------------------------ turns

    def started(self, record: TurnStarted) -> None:
        self._attempts = record.attempt
        waited = record.at - self._received.at
        detail = f"(attempt {record.attempt})" if record.attempt > 1 else ""
        held_s = record.at - self._own_at
        if self._state is TraceState.INTERRUPTED and held_s > PAUSE_S:
            detail = f"{detail} after waiting {span(held_s)} to go on"
        if not detail and waited > PAUSE_S:
            detail = f"after waiting {span(waited)}"
        self._step(record.at, "turn started", detail, problem=self._pause(record.at))
        self._state = TraceState.RUNNING
        self._thinking_at = None if self._calls else record.at

    def merged(self, record: Merged) -> None:
        self._turn = record.into
        self._step(record.at, "became part", f"of turn {record.into}")
        self._state = TraceState.RUNNING
        self._thinking_at = None if record.hidden else record.at

    def interrupted(self, record: TurnInterrupted) -> None:
        lost_s = max(0.0, record.at - self._last_at)
        announced = self._steps[-1].what == _ANNOUNCED  # it continued for an unknown time
        away = "it stopped and came back within" if announced else "nothing was recorded for"
        problem = f"{record.reason}; {away} {span(lost_s)}"
        self._step(self._last_at, "interrupted", self._doing(), took_s=lost_s, problem=problem)
        self._interruptions += 1
        self._thinking_at = None
        self._state = TraceState.INTERRUPTED

    def finished(self, record: TurnFinished) -> None:
        names = ", ".join(call.name for call in record.handed)
        if not names or record.usage != Usage():  # else the calls came with an answer that is shown before
            answer = f"calls for the client: {names}" if names else "the answer"
            self._thought(record.at, f"{record.model}: {answer}", record.usage, record.waited_s)
        ended = f"the client runs {names}" if names else record.finish_reason
        self._step(record.at, "answered", "" if ended == "stop" else ended)
        self._end(record.at, TraceState.ANSWERED)

    def failed(self, record: TurnFailed) -> None:
        failure = record.failure
        if failure.kind is FailureKind.CANCELLED:
            self._step(record.at, "stopped", failure.message)
            self._end(record.at, TraceState.STOPPED)
        else:
            doing = ": ".join(filter(None, (self._doing(), failure.message)))
            self._step(record.at, "failed", doing, problem=failure.brief)
            self._end(record.at, TraceState.FAILED)

    def _end(self, at: float, state: TraceState) -> None:
        self.ended_at, self._state, self._thinking_at = at, state, None

    # ------------------------------------------------------------ the model and its calls

    def replied(self, record: ModelReplied) -> None:
        asked = f"{record.model}: {count(len(record.calls), 'tool call')}"
        self._thought(record.at, asked, record.usage, record.waited_s)
        self._calls = {call.id: call for call in record.calls}
        self._steps += judged(record.calls, record.at)

    def retried(self, record: ModelRetried) -> None:
        """Add the failed call and the pause after it. Neither counts as time of the next call."""
        began = self._thinking_at or record.at
        tried = f"{record.model}: try {record.tries} failed: {record.failure.message}"
        self._step(began, "model", tried, record.at - began, record.failure.brief)
        if record.delay_s:
            self._step(record.at, "waiting", f"before try {record.tries + 1}", took_s=record.delay_s)
        self._thinking_at = record.at + record.delay_s

    def _thought(self, at: float, detail: str, usage: Usage, waited_s: float) -> None:
        began, self._thinking_at = self._thinking_at or at, None
        if waited_s >= QUEUED_S:
            self._step(began, "waiting", "while the model answered others", took_s=waited_s)
            began = min(began + waited_s, at)
        used = f"{usage.prompt_tokens} tokens in, {usage.completion_tokens} out"
        self._step(began, "model", f"{detail} ({used})", took_s=at - began)
        self._replies += 1

    def inner_called(self, record: InnerCalled) -> None:
        self._calls[record.call.id] = record.call

    def tool_started(self, record: ToolStarted) -> None:
        problem = self._pause(record.at)
        if (cut := self._open.get(record.call)) is not None:
            self._steps[cut] = replace(self._steps[cut], problem="it was cut off; since it only reads, it ran again")
        self._open[record.call] = len(self._steps)
        self._step(record.at, "tool", self._named(record.call), problem=problem)
        self._tools += 1

    def tool_finished(self, record: ToolFinished) -> None:
        name = self._named(record.call) or record.name
        detail = f"{name} ({record.outcome.replace('_', ' ')})"
        place = self._open.pop(record.call, None)
        if place is None:
            self._step(record.at, "tool", detail)
            self._tools += record.outcome is CallOutcome.ERROR  # an unknown tool, or wrong arguments
        else:
            self._close(place, detail, record)
        self._calls.pop(record.call, None)
        if not self._calls:
            self._thinking_at = record.at

    def _close(self, place: int, detail: str, record: ToolFinished) -> None:
        step = self._steps[place]
        if record.outcome is CallOutcome.UNKNOWN:
            self._steps[place] = replace(step, detail=detail, problem=f"{record.name} has no recorded outcome")
            return
        idle_s = record.at - step.at - record.took_s
        late = f"its outcome was recorded {span(idle_s)} after its end" if record.took_s and idle_s > PAUSE_S else ""
        took_s = record.took_s or record.at - step.at
        self._steps[place] = replace(step, detail=detail, took_s=took_s, problem=step.problem or late)

    def asked(self, record: Asked) -> None:
        self._questions += question_ids(record)
        problem = self._pause(record.at)
        self._open[f"asked {record.call}"] = len(self._steps)
        of_whom = " (of the owner and the admins)" if record.routed else ""
        self._step(record.at, "asked", f"{self._named(record.call)}{of_whom}", problem=problem)
        self._state = TraceState.ASKING

    def answered(self, record: Answered) -> None:
        by = f", by {answered_by(record)}" if record.by else ""
        place = self._open.pop(f"asked {record.call}", None)
        if place is not None:
            step = self._steps[place]
            self._steps[place] = replace(step, detail=f"{step.detail}: answered{by}", took_s=record.at - step.at)
        self._state = TraceState.RUNNING

    def _named(self, call: str) -> str:
        known = self._calls.get(call)
        return "" if known is None else named(known)

    # ------------------------------------------------------------ the session

    def stop_announced(self, record: MarkedResumePending) -> None:
        self._step(record.at, _ANNOUNCED, record.reason)

    def suspended(self, record: Suspended) -> None:
        self._step(record.at, "suspended", problem=record.reason)
        self._state, self._thinking_at = TraceState.SUSPENDED, None

    def resumed(self, record: Resumed) -> None:
        self._step(record.at, "resumed", record.reason)
        if self._state is TraceState.SUSPENDED:
            self._state = TraceState.INTERRUPTED if self._attempts else TraceState.QUEUED

    def compressing(self, record: CompressionStarted) -> None:
        self._open[_SUMMARY] = len(self._steps)
        self._step(record.at, _SUMMARY, record.reason)
        self._thinking_at = None

    def not_compressed(self, record: CompressionFailed) -> None:
        place = self._open.pop(_SUMMARY, None)
        if place is not None:
            step = self._steps[place]
            self._steps[place] = replace(step, took_s=record.at - step.at, problem=record.reason)

    def carried(self, record: ContextCarried) -> None:
        place = self._open.pop(_SUMMARY, None)
        if place is not None:
            self._steps[place] = replace(self._steps[place], took_s=record.at - self._steps[place].at)
        self._step(record.at, "moved", f"to session {self._session}")
        if record.turn is not None and record.turn.id == self._turn and not self._calls:
            self._thinking_at = record.at

    # ------------------------------------------------------------ what was going on

    def _step(self, at: float, what: str, detail: str = "", took_s: float | None = None, problem: str = "") -> None:
        self._steps.append(TraceStep(at=at, what=what, detail=detail, took_s=took_s, problem=problem))

    def _pause(self, at: float) -> str:
        """Return the problem with the time so far. While a message waits for its turn, other turns explain it."""
        passed_s = at - (self._last_at if self._state is TraceState.QUEUED else self._own_at)
        busy = self._thinking_at is not None or self._open
        held = self._state in (TraceState.SUSPENDED, TraceState.INTERRUPTED)
        if busy or held or passed_s <= PAUSE_S:
            return ""
        return f"nothing was going on for {span(passed_s)}"

    def _doing(self) -> str:
        if self._thinking_at is not None:
            return "during a model call"
        tools = sum(name in self._calls for name in self._open)
        return f"while {count(tools, 'tool call')} ran" if tools else ""

    # ------------------------------------------------------------ the line

    def line(
        self,
        deliveries: Mapping[str, Delivery],
        remembered: Container[InboundKey],
        *,
        now: float,
        alive: bool,
    ) -> TraceLine:
        if self.ended_at is None:
            self._show_open(now, alive=alive)
        sent = self._show_deliveries(deliveries, remembered, now)
        received = self._received
        return TraceLine(
            at=received.at,
            session=self._session,
            turn=received.turn,
            state=self._state,
            platform=received.source.platform,
            inbound=received.inbound,
            into=self._turn if self._turn != received.turn else None,
            attempts=self._attempts,
            interruptions=self._interruptions,
            model_calls=self._replies,
            tool_calls=self._tools,
            took_s=None if self.ended_at is None else self.ended_at - received.at,
            sent=sent,
            steps=tuple(sorted(self._steps, key=lambda step: step.at)),
        )

    def _show_open(self, now: float, *, alive: bool) -> None:
        if self._thinking_at is not None:
            self._open["thinking"] = len(self._steps)
            self._step(self._thinking_at, "model", "not answered yet")
        elif self._state is TraceState.QUEUED and not self._open:
            self._open["queue"] = len(self._steps)
            self._step(self._received.at, "waiting", "for its turn")
        for place in self._open.values():
            step = self._steps[place]
            long = f"open for {span(now - step.at)}" if now - step.at > LONG_S else ""
            self._steps[place] = replace(step, problem=step.problem or long)
        if not alive and self._state is not TraceState.SUSPENDED:
            self._step(self._last_at, "open", problem="no daemon runs; it goes on when one does")
            if self._state is TraceState.RUNNING:  # the next daemon will write it down
                self._state, self._interruptions = TraceState.INTERRUPTED, self._interruptions + 1
        elif self._state is TraceState.INTERRUPTED:
            problem = f"open for {span(now - self._own_at)}"
            self._step(self._own_at, "waiting", "for the next message, or `hermes resume`", problem=problem)

    def _show_deliveries(
        self, deliveries: Mapping[str, Delivery], remembered: Container[InboundKey], now: float
    ) -> tuple[str, ...]:
        sent: list[str] = []
        for name in self._questions:
            if name in deliveries:
                _, messages, step = delivered(deliveries[name], now)
                self._steps.append(replace(step, what=f"question {step.what}"))
                sent += messages
        reply = deliveries.get(reply_id(self._turn))
        if reply is not None:
            state, messages, step = delivered(reply, now)
            self._steps.append(step)
            sent += messages
            if self._state is TraceState.ANSWERED:
                self._state = state
        elif self.ended_at is not None and self._is_missed(remembered):
            self._step(self.ended_at, "sent", problem="the answer is neither sent nor queued")
        return tuple(sent)

    def _is_missed(self, remembered: Container[InboundKey]) -> bool:
        received = self._received
        return received.source.place is not None and received.turn == self._turn and received.inbound in remembered


def _nothing(_walk: _Walk, _record: Record) -> None:
    """Ignore the record. Others contain the same information."""


_TAKEN: Mapping[type, Callable[[_Walk, Any], None]] = {
    TurnStarted: _Walk.started,
    Merged: _Walk.merged,
    TurnInterrupted: _Walk.interrupted,
    TurnFinished: _Walk.finished,
    TurnFailed: _Walk.failed,
    ModelReplied: _Walk.replied,
    ModelRetried: _Walk.retried,
    ToolStarted: _Walk.tool_started,
    InnerCalled: _Walk.inner_called,
    ToolFinished: _Walk.tool_finished,
    Asked: _Walk.asked,
    Answered: _Walk.answered,
    MarkedResumePending: _Walk.stop_announced,
    Suspended: _Walk.suspended,
    Resumed: _Walk.resumed,
    CompressionStarted: _Walk.compressing,
    CompressionFailed: _Walk.not_compressed,
    ContextCarried: _Walk.carried,
}

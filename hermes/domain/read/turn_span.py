"""Spans of turns, model calls and tool calls, rebuilt from live events. Pure, and without content of conversations.

A model call has no event of its own: it runs from the start of the turn, or from the end of the last tool call, to
the next tool call or the end of the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    Event,
    SessionMoved,
    TextDelta,
    TurnAnswered,
    TurnBegan,
    TurnGaveUp,
)
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

_MAX_OPEN: Final = 10_000  # turns; beyond that, no more are followed
_MAX_STEPS: Final = 1_000  # of one turn


class SpanKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"
    WAIT = "wait"  # for a person's answer


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpan:
    kind: SpanKind
    began: float
    ended: float
    name: str = ""  # of the tool
    call: str = ""
    problem: str = ""  # outcome of a tool call that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSpan:
    """A whole turn, with its steps in the order in which they began."""

    session: SessionId
    turn: TurnId
    began: float
    ended: float
    attempt: int
    steps: tuple[StepSpan, ...]
    model: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    first_text_s: float | None = None
    problem: str = ""  # kind of failure


class _OpenTurn:
    def __init__(self, began: TurnBegan, at: float) -> None:
        self.session = began.session
        self.began = at
        self.attempt = began.attempt
        self.model_since: float | None = at
        self.first_text_at: float | None = None
        self.calls: dict[str, tuple[SpanKind, float, str]] = {}
        self.steps: list[StepSpan] = []

    def add(self, step: StepSpan) -> None:
        if len(self.steps) < _MAX_STEPS:
            self.steps.append(step)

    def end_model_call(self, at: float, problem: str = "") -> None:
        if self.model_since is not None:
            self.add(StepSpan(kind=SpanKind.MODEL, began=self.model_since, ended=at, problem=problem))
            self.model_since = None

    def end_call(self, call: str, at: float, name: str = "", problem: str = "") -> None:
        if (found := self.calls.pop(call, None)) is None:
            self.end_model_call(at)  # refused before it began
        else:
            kind, began, known = found
            self.add(StepSpan(kind=kind, began=began, ended=at, name=name or known, call=call, problem=problem))
        if not self.calls:
            self.model_since = at


class TurnSpans:
    """Follows the open turns. `note` returns a turn once it has ended."""

    def __init__(self) -> None:
        self._open: dict[TurnId, _OpenTurn] = {}

    def note(self, event: Event, at: float) -> TurnSpan | None:
        match event:
            case TurnBegan() if len(self._open) < _MAX_OPEN:
                self._open[event.turn] = _OpenTurn(event, at)
            case TurnAnswered(turn=turn) if turn in self._open:
                return self._finished(event, at)
            case TurnGaveUp(turn=turn) if turn in self._open:
                return self._given_up(event, at)
            case TextDelta() | CallBegan() | CallAsked() | CallAnswered() | CallEnded() | SessionMoved():
                if event.turn is not None and (turn_ := self._open.get(event.turn)) is not None:
                    _step(turn_, event, at)
            case _:
                pass
        return None

    def _finished(self, event: TurnAnswered, at: float) -> TurnSpan:
        known = self._open.pop(event.turn)
        known.end_model_call(at)
        return _span(event.turn, known, at, model=event.model, finish=event.finish_reason, usage=event.usage)

    def _given_up(self, event: TurnGaveUp, at: float) -> TurnSpan:
        known, problem = self._open.pop(event.turn), event.failure.kind.value
        known.end_model_call(at, problem)
        return _span(event.turn, known, at, problem=problem)


def _step(
    turn: _OpenTurn, event: TextDelta | CallBegan | CallAsked | CallAnswered | CallEnded | SessionMoved, at: float
) -> None:
    match event:
        case TextDelta():
            turn.first_text_at = turn.first_text_at or at
        case CallBegan():
            turn.end_model_call(at)
            turn.calls[event.call] = (SpanKind.TOOL, at, event.name)
        case CallAsked():
            turn.end_model_call(at)
            turn.calls[event.call] = (SpanKind.WAIT, at, event.name)
        case CallAnswered():  # then the call runs, or has its result
            turn.end_call(event.call, at, event.name)
            turn.model_since = None
        case CallEnded():
            problem = "" if event.outcome is CallOutcome.OK else event.outcome.value
            turn.end_call(event.call, at, event.name, problem)
        case SessionMoved():  # the turn continues in the child of a compression
            turn.session = event.successor


def _span(
    name: TurnId,
    known: _OpenTurn,
    at: float,
    *,
    model: str = "",
    finish: str = "",
    usage: Usage = Usage(),
    problem: str = "",
) -> TurnSpan:
    for call in list(known.calls):  # without an end: the turn ended first
        known.end_call(call, at, problem="no_outcome")
    first = known.first_text_at
    return TurnSpan(
        session=known.session,
        turn=name,
        began=known.began,
        ended=at,
        attempt=known.attempt,
        steps=tuple(sorted(known.steps, key=lambda each: each.began)),
        model=model,
        finish_reason=finish,
        usage=usage,
        first_text_s=None if first is None else first - known.began,
        problem=problem,
    )


# ---------------------------------------------------------------- attributes


def turn_attributes(span: TurnSpan) -> Mapping[str, str | int | float]:
    """Return the attributes of a turn by the GenAI semantic conventions of OpenTelemetry."""
    known: dict[str, str | int | float] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "hermes",
        "gen_ai.conversation.id": span.session,
        "hermes.turn.id": span.turn,
        "hermes.turn.attempt": span.attempt,
        "gen_ai.usage.input_tokens": span.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": span.usage.completion_tokens,
    }
    if span.model:
        known |= {"gen_ai.request.model": span.model, "gen_ai.response.model": span.model}
    if span.usage.cached_tokens:
        known["gen_ai.usage.cache_read.input_tokens"] = span.usage.cached_tokens
    if span.usage.cost_usd:
        known["hermes.cost_usd"] = span.usage.cost_usd
    if span.first_text_s is not None:
        known["hermes.first_text_s"] = span.first_text_s
    return known | ({"error.type": span.problem} if span.problem else {})


def step_attributes(step: StepSpan, turn: TurnSpan) -> Mapping[str, str | int | float]:
    """Return the attributes of a step of a turn."""
    failed = {"error.type": step.problem} if step.problem else {}
    match step.kind:
        case SpanKind.MODEL:
            model = {"gen_ai.request.model": turn.model} if turn.model else {}
            return {"gen_ai.operation.name": "chat", **model, **failed}
        case SpanKind.TOOL:
            return {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": step.name,
                "gen_ai.tool.call.id": step.call,
                "gen_ai.tool.type": "function",
                **failed,
            }
        case SpanKind.WAIT:
            return {"hermes.wait": "person", "gen_ai.tool.name": step.name, "gen_ai.tool.call.id": step.call}


def step_name(step: StepSpan, turn: TurnSpan) -> str:
    match step.kind:
        case SpanKind.MODEL:
            return f"chat {turn.model}".rstrip()
        case SpanKind.TOOL:
            return f"execute_tool {step.name}"
        case SpanKind.WAIT:
            return "wait_for_person"

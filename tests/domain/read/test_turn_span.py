"""Spans of a turn, rebuilt from live events."""

from __future__ import annotations

from hermes.domain.events import (
    CallAnswered,
    CallAsked,
    CallBegan,
    CallEnded,
    Event,
    SessionMoved,
    TurnAnswered,
    TurnBegan,
)
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.turn_span import TurnSpan, TurnSpans
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.usage import Usage

S, T = SessionId("s1"), TurnId("t1")
BEGAN = TurnBegan(session=S, turn=T, attempt=1)
ANSWERED = TurnAnswered(session=S, turn=T, text="", model="m", finish_reason="stop", usage=Usage())


def began(call: str) -> Event:
    return CallBegan(session=S, turn=T, call=call, name=f"tool-{call}", summary="")


def ended(call: str, outcome: CallOutcome = CallOutcome.OK) -> Event:
    return CallEnded(session=S, turn=T, call=call, name=f"tool-{call}", outcome=outcome, took_s=0.0)


def turn_of(*events: Event) -> TurnSpan:
    """Play events one second apart, and return the turn that the last one ends."""
    spans = TurnSpans()
    found = [spans.note(event, float(at)) for at, event in enumerate(events)]
    assert found[:-1] == [None] * (len(events) - 1)
    assert found[-1] is not None
    return found[-1]


def steps(turn: TurnSpan) -> list[tuple[str, float, float]]:
    return [(step.name or step.kind.value, step.began, step.ended) for step in turn.steps]


def test_plain_turn_is_one_model_call() -> None:
    assert steps(turn_of(BEGAN, ANSWERED)) == [("model", 0.0, 1.0)]


def test_next_model_call_begins_when_the_last_parallel_tool_call_has_ended() -> None:
    turn = turn_of(BEGAN, began("a"), began("b"), ended("a"), ended("b"), ANSWERED)
    assert steps(turn) == [("model", 0.0, 1.0), ("tool-a", 1.0, 3.0), ("tool-b", 2.0, 4.0), ("model", 4.0, 5.0)]


def test_wait_for_an_approval_is_a_step_before_the_call() -> None:
    asked = CallAsked(session=S, turn=T, call="a", name="tool-a", question="?", choices=(), approval=True)
    answered = CallAnswered(session=S, turn=T, call="a", name="tool-a", answer="once", by="")
    turn = turn_of(BEGAN, asked, answered, began("a"), ended("a"), ANSWERED)
    assert [(step.kind.value, step.began, step.ended) for step in turn.steps] == [
        ("model", 0.0, 1.0), ("wait", 1.0, 2.0), ("tool", 3.0, 4.0), ("model", 4.0, 5.0),
    ]  # fmt: skip


def test_call_that_is_refused_before_it_began_ends_the_model_call() -> None:
    assert steps(turn_of(BEGAN, ended("a", CallOutcome.NOT_RUN), ANSWERED)) == [
        ("model", 0.0, 1.0),
        ("model", 1.0, 2.0),
    ]


def test_second_attempt_begins_a_new_turn_and_an_unknown_turn_is_ignored() -> None:
    again = TurnBegan(session=S, turn=T, attempt=2)
    turn = turn_of(BEGAN, began("a"), again, ANSWERED)
    assert (turn.attempt, turn.began, steps(turn)) == (2, 2.0, [("model", 2.0, 3.0)])
    assert TurnSpans().note(ANSWERED, 0.0) is None


def test_turn_that_moves_by_a_compression_belongs_to_the_child() -> None:
    moved = SessionMoved(session=S, successor=SessionId("s2"), reason="compression", turn=T)
    assert turn_of(BEGAN, moved, ANSWERED).session == "s2"

"""Turn meter."""

from __future__ import annotations

from hermes.domain.events import Notice, TextDelta, TurnAccepted, TurnAnswered, TurnBegan, TurnGaveUp
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.services.turn_meter import TurnMeter

S, T = SessionId("s"), TurnId("t")


def test_latency_first_text_and_tokens_of_a_turn() -> None:
    now = [0.0]
    meter = TurnMeter(lambda: now[0])
    meter.note(TurnAccepted(session=S, turn=T, position=0))
    now[0] = 0.2
    meter.note(TurnBegan(session=S, turn=T, attempt=1))
    for now[0] in (0.4, 0.9):
        meter.note(TextDelta(session=S, turn=T, text="x"))
    now[0] = 3.0
    usage = Usage(prompt_tokens=5, completion_tokens=2)
    meter.note(TurnAnswered(session=S, turn=T, text="xx", model="m", finish_reason="stop", usage=usage))
    found = meter.figures()
    assert found.ended == {"answered": 1}
    assert found.used == {"m": usage}
    assert (found.latency_s.total, sum(found.latency_s.counts)) == (3.0, 1)
    assert (found.first_token_s.total, sum(found.first_token_s.counts)) == (0.4, 1)


def test_failures_are_counted_by_kind_and_other_events_ignored() -> None:
    meter = TurnMeter(lambda: 0.0)
    meter.note(Notice(session=S, text="x"))
    meter.note(TurnGaveUp(session=S, turn=T, failure=Failure(kind=FailureKind.TIMEOUT, message="late")))
    found = meter.figures()
    assert found.ended == {"timeout": 1}
    assert sum(found.latency_s.counts) == 0

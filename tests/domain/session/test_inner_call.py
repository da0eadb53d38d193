"""Tool calls of scripts: recorded like calls of the model, hidden from it, and closed with their script."""

from __future__ import annotations

from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.transcript import Transcript
from hermes.domain.records import Asked, InnerCalled, Record, ToolFinished, ToolStarted
from hermes.domain.session.jobs import ModelReport, ToolReport
from hermes.domain.session.machine import open_work, step
from hermes.domain.session.protocol import (
    Answer,
    CallInside,
    EndInside,
    Event,
    Recover,
    Refuse,
    StopTurn,
    ToolCallWork,
)
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.tool_call import Approval, Call, CallOutcome, CallState, Gate, Verdict
from tests.actors.talk import API, FRESH, assistant, user

SCRIPT = Call(id="x", name="execute_code", summary="execute_code")
BESIDE = Call(id="y", name="todo", summary="todo")
TURN = TurnId("a")


class Script:
    """A session whose turn runs a script."""

    def __init__(self, *calls: Call) -> None:
        self.session: Session = FRESH
        self.records: list[Record] = []
        self.refused = False
        self.tell(Submission(turn=TURN, messages=(user("a"),), source=API, session=SessionId("s")))
        calls = calls or (SCRIPT,)
        report = ModelReport(turn=TURN, attempt=1, replies=0, message=assistant("", calls), calls=calls, model="m")
        self.tell(report)

    def tell(self, event: Event) -> None:
        made = step(self.session, event, 1.0)
        self.session = made.session
        self.records += made.records
        self.refused = any(isinstance(effect, Refuse) for effect in made.effects)

    def call(self, name: str = "x.1", gate: Gate = Gate()) -> None:  # noqa: B008 - a value
        call = Call(id=name, name="terminal", summary=f"terminal: {name}", gate=gate, within="x")
        self.tell(CallInside(turn=TURN, call=call, arguments="{}"))

    def end(self, name: str = "x.1") -> None:
        message = user("done")
        self.tell(EndInside(turn=TURN, call=name, message=message, outcome=CallOutcome.OK))

    def finished(self, name: str) -> ToolFinished:
        [found] = [each for each in self.records if isinstance(each, ToolFinished) and each.call == name]
        return found

    def states(self) -> dict[str, CallState]:
        turn = self.session.turn
        return {} if turn is None else {call.id: call.state for call in turn.calls}


ASKS = Gate(verdict=Verdict.ASK, reason="it deletes", rules=("rm",))


def test_call_of_a_script_is_recorded_before_and_after_it_runs() -> None:
    here = Script()
    here.call()
    assert [type(each) for each in here.records[-2:]] == [InnerCalled, ToolStarted]
    here.end()
    assert here.finished("x.1").within == "x"
    assert here.states() == {"x": CallState.STARTED}
    work = open_work(here.session)
    assert work == (ToolCallWork(turn=TURN, attempt=1, call="x"),)


def test_model_does_not_see_it() -> None:
    here = Script()
    here.call()
    here.end()
    transcript = Transcript()
    transcript.extend((Seq(number), record) for number, record in enumerate(here.records))
    assert len(transcript.messages) == 2


def test_script_goes_on_while_its_call_waits_for_a_person() -> None:
    here = Script(SCRIPT, BESIDE)
    here.call(gate=ASKS)
    assert here.session.phase is Phase.WAITING
    assert any(isinstance(each, Asked) for each in here.records)
    assert [getattr(each, "call", "") for each in open_work(here.session)] == ["x"]
    here.tell(Answer(answer=Approval.ONCE, source=API))
    assert here.states() == {"x": CallState.STARTED, "x.1": CallState.STARTED, "y": CallState.PROPOSED}


def test_denied_call_is_closed_and_the_script_goes_on() -> None:
    here = Script()
    here.call(gate=ASKS)
    here.tell(Answer(answer=Approval.DENY, source=API))
    assert here.finished("x.1").outcome is CallOutcome.DENIED
    assert here.states() == {"x": CallState.STARTED}
    assert here.session.phase is Phase.RUNNING


def test_crash_tells_exactly_what_ran() -> None:
    here = Script()
    here.call("x.1")
    here.end("x.1")
    here.call("x.2")
    here.tell(Recover(cause=InterruptionCause.CRASH))
    assert here.finished("x.2").outcome is CallOutcome.UNKNOWN
    script = here.finished("x")
    assert script.outcome is CallOutcome.UNKNOWN
    text = script.message.decode()
    assert "1. terminal: x.1: done" in text
    assert "2. terminal: x.2: it began" in text


def test_crash_while_a_call_waits_closes_the_question() -> None:
    here = Script()
    here.call(gate=ASKS)
    here.tell(Recover(cause=InterruptionCause.CRASH))
    assert here.finished("x.1").outcome is CallOutcome.NOT_RUN
    assert here.session.phase is Phase.RUNNING


def test_stop_closes_a_script_and_its_call() -> None:
    here = Script()
    here.call()
    here.tell(StopTurn(reason="asked"))
    assert here.finished("x.1").outcome is here.finished("x").outcome is CallOutcome.STOPPED
    assert here.session.phase is Phase.IDLE


def test_call_left_open_is_closed_with_its_script() -> None:
    here = Script()
    here.call()
    report = ToolReport(turn=TURN, attempt=1, call="x", message=user("over"), outcome=CallOutcome.OK, took_s=1.0)
    here.tell(report)
    assert here.finished("x.1").outcome is CallOutcome.UNKNOWN
    assert here.states() == {}


def test_only_a_running_script_calls() -> None:
    here = Script()
    here.tell(ToolReport(turn=TURN, attempt=1, call="x", message=user("o"), outcome=CallOutcome.OK, took_s=1.0))
    here.call()
    assert here.refused
    here.end()
    assert here.refused

"""Calls that the client runs: the turn ends with them, and the next message brings results or ends them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hermes.domain.cause.cause import HoldCause, InterruptionCause
from hermes.domain.errors import BadInputError
from hermes.domain.events import TurnAnswered
from hermes.domain.ids import TurnId
from hermes.domain.records import MessageReceived, ToolFinished, TurnFinished, TurnStarted
from hermes.domain.session.jobs import ModelReport, ToolReport
from hermes.domain.session.machine import open_work, step
from hermes.domain.session.note import NO_RESULT
from hermes.domain.session.protocol import ModelCallWork, Publish, Recover, Refuse, Step
from hermes.domain.session.state import Phase, Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.tool_call import Call, CallOutcome, CallState
from tests.support.fakes import a_session

API = Source(platform="api")
HANDED = Call(id="x", name="weather", state=CallState.HANDED)


def message(**fields: Any) -> EncodedMessage:
    return EncodedMessage(json.dumps(fields).encode())


def asked(*names: str) -> EncodedMessage:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    return message(role="assistant", content=None, tool_calls=calls)


def submitted(turn: str, *messages: EncodedMessage, **fields: Any) -> Submission:
    return Submission(turn=TurnId(turn), messages=messages, source=API, **fields)


def running(turn: str = "t1") -> Session:
    fresh = replace(a_session("s"), messages=0)
    return step(fresh, submitted(turn, message(role="user", content="weather?")), 1.0).session


def model_report(session: Session, answer: EncodedMessage) -> ModelReport:
    assert session.turn is not None
    return ModelReport(
        turn=session.turn.id,
        attempt=session.turn.attempt,
        replies=session.turn.replies,
        message=answer,
        model="m",
        finish_reason="tool_calls",
    )


def replied(session: Session, *, calls: tuple[Call, ...] = ()) -> Step:
    report = replace(
        model_report(session, asked("own") if calls else asked("x")),
        calls=calls,
        handed=(HANDED,),
        handed_message=asked("x") if calls else EncodedMessage(b""),
    )
    return step(session, report, 2.0)


def codes(refused: Step) -> list[str]:
    return [effect.error.code for effect in refused.effects if isinstance(effect, Refuse)]


def answers(done: Step) -> list[TurnAnswered]:
    return [e.event for e in done.effects if isinstance(e, Publish) and isinstance(e.event, TurnAnswered)]


def test_the_turn_ends_with_the_calls_and_the_session_remembers_them() -> None:
    done = replied(running())
    assert [type(record) for record in done.records] == [TurnFinished]
    assert (done.session.phase, done.session.turn, done.session.handed) == (Phase.IDLE, None, (HANDED,))
    [answer] = answers(done)
    assert (answer.finish_reason, [call.id for call in answer.calls]) == ("tool_calls", ["x"])


def test_own_calls_of_the_same_answer_run_first() -> None:
    own = Call(id="own", name="own")
    waiting = replied(running(), calls=(own,))
    assert waiting.session.phase is Phase.RUNNING
    assert not answers(waiting)
    turn = waiting.session.turn
    assert turn is not None
    report = ToolReport(
        turn=turn.id,
        attempt=turn.attempt,
        call="own",
        message=message(role="tool", tool_call_id="own", content="done"),
        outcome=CallOutcome.OK,
        took_s=0.1,
    )
    done = step(waiting.session, report, 3.0)
    assert [type(record) for record in done.records] == [ToolFinished, TurnFinished]
    assert done.session.handed == (HANDED,)


def test_results_start_a_turn_without_closing_anything() -> None:
    session = replied(running()).session
    result = message(role="tool", tool_call_id="x", content="sunny")
    done = step(session, submitted("t2", result, results=("x",)), 3.0)
    assert [type(record) for record in done.records] == [MessageReceived, TurnStarted]
    assert done.session.handed == ()
    assert isinstance(open_work(done.session)[0], ModelCallWork)


def test_any_other_message_ends_the_calls_without_a_result() -> None:
    session = replied(running()).session
    done = step(session, submitted("t2", message(role="user", content="never mind")), 3.0)
    closed = done.records[1]
    assert isinstance(closed, ToolFinished)
    assert (closed.call, closed.outcome, done.session.handed) == ("x", CallOutcome.NO_RESULT, ())


@pytest.mark.parametrize("results", [("other",), ("x", "other")])
def test_results_that_nothing_waits_for_are_refused(results: tuple[str, ...]) -> None:
    session = replied(running()).session
    refused = step(session, submitted("t2", *(asked("x") for _ in results), results=results), 3.0)
    [effect] = refused.effects
    assert isinstance(effect, Refuse)
    assert isinstance(effect.error, BadInputError)
    assert effect.error.code == "call_not_waiting"
    assert not refused.records


def held() -> Session:
    return step(running(), Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED), 2.0).session


def asking() -> Session:
    """Return a session whose running turn waits for a person's answer."""
    call = Call(id="q", name="clarify", question="which one?", choices=("sunny", "rain"))
    return step(running(), replace(model_report(running(), asked("q")), calls=(call,)), 2.0).session


@pytest.mark.parametrize(("session", "phase"), [(held(), Phase.RESUME_PENDING), (asking(), Phase.WAITING)])
@pytest.mark.parametrize("replies", [False, True])
def test_results_neither_join_an_open_turn_nor_answer_its_question(
    session: Session, phase: Phase, replies: bool
) -> None:
    result = message(role="tool", tool_call_id="x", content="sunny")
    refused = step(session, submitted("t2", result, results=("x",), replies=replies), 3.0)
    assert session.phase is phase
    assert (refused.records, codes(refused)) == ((), ["call_not_waiting"])


@pytest.mark.parametrize("session", [held(), asking()])
def test_a_failed_turn_is_not_tried_again_while_another_is_open(session: Session) -> None:
    refused = step(session, submitted("t2", retries=True), 3.0)
    assert (refused.records, codes(refused)) == ((), ["wrong_phase"])


def test_results_without_their_calls_open_no_session() -> None:
    fresh = replace(a_session("s"), messages=0)
    refused = step(fresh, submitted("t1", message(role="tool", tool_call_id="y", content="fog"), results=("y",)), 1.0)
    assert [type(effect) for effect in refused.effects] == [Refuse]


def test_results_open_a_session_of_their_own_history() -> None:
    fresh = replace(a_session("s"), messages=0)
    result = message(role="tool", tool_call_id="y", content="fog")
    done = step(fresh, submitted("t1", result, opening=(asked("y"),), results=("y",)), 1.0)
    received = done.records[0]
    assert isinstance(received, MessageReceived)
    assert len(received.messages) == 2


def result_of(call: str, text: str) -> EncodedMessage:
    return message(role="tool", tool_call_id=call, content=text)


def stored_by(done: Step) -> list[tuple[str, str]]:
    """Return the role and the text of the messages that a step has stored."""
    received = done.records[0]
    assert isinstance(received, MessageReceived)
    fields = [json.loads(each) for each in received.messages]
    return [(each["role"], each["content"] or "") for each in fields]


def test_the_last_of_several_results_of_a_call_counts() -> None:
    session = replied(running()).session
    results = (result_of("x", "sunny"), result_of("x", "rain"))
    done = step(session, submitted("t2", *results, results=("x",)), 3.0)
    assert stored_by(done) == [("tool", "rain")]


def opened(*history: EncodedMessage, new: EncodedMessage, results: tuple[str, ...] = ()) -> Step:
    fresh = replace(a_session("s"), messages=0)
    return step(fresh, submitted("t1", new, opening=history, results=results), 1.0)


def test_an_imported_history_has_one_result_for_each_call() -> None:
    question, go_on = message(role="user", content="q"), message(role="user", content="go on")
    history = (
        question,
        asked("a", "b"),
        result_of("b", "1"),
        result_of("orphan", "?"),
        result_of("b", "2"),
        asked("c"),
    )
    done = opened(*history, new=go_on)
    roles_and_texts = stored_by(done)
    assert [role for role, _ in roles_and_texts] == ["user", "assistant", "tool", "tool", "assistant", "tool", "user"]
    outcomes = [text for role, text in roles_and_texts if role == "tool"]
    assert outcomes == [NO_RESULT, "2", NO_RESULT]


def test_a_call_that_is_listed_twice_is_imported_as_one() -> None:
    done = opened(asked("a", "a"), new=result_of("a", "1"), results=("a",))
    received = done.records[0]
    assert isinstance(received, MessageReceived)
    assert [call["id"] for call in json.loads(received.messages[0])["tool_calls"]] == ["a"]
    assert stored_by(done)[1:] == [("tool", "1")]


def test_results_alone_that_no_call_of_the_history_has_are_refused() -> None:
    history = (message(role="user", content="q"), message(role="assistant", content="a"))
    refused = opened(*history, new=result_of("orphan", "?"), results=("orphan",))
    assert (refused.records, codes(refused)) == ((), ["call_not_waiting"])
